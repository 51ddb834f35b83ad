// Queues: what waits, who serves, limits; and the quarantine, where a user decides.
import { get, post } from './api.js';
import { openDialog, toast } from './dialog.js';
import { h, fill, line, number, throttle } from './dom.js';
import { preview } from './payload.js';
import { instanceHref } from './router.js';
import { timeNode, spanText, toMs, now } from './time.js';
import { bar, empty, errorBox, plainTable, section } from './ui.js';

const REFRESH_MS = 500;

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

function rate(queue) {
  const perSecond = queue.rate ?? queue.rate_per_s;
  return perSecond === undefined || perSecond === null ? null : `${number(Math.round(perSecond * 10) / 10)}/s`;
}

function oldest(queue) {
  const ms = queue.oldest_ms ?? (queue.oldest ? now() - toMs(queue.oldest) : null);
  return ms === null || ms === undefined ? null : spanText(ms);
}

function queueTable(queues) {
  const any = (fn) => queues.some((q) => fn(q) !== null);
  const columns = [
    ['Queue', (q) => h('span', { class: 'mono' }, line(q.queue))],
    ['Waiting', (q) => number(q.waiting)],
    ['Running', (q) => number(q.running)],
    ['Outside', (q) => number(q.outside)],
    ['Quarantine', (q) => (q.poisoned > 0 ? h('a', { href: '#quarantine', class: 'warn-text' }, number(q.poisoned)) : '0')],
    ['Limit', (q) => (q.limit ? number(q.limit) : 'none')],
    any(oldest) && ['Oldest', (q) => oldest(q) ?? '–'],
    any(rate) && ['Rate', (q) => rate(q) ?? '–'],
    ['Workers', workers],
    ['Activities', activities],
  ].filter(Boolean);
  return plainTable('Queues', columns.map(([name]) => name), queues.map((q) => columns.map(([, cell]) => cell(q))));
}

class QueuesPage {
  constructor(context) {
    this.context = context;
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
    if (queues.length > 0) fill(this.queues, queueTable(queues));
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
