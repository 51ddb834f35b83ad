// Engines and workers that are there now, and who owns each partition.
import { get } from './api.js';
import { h, fill, line, number, throttle } from './dom.js';
import { timeNode, spanText, toMs, now } from './time.js';
import { empty, errorBox, plainTable, section } from './ui.js';

const REFRESH_MS = 1000;
const OLD_MS = 6700; // two thirds of the node TTL, as thole doctor has it
const RECENT_MS = 60000; // a hand-over

/** [0, 1, 2, 5] is 0-2, 5. */
export function ranges(numbers) {
  const out = [];
  for (const n of numbers ?? []) {
    const last = out[out.length - 1];
    if (last && last[1] === n - 1) last[1] = n;
    else out.push([n, n]);
  }
  return out.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(', ');
}

function engineTable(engines) {
  return plainTable(
    'Engines',
    ['Engine', 'Heartbeat', 'Started', 'Orchestrations', 'Partitions'],
    engines.map((e) => [
      h('span', { class: 'mono' }, line(e.node)),
      h('span', { class: e.heartbeat_ms > OLD_MS ? 'warn-text' : '' }, `${spanText(e.heartbeat_ms)} ago`),
      timeNode(e.started, { ago: true }),
      Array.isArray(e.orchestrations) ? e.orchestrations.map(line).join(', ') : number(e.orchestrations),
      e.partitions?.length > 0 ? `${e.partitions.length}: ${ranges(e.partitions)}` : 'none',
    ]),
  );
}

function workerTable(workers) {
  return plainTable(
    'Workers',
    ['Worker', 'Queue', 'Slots', 'Activities'],
    workers.map((w) => [
      h('span', { class: 'mono' }, line(w.node)),
      line(w.queue ?? ''),
      number(w.slots),
      Array.isArray(w.activities) ? w.activities.map(line).join(', ') : number(w.activities),
    ]),
  );
}

// An owner is not enough: a partition that closes and opens again and again has one, too.
function stateText(p) {
  const again = p.closed_lately > 0 ? `, closed ${p.closed_lately} times in 5 minutes: ${p.closed_why}` : '';
  return (p.state ?? '?') + again;
}

function partitionTable(partitions) {
  const lag = (name, title) => [title, (p) => (p[name] === undefined ? '–' : number(p[name]))];
  const columns = [
    ['Partition', (p) => p.partition],
    ['State', (p) => stateText(p)],
    ['Owner', (p) => (p.owner ? h('span', { class: 'mono' }, line(p.owner)) : h('span', { class: 'warn-text' }, p.opened_by ? `no owner; last ${line(p.opened_by)}` : 'no owner'))],
    ['Epoch', (p) => number(p.epoch)],
    ['Opened', opened],
    lag('inbox_lag', 'Inbox lag'),
    lag('projection_lag', 'Projection lag'),
  ];
  return plainTable('Partitions', columns.map(([name]) => name), partitions.map((p) => columns.map(([, cell]) => cell(p))));
}

function opened(p) {
  if (!p.opened) return '–';
  const recent = p.epoch > 1 && now() - toMs(p.opened) < RECENT_MS;
  return [timeNode(p.opened, { ago: true }), recent && h('span', { class: 'tag' }, 'handed over')];
}

/** 1500000 is 1.5 MB. */
export function amount(bytes) {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let at = 0;
  let n = bytes;
  for (; n >= 1000 && at + 1 < units.length; at++) n /= 1000;
  return `${at === 0 ? n : n.toFixed(1)} ${units[at]}`;
}

const ROOM_SHORT_DAYS = 7; // as thole doctor has it

function roomTable(room) {
  return plainTable(
    'Storage',
    ['What', 'Stored', 'Limit', 'Grows a day', 'Full in'],
    room.map((r) => [
      r.streams ? `${line(r.what)} (${r.streams})` : line(r.what),
      amount(r.bytes),
      r.bytes_max ? amount(r.bytes_max) : '–',
      r.bytes_per_day === undefined ? 'too early to say' : amount(r.bytes_per_day),
      r.days_left === undefined ? '–' : h('span', { class: r.days_left < ROOM_SHORT_DAYS ? 'warn-text' : '' }, `${r.days_left} days`),
    ]),
  );
}

class EnginesPage {
  constructor() {
    this.refresh = throttle(() => this.load(), REFRESH_MS);
    this.engines = h('div');
    this.workers = h('div');
    this.partitions = h('div');
    this.defects = h('div');
    this.mended = h('div');
    this.room = h('div');
    this.node = h('div', { class: 'page' }, h('h1', null, 'Engines'), this.defects, this.mended, this.engines, section('Workers', 'h-workers', this.workers), section('Partitions', 'h-partitions', this.partitions), section('Storage', 'h-storage', this.room));
    this.load();
  }

  async load() {
    await Promise.all([this.nodes(), this.owners(), this.missing(), this.again(), this.stored()]);
  }

  async nodes() {
    try {
      const { nodes } = await get('/nodes');
      const engines = nodes.filter((n) => n.role === 'engine');
      const workers = nodes.filter((n) => n.role === 'worker');
      fill(this.engines, engines.length > 0 ? engineTable(engines) : empty('No engine runs in this namespace.', 'Instances wait until one does. Start a program:', 'PROGRAM run'));
      fill(this.workers, workers.length > 0 ? workerTable(workers) : empty('No worker answers.', 'Activities wait until one does:', 'PROGRAM worker'));
    } catch (error) {
      fill(this.engines, errorBox(error, () => this.load()));
    }
  }

  // What is missing or changed, as the engines have seen it, and what mends it.
  async missing() {
    try {
      const { defects } = await get('/defects');
      fill(this.defects, ...defects.map((d) => h('p', { class: 'warn-text' }, `${line(d.text)}. Try: ${line(d.remedy)}`)));
    } catch (error) {
      fill(this.defects, errorBox(error, () => this.load()));
    }
  }

  // What was missing and an engine has made again.
  async again() {
    try {
      const { mended } = await get('/mended');
      fill(this.mended, ...mended.map((m) => h('p', { class: 'quiet' }, `${line(m.name)} was missing and was made again `, timeNode(m.at, { ago: true }))));
    } catch (error) {
      fill(this.mended, errorBox(error, () => this.load()));
    }
  }

  // How much is stored, and for how long there is room.
  async stored() {
    try {
      const { room } = await get('/room');
      fill(this.room, room.length > 0 ? roomTable(room) : empty('No engine tells how much is stored.', 'One that does not say it is of an earlier version:', 'thole doctor'));
    } catch (error) {
      fill(this.room, errorBox(error, () => this.load()));
    }
  }

  async owners() {
    try {
      const { partitions } = await get('/partitions');
      const orphans = partitions.filter((p) => !p.owner).length;
      fill(this.partitions, orphans > 0 && h('p', { class: 'warn-text' }, `${orphans} of ${partitions.length} have no owner; after an engine has died that passes within the node TTL.`), partitionTable(partitions));
    } catch (error) {
      fill(this.partitions, errorBox(error, () => this.load()));
    }
  }
}

export function mount() {
  const page = new EnginesPage();
  return {
    title: 'Engines',
    node: page.node,
    reconnected: () => page.refresh(),
    every: [2000, () => page.refresh()],
    close: () => page.refresh.stop(),
  };
}
