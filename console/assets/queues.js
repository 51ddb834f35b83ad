// Queues: what waits, who serves, limits; and the quarantine, where a user decides.
import { get, post } from './api.js';
import { openDialog, toast } from './dialog.js';
import { h, fill, line, number, throttle } from './dom.js';
import { preview } from './payload.js';
import { instanceHref } from './router.js';
import { timeNode, spanText } from './time.js';
import { bar, empty, errorBox, plainTable, section } from './ui.js';

const REFRESH_MS = 500;
const RATE_MS = 1500; // at least so long is a rate taken over

function workers(queue) {
  const has = new Map((queue.workers ?? []).map((w) => [w.worker, w]));
  const all = new Map((queue.serving ?? []).map((w) => [w.worker, { ...w, answers: true }]));
  for (const [worker, w] of has) all.set(worker, { ...all.get(worker), ...w });
  if (all.size === 0) return h('span', { class: queue.serving === null ? 'quiet' : 'warn-text' }, queue.serving === null ? 'not known' : 'no worker answers');
  return h('ul', { class: 'workers' }, [...all.values()].map((w) => workerItem(w, queue.lease_ms)));
}

function workerItem(w, leaseMs) {
  const busy = w.activities ?? 0;
  const silent = leaseMs && w.silent_ms >= leaseMs;
  return h(
    'li',
    null,
    h('span', { class: 'mono' }, line(w.worker)),
    w.slots ? [bar(busy, w.slots, `${busy} of ${w.slots} slots`), h('span', null, `${busy}/${w.slots}`)] : h('span', null, ` has ${busy}`),
    w.silent_ms !== undefined && h('span', { class: silent ? 'warn-text' : 'quiet' }, `heard ${spanText(w.silent_ms)} ago`),
    !w.answers && h('span', { class: 'warn-text' }, 'does not answer'),
  );
}

function activities(queue) {
  const list = queue.activities ?? [];
  if (list.length === 0) return h('span', { class: 'none' }, '–');
  return h('ul', { class: 'workers' }, list.map((a) => h('li', null, `${line(a.name)}: ${number(a.count)}`, a.known === false && h('span', { class: 'warn-text' }, ' no worker knows it'))));
}

/** How many activities each queue hands to workers a second, from what it had handed out at two readings. */
class Rates {
  constructor() {
    this.last = new Map(); // by queue: what it had handed out, when that was read, and the rate until then
  }

  read(queues, atMs) {
    const before = this.last;
    this.last = new Map();
    for (const { queue, delivered } of queues) {
      const old = before.get(queue);
      if (old && atMs - old.atMs < RATE_MS && delivered >= old.delivered) this.last.set(queue, old);
      else this.last.set(queue, { delivered, atMs, perSecond: old && delivered >= old.delivered ? ((delivered - old.delivered) * 1000) / (atMs - old.atMs) : null });
    }
  }

  text(queue) {
    const perSecond = this.last.get(queue)?.perSecond ?? null;
    return perSecond === null ? '–' : `${number(Math.round(perSecond * 10) / 10)}/s`;
  }
}

function queueTable(queues, rates) {
  const columns = [
    ['Queue', (q) => h('span', { class: 'mono' }, line(q.queue))],
    ['Waiting', (q) => number(q.waiting)],
    ['Oldest', (q) => ((q.oldest_ms ?? null) === null ? '–' : h('span', { class: 'whole' }, spanText(q.oldest_ms)))],
    ['Rate', (q) => rates.text(q.queue)],
    ['Running', (q) => number(q.running)],
    ['Outside', (q) => number(q.outside)],
    ['Quarantine', (q) => (q.poisoned > 0 ? h('a', { href: '#quarantine', class: 'warn-text' }, number(q.poisoned)) : '0')],
    ['Limit', (q) => (q.limit ? number(q.limit) : 'none')],
    ['Workers', workers],
    ['Activities', activities],
  ];
  return plainTable('Queues', columns.map(([name]) => name), queues.map((q) => columns.map(([, cell]) => cell(q))));
}

class QueuesPage {
  constructor(context) {
    this.context = context;
    this.rates = new Rates();
    this.refresh = throttle(() => this.load(), REFRESH_MS);
    this.queues = h('div');
    this.held = h('div');
    this.node = h(
      'div',
      { class: 'page' },
      h('h1', null, 'Queues'),
      this.queues,
      section('Quarantine', 'quarantine', h('p', { class: 'quiet' }, 'Activities whose workers died with them, again and again. They are not tried again until someone decides.'), this.held),
    );
    this.load();
  }

  async load() {
    await Promise.all([this.part('/queues', this.queues, (told) => this.drawQueues(told.queues)), this.part('/quarantine', this.held, (told) => this.drawHeld(told))]);
    if (location.hash === '#quarantine' && !this.jumped) document.getElementById('quarantine')?.scrollIntoView();
    this.jumped = true;
  }

  async part(path, box, draw) {
    try {
      draw(await get(path));
    } catch (error) {
      if (!this.closed) fill(box, errorBox(error, () => this.load()));
    }
  }

  drawQueues(queues) {
    this.rates.read(queues, performance.now());
    if (queues.length > 0) fill(this.queues, queueTable(queues, this.rates));
    else fill(this.queues, empty('Nothing is in a queue.', 'A queue is here while activities are in it. Workers that wait are listed under Engines.', 'thole queue list'));
  }

  drawHeld(told) {
    const held = told.poisoned ?? [];
    if (held.length === 0) {
      fill(this.held, h('p', { class: 'none' }, 'Nothing is in quarantine.'));
      return;
    }
    const rows = held.map((p) => [
      h('a', { href: instanceHref(p.instance, `?event=${p.execution}.${p.activity_id}`), class: 'mono' }, line(p.instance)),
      `${line(p.activity)}, try ${p.try}`,
      line(p.queue),
      number(p.claims),
      h('span', { class: 'mono' }, line(p.last_worker)),
      timeNode(p.since, { ago: true }),
      p.until ? timeNode(p.until, { ago: true }) : 'never',
      line(preview(p, 'reason', 400)),
      this.decisions(p),
    ]);
    fill(this.held, plainTable('Quarantine', ['Instance', 'Activity', 'Queue', 'Lost claims', 'Last worker', 'Since', 'Fails', 'Reason', 'Decide'], rows));
  }

  decisions(p) {
    if (!this.context.session.actions) return h('code', null, `thole queue retry ${line(p.instance)} ${p.activity_id}`);
    const button = (verb, text) => h('button', { type: 'button', class: 'small', 'data-decide': verb, onclick: () => this.decide(verb, text, p) }, text);
    return h('div', { class: 'button-row' }, button('retry', 'Retry'), button('fail', 'Fail'));
  }

  decide(verb, text, p) {
    openDialog({
      title: `${text} ${line(p.activity)} of ${line(p.instance)}`,
      body: h('p', null, verb === 'retry' ? 'It is queued again. It may kill its worker again.' : 'The activity fails, and the code of its instance sees that.'),
      action: text,
      danger: verb === 'fail',
      run: async () => {
        await post(`/quarantine/${verb}`, { instance: p.instance, execution: p.execution, activity_id: p.activity_id, try: p.try });
        toast(`${verb} of ${line(p.activity)} accepted`);
        this.refresh();
      },
    });
  }
}

export function mount(context) {
  const page = new QueuesPage(context);
  return {
    title: 'Queues',
    node: page.node,
    changed: () => page.refresh(),
    reconnected: () => page.refresh(),
    every: [2000, () => page.refresh()],
    close: () => {
      page.closed = true;
      page.refresh.stop();
    },
  };
}
