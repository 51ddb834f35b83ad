// Pieces that several pages have.
import { h, svg, line } from './dom.js';
import { copyText } from './payload.js';

/** What is shown where there is nothing: why, and what to do next. */
export function empty(title, text, command) {
  return h(
    'div',
    { class: 'empty' },
    h('p', { class: 'empty-title' }, title),
    text && h('p', null, text),
    command && commandLine(command),
  );
}

/** A command of the terminal, to be copied. */
export function commandLine(command) {
  const button = h('button', { type: 'button', class: 'small', 'aria-label': `Copy: ${command}` }, 'Copy');
  button.addEventListener('click', () => copyText(command, button));
  return h('p', { class: 'command' }, h('code', null, `$ ${command}`), button);
}

/** As the command says errors: what happened, and what to try. */
export function errorBox(error, retry) {
  const again = retry && h('button', { type: 'button', class: 'small', onclick: retry }, 'Try again');
  return h(
    'div',
    { class: 'error', role: 'alert' },
    h('p', null, error.message),
    error.hint && h('p', { class: 'hint' }, 'Try: ', h('code', null, error.hint)),
    again,
  );
}

export function copyButton(text, label) {
  const button = h('button', { type: 'button', class: 'small', 'aria-label': `Copy ${label}` }, 'Copy');
  button.addEventListener('click', () => copyText(text, button));
  return button;
}

export function section(title, id, ...children) {
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** A small table for lists of some dozens of rows: rows are arrays of cells. */
export function plainTable(label, heads, rows) {
  const cell = (value, i) => h(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, 'data-head': heads[i] }, value);
  return h(
    'div',
    { class: 'table-box', tabindex: 0, role: 'region', 'aria-label': label },
    h(
      'table',
      { class: 'plain' },
      h('caption', { class: 'off-screen' }, label),
      h('thead', null, h('tr', null, heads.map((head) => h('th', { scope: 'col' }, head)))),
      h('tbody', null, rows.map((row) => h('tr', null, row.map(cell)))),
    ),
  );
}

/** Names and values, as thole show prints them. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return h(
    'dl',
    { class: 'facts' },
    shown.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
  );
}

export function bar(part, whole, label) {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  return svg(
    'svg',
    { class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    svg('rect', { class: 'bar-whole', width: 100, height: 8 }),
    svg('rect', { class: 'bar-part', width: share * 100, height: 8 }),
  );
}

export function name(text) {
  return h('span', { class: 'mono', title: line(text) }, line(text));
}
