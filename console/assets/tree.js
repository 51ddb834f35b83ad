// Children of an instance, and theirs: each level is read when it is opened.
import { get } from './api.js';
import { h, fill, line } from './dom.js';
import { instanceHref } from './router.js';
import { badge } from './status.js';

const LEVEL_ROWS = 200;

async function level(parent) {
  const page = await get('/instances', { parent, limit: LEVEL_ROWS });
  return { rows: page.instances, more: !page.complete };
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
    const { rows, more } = await level(parent);
    if (rows.length === 0) fill(box, h('p', { class: 'none' }, none));
    else
      fill(
        box,
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
