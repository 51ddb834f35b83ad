// The table of an instance's events, and the one that is chosen, whole.
import { h, fill, line, number } from './dom.js';
import { payloadOf, payloadNode, preview } from './payload.js';
import { instancePath } from './api.js';
import { instanceHref } from './router.js';
import { VirtualTable } from './table.js';
import { timeNode, toMs, spanText } from './time.js';
import { copyButton, facts } from './ui.js';

const TONE = [
  [/Failed$|Quarantined$|Discarded$/, 'bad'],
  [/Cancel|Terminat|Paused/, 'warn'],
  [/Completed$|Fired$/, 'good'],
];
const KNOWN = new Set(['key', 'at', 'execution', 'id', 'kind', 'ref', 'name', 'data', 'data_base64', 'data_bytes', 'time', 'due',
  'turn', 'sequence', 'other', 'try', 'version', 'queue', 'status', 'error_type', 'cause', 'request_id', 'worker', 'host',
  'run_started', 'run_ended', 'attempt', 'actor', 'actor_authenticated', 'client', 'schema', 'instance']);

function tone(kind) {
  return TONE.find(([pattern]) => pattern.test(kind))?.[1] ?? 'plain';
}

function what(event) {
  if (event.ref) return `of ${event.ref}${event.try > 1 ? ` try ${event.try}` : ''}`;
  return `${line(event.name ?? '')}${event.version > 1 ? `@${event.version}` : ''}`;
}

function dataText(event) {
  const words = [];
  if (event.due) words.push(`in ${spanText(toMs(event.due) - event.at)}`);
  if (event.cause) words.push(event.cause);
  if (event.error_type) words.push(`(${event.error_type})`);
  if (event.other) words.push(`[${event.other}]`);
  words.push(preview(event, 'data'));
  return line(words.filter(Boolean).join(' '));
}

const COLUMNS = [
  { name: 'Time', class: 'c-time', cell: (e) => timeNode(e.at, { fraction: true }) },
  { name: 'Event', class: 'c-event', cell: (e) => `${e.execution > 1 ? `${e.execution}.` : ''}${e.id}` },
  { name: 'Kind', class: 'c-kind', cell: (e) => h('span', { class: `tone-${tone(e.kind)}` }, line(e.kind)) },
  { name: 'Of', class: 'c-name', cell: what },
  { name: 'Data', class: 'c-detail mono', cell: dataText },
];

/** Members that this page does not know are shown too: a newer server may say more. */
function others(event) {
  return Object.entries(event)
    .filter(([name]) => !KNOWN.has(name))
    .map(([name, value]) => [name.replace(/_/g, ' '), line(typeof value === 'object' ? JSON.stringify(value) : value)]);
}

function worked(event) {
  const started = toMs(event.run_started);
  const ended = toMs(event.run_ended);
  if (started === null || ended === null) return null;
  return [timeNode(started, { fraction: true }), ' to ', timeNode(ended, { fraction: true }), `, ${spanText(ended - started)}`];
}

function actorOf(event) {
  if (!event.actor) return null;
  const how = event.actor_authenticated ? 'nats' : 'stated';
  return `${how}:${line(event.actor)}${event.client ? `, by ${line(event.client)}` : ''}`;
}

export function eventNode(instance, event, pick) {
  const kind = line(event.kind);
  const label = `${kind} ${event.execution}.${event.id}`;
  const ref = event.ref && h('button', { type: 'button', class: 'link', onclick: () => pick(`${event.execution}.${event.ref}`) }, `event ${event.ref}`);
  const whole = instancePath(instance, `/history/${event.sequence}/data?id=${event.id}`);
  const link = `${location.origin}${instanceHref(instance, `?event=${event.key}`)}`;
  return h(
    'div',
    { class: 'event-detail' },
    h('h3', null, h('span', { class: `tone-${tone(event.kind)}` }, kind), ` ${event.name ? line(event.name) : ''}`),
    facts([
      ['event', `${event.id} of execution ${event.execution}`],
      ['time', timeNode(event.at, { fraction: true, always: true })],
      ['answers', ref],
      ['try', event.try],
      ['queue', event.queue && line(event.queue)],
      ['worker', event.worker && line(event.worker)],
      ['host', event.host && line(event.host)],
      ['worked', worked(event)],
      ['attempt', event.attempt],
      ['asked for by', actorOf(event)],
      ['due', event.due && timeNode(event.due, { fraction: true })],
      ['cause', event.cause],
      ['status', event.status],
      ['error type', event.error_type && line(event.error_type)],
      ['instance', event.other && h('a', { href: instanceHref(event.other), class: 'mono' }, line(event.other))],
      ['version', event.version],
      ['request id', event.request_id && line(event.request_id)],
      ['turn, sequence', `${number(event.turn)}, ${number(event.sequence)}`],
      ...others(event),
    ]),
    payloadNode(payloadOf(event, 'data'), `data of ${label}`, whole),
    h('p', null, copyButton(link, 'link to this event'), ' ', h('span', { class: 'quiet' }, 'link to this event')),
  );
}

export class EventTable {
  constructor(instance, history, onPick) {
    Object.assign(this, { instance, history, onPick });
    this.text = '';
    this.table = new VirtualTable({
      label: 'Events',
      kind: 'events',
      columns: COLUMNS,
      key: (event) => event.key,
      onSelect: (event) => this.show(event),
      onOpen: (event) => this.show(event),
    });
    this.side = h('div', { class: 'side', tabindex: -1, 'aria-live': 'off' }, h('p', { class: 'none' }, 'Choose an event to see all of it.'));
    this.filter = h('input', { type: 'search', placeholder: 'kind, name or text', 'aria-label': 'Filter events', oninput: () => this.setFilter() });
    this.count = h('span', { class: 'quiet', role: 'status' });
    this.node = h('div', null, h('div', { class: 'toolbar' }, this.filter, this.count), h('div', { class: 'split' }, this.table.node, this.side));
  }

  setFilter() {
    this.text = this.filter.value.toLowerCase();
    this.draw();
  }

  draw() {
    const all = this.history.events;
    const fits = (e) => `${e.kind} ${e.name ?? ''} ${e.data ?? ''} ${e.queue ?? ''}`.toLowerCase().includes(this.text);
    const rows = this.text ? all.filter(fits) : all;
    fill(this.count, this.text ? `${number(rows.length)} of ${number(all.length)} events` : `${number(all.length)} events`);
    this.table.setRows(rows);
  }

  show(event) {
    fill(this.side, eventNode(this.instance, event, (key) => this.pick(key)));
    this.side.scrollTop = 0;
    this.onPick(event.key);
  }

  /** By its key; false: it is not there (yet). */
  pick(key) {
    const at = this.table.rows.findIndex((event) => event.key === key);
    if (at < 0) return false;
    this.table.select(at);
    return true;
  }

  close() {
    this.table.close();
  }
}
