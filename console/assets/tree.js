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
  const inner = h('div', { class: 'tree-inner' });
  const details = h(
    'details',
    null,
    h(
      'summary',
      null,
      badge(child.status),
      ' ',
      h('a', { href: instanceHref(child.instance), class: 'mono' }, line(child.instance)),
      h('span', { class: 'quiet' }, ` ${line(child.orchestration)}`),
    ),
    inner,
  );
  details.addEventListener('toggle', () => {
    if (details.open && !inner.hasChildNodes()) show(inner, child.instance, 'no children');
  });
  return h('li', null, details);
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
