// What an instance waits for now.
import { h, line, number } from './dom.js';
import { instanceHref } from './router.js';
import { timeNode, spanText, toMs, now } from './time.js';

const SHOWN = 100;
const BAD = new Set(['quarantined', 'unserved', 'unknown']);

function what(p) {
  if (p.kind === 'timer') return ['timer, due ', timeNode(p.due, { ago: true })];
  if (p.kind === 'event') return ['event ', h('b', null, line(p.name ?? ''))];
  if (p.kind === 'child')
    return ['child ', h('a', { href: instanceHref(p.child), class: 'mono' }, line(p.child)), p.name ? ` (${line(p.name)})` : ''];
  return ['activity ', h('b', null, line(p.name ?? '')), ` in queue ${line(p.queue ?? '')}, try ${p.try}`];
}

function help(p) {
  if (p.state === 'quarantined') return h('a', { href: '/queues#quarantine' }, 'decide in the quarantine');
  if (p.state === 'unserved') return ['start a worker: ', h('code', null, `PROGRAM worker --queue ${line(p.queue)}`)];
  return null;
}

function item(p, onPick) {
  const since = toMs(p.asked_for);
  const text = p.text && h('span', { class: BAD.has(p.state) ? 'warn-text' : 'quiet' }, line(p.text));
  const pick = h('button', { type: 'button', class: 'link', onclick: () => onPick(p.id) }, `#${p.id}`);
  return h(
    'li',
    { class: `p-${p.kind}` },
    h('div', null, pick, ' ', what(p)),
    h('div', { class: 'quiet' }, text, text && since !== null ? ', ' : '', since !== null && `for ${spanText(now() - since)}`),
    help(p) && h('div', { class: 'hint' }, help(p)),
  );
}

export function pendingNode(pending, onPick) {
  if (!pending?.length) return h('p', { class: 'none' }, 'for nothing');
  const rest = pending.length - SHOWN;
  return h(
    'ul',
    { class: 'pending' },
    pending.slice(0, SHOWN).map((p) => item(p, onPick)),
    rest > 0 && h('li', { class: 'none' }, `and ${number(rest)} more`),
  );
}
