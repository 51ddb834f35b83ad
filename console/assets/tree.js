// Children of an instance, and theirs: each level is read when it is opened.
import { get } from './api.js';
import { h, fill, line, number } from './dom.js';
import { instanceHref } from './router.js';
import { badge } from './status.js';

const LEVEL_ROWS = 200;

async function level(parent) {
  const [page, told] = await Promise.all([get('/instances', { parent, limit: LEVEL_ROWS }), get('/counts', { parent })]);
  return { rows: page.instances, more: !page.complete, count: counted(told) };
}

/** "3 children: 1 Running, 2 Completed" */
function counted({ counts, exact }) {
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const parts = Object.entries(counts).map(([status, n]) => `${number(n)} ${status}`);
  return `${exact === false ? 'at least ' : ''}${number(total)} ${total === 1 ? 'child' : 'children'}: ${parts.join(', ')}`;
}

function row(child) {
  const inner = h('div', { class: 'tree-inner', hidden: true });
  const button = h('button', { type: 'button', class: 'small', 'aria-expanded': false, 'aria-label': `Children of ${line(child.instance)}` }, '+');
  button.addEventListener('click', () => {
    inner.hidden = !inner.hidden;
    button.setAttribute('aria-expanded', !inner.hidden);
    button.textContent = inner.hidden ? '+' : '−';
    if (!inner.hidden) show(inner, child.instance, 'no children');
  });
  const link = h('a', { href: instanceHref(child.instance), class: 'mono' }, line(child.instance));
  return h('li', null, h('div', { class: 'tree-row' }, button, badge(child.status), link, h('span', { class: 'quiet' }, line(child.orchestration))), inner);
}

async function show(box, parent, none) {
  try {
    const { rows, more, count } = await level(parent);
    if (rows.length === 0) fill(box, h('p', { class: 'none' }, none));
    else
      fill(
        box,
        h('p', { class: 'quiet' }, count),
        h('ul', { class: 'tree' }, rows.map(row)),
        more && h('p', null, h('a', { href: `/instances?parent=${encodeURIComponent(parent)}` }, 'all children')),
      );
    return rows.length;
  } catch (error) {
    fill(box, h('p', { class: 'warn-text' }, error.message));
    return 0;
  }
}

/** Fills box; resolves with how many there are on the first level. */
export function childrenTree(box, id) {
  return show(box, id, 'It has no children.');
}
