// Rows of an instance that Postgres refuses: what they are for does not happen.
import { h, line } from './dom.js';
import { timeNode } from './time.js';

function key(row) {
  const parts = [row.execution && `execution ${row.execution}`, row.id && `#${row.id}`, row.column && `column ${row.column}`];
  return parts.filter(Boolean).map((part) => `, ${line(part)}`).join('');
}

function item(row) {
  return h(
    'li',
    null,
    h('div', null, h('b', null, line(row.table)), key(row), row.removal ? ', stays: ' : ': ', line(row.reason), row.code ? ` (SQLSTATE ${line(row.code)})` : ''),
    h('div', { class: 'quiet' }, 'since ', timeNode(row.since, { ago: true })),
  );
}

export function refusedNode(rows) {
  if (!rows?.length) return null;
  return h(
    'div',
    { class: 'detail loud' },
    h('p', null, 'Postgres refuses rows of this instance, and what they are for does not happen. Remove the cause, then ', h('code', null, 'thole projections verify'), ' tries them again.'),
    h('ul', { class: 'pending' }, rows.map(item)),
  );
}
