// One instance: what it is, what it waits for, its timeline and its events; it follows what happens.
import { get, instancePath } from './api.js';
import { actionBar } from './actions.js';
import { h, fill, line, number, throttle, debounce } from './dom.js';
import { EventTable } from './events.js';
import { History } from './history.js';
import { payloadOf, payloadNode, preview } from './payload.js';
import { pendingNode } from './pending.js';
import { refusedNode } from './refused.js';
import { instanceHref } from './router.js';
import { badge, hasEnded } from './status.js';
import { timeNode, spanText, toMs, now } from './time.js';
import { Timeline } from './timeline.js';
import { childrenTree } from './tree.js';
import { copyButton, errorBox, facts, section, empty } from './ui.js';

const PAGE_EVENTS = 1000;
const SHOW_MS = 250; // the row is read again at most so often
const DRAW_MS = 60;
const KEPT_SHOWN = 20; // names of events
const SOURCE_MS = 1000; // its engine is asked where the code is at most so often

const counted = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

class InstancePage {
  constructor(context) {
    this.context = context;
    this.id = context.params.id;
    this.history = new History();
    this.wanted = context.query.event ?? null;
    this.reread = throttle(() => this.show(), SHOW_MS);
    this.redraw = throttle(() => this.drawHistory(), DRAW_MS);
    this.locate = throttle(() => this.askSource(), SOURCE_MS);
    this.again = debounce(() => this.reread(), SHOW_MS);
    this.childrenSoon = debounce(() => childrenTree(this.childBox, this.id), SHOW_MS);
    this.build();
    this.show();
    this.read(0);
    childrenTree(this.childBox, this.id);
  }

  build() {
    this.timeline = new Timeline(this.history, {
      onPick: (key) => this.events.pick(key),
      onChild: (id) => this.context.go(instanceHref(id)),
    });
    this.events = new EventTable(this.id, this.history, (key) => this.picked(key));
    this.head = h('div', { class: 'instance-head' }, h('h1', { class: 'mono' }, line(this.id)));
    this.message = h('div');
    this.refused = h('div');
    this.actions = h('div', { class: 'actions' });
    this.waits = h('div');
    this.source = h('p', { class: 'quiet' });
    this.data = h('div', { class: 'two' });
    this.childBox = h('div', { class: 'children' });
    this.state = h('p', { class: 'quiet', role: 'status' }, 'reading the history …');
    this.body = h(
      'div',
      { class: 'stack' },
      h('div', { class: 'two' }, section('Waits for', 'h-waits', this.waits, this.source), section('Children', 'h-children', this.childBox)),
      section('Timeline', 'h-timeline', this.timeline.node),
      section('Events', 'h-events', this.state, this.events.node, this.saveButton()),
      section('Input and output', 'h-data', this.data),
    );
    this.node = h('div', { class: 'page' }, this.head, this.message, this.refused, this.actions, this.body);
  }

  saveButton() {
    const save = () => {
      const plain = this.history.events.map(({ key, at, ...event }) => JSON.stringify(event)).join('\n');
      const url = URL.createObjectURL(new Blob([`${plain}\n`], { type: 'application/jsonl' }));
      h('a', { href: url, download: `${this.id.replace(/[^A-Za-z0-9_.-]+/g, '_')}.jsonl` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    };
    return h('p', null, h('button', { type: 'button', class: 'small', onclick: save }, 'Save the events (JSON lines)'));
  }

  async show() {
    try {
      this.info = await get(instancePath(this.id));
      fill(this.message);
      this.drawHead();
    } catch (error) {
      if (this.closed) return;
      if (error.status === 404) this.missing(error);
      else fill(this.message, errorBox(error, () => this.show()));
    }
  }

  missing(error) {
    fill(this.message, errorBox(error), empty('There is no such instance.', 'It may have been deleted, or its start is not taken yet.', 'thole list'));
    this.body.hidden = true;
    fill(this.actions);
  }

  drawHead() {
    const info = this.info;
    this.body.hidden = false;
    const ended = hasEnded(info.status);
    const to = ended ? toMs(info.updated) : now();
    const detail = preview(info, 'detail', 4000);
    fill(
      this.head,
      h('p', { class: 'crumbs' }, info.parent ? ['child of ', h('a', { href: instanceHref(info.parent), class: 'mono' }, line(info.parent))] : h('a', { href: '/instances' }, 'Instances')),
      h('div', { class: 'title-line' }, h('h1', { class: 'mono' }, line(this.id)), badge(info.status), copyButton(this.id, 'the id')),
      detail && h('p', { class: `detail ${info.status === 'Completed' ? '' : 'loud'}` }, line(detail), this.advice()),
      facts([
        ['orchestration', line(info.orchestration ?? '') + (info.version ? `@${info.version}` : '')],
        ['reason', line(info.reason ?? '')],
        ['next step', this.nextStep()],
        ['error type', line(info.error_type ?? '')],
        ['custom status', line(preview(info, 'custom_status', 1000))],
        ['events kept', this.eventsKept()],
        ...this.timeFacts(info, ended, to),
      ]),
    );
    fill(this.refused, refusedNode(info.set_aside));
    fill(this.actions, actionBar(this.context, info, () => this.reread()));
    fill(this.waits, ended ? h('p', { class: 'none' }, 'It has ended.') : pendingNode(info.pending, (id) => this.events.pick(`${info.execution}.${id}`)));
    this.drawData();
    this.drawSource();
  }

  /** What would let it go on; of a list's row only what helps with its status. */
  nextStep() {
    const steps = (this.info.hindrances ?? []).map((hindrance) => hindrance.remedy);
    return line(steps.length > 0 ? steps.join('; ') : (this.info.next_step ?? ''));
  }

  /** Those that nothing has waited for yet: perhaps their name is mistyped. */
  eventsKept() {
    const kept = this.info.events_kept ?? [];
    const rest = kept.length - KEPT_SHOWN;
    const names = kept.slice(0, KEPT_SHOWN).map(({ name, count }) => `${line(name)} (${number(count)})`);
    return names.join(', ') + (rest > 0 ? `, and ${number(rest)} more` : '');
  }

  /** What has no row yet has had no turn, or just its first one. */
  timeFacts(info, ended, to) {
    if (info.status === 'Pending') {
      return [
        ['stored', timeNode(info.stored, { fraction: true })],
        ['messages before it', `at most ${number(info.ahead)}`],
      ];
    }
    if (!info.created) return [['updated', timeNode(info.updated, { fraction: true })]];
    return [
      [ended ? 'took' : 'runs for', spanText(to - toMs(info.created))],
      ['created', timeNode(info.created, { fraction: true })],
      [ended ? 'ended' : 'updated', timeNode(info.updated, { fraction: true })],
      ['execution', info.execution],
      ['turns', number(info.turns)],
      ['open', `${counted(info.open_activities, 'activity', 'activities')}, ${counted(info.open_timers, 'timer', 'timers')}`],
      ['partition', info.partition],
    ];
  }

  /** Where the code is: another place only after another turn. */
  drawSource() {
    const { status, execution, turns } = this.info;
    const runs = status === 'Running' || status === 'Paused';
    const turn = `${execution}.${turns}`;
    if (!runs) fill(this.source);
    else if (turn !== this.sourceTurn) {
      this.sourceTurn = turn;
      this.locate();
    }
  }

  async askSource() {
    try {
      const { source, source_error: why } = await get(instancePath(this.id, '/source'));
      if (this.closed || hasEnded(this.info.status)) return;
      if (source) fill(this.source, 'The code is at ', h('code', null, line(source)));
      else fill(this.source, `Where its code is, is not known: ${line(why)}`);
    } catch (error) {
      if (!this.closed) fill(this.source, `Where its code is, is not known: ${error.message}`);
    }
  }

  advice() {
    if (this.info.status !== 'Stuck') return null;
    return h('span', { class: 'hint' }, ' See ', h('a', { href: '/stuck' }, 'what to do with stuck instances'), '.');
  }

  drawData() {
    const key = JSON.stringify([this.info.input_bytes, this.info.output_bytes, this.info.execution]);
    if (key === this.dataKey) return;
    this.dataKey = key;
    const block = (name) => h('div', null, h('h3', null, name), payloadNode(payloadOf(this.info, name), name));
    const has = (name) => this.info[name] !== undefined || this.info[`${name}_base64`] !== undefined;
    fill(this.data, has('input') && block('input'), has('output') && block('output'), !has('input') && h('p', { class: 'none' }, 'The history has not been read.'));
  }

  /** All events behind a sequence, page by page; drawn as they come. */
  async read(from) {
    try {
      let next = from;
      do {
        const page = await get(instancePath(this.id, '/history'), { from: next || undefined, limit: PAGE_EVENTS });
        if (this.closed) return;
        for (const event of page.events) this.history.add(event);
        this.drawHistory();
        next = page.events.length > 0 ? (page.next ?? null) : null;
      } while (next);
      fill(this.state);
      this.context.follow(this.id, this.history.sequence);
    } catch (error) {
      if (this.closed) return;
      if (error.status !== 404) fill(this.state, h('span', { class: 'warn-text' }, error.message));
      this.context.follow(this.id, this.history.sequence);
    }
  }

  drawHistory() {
    if (this.closed) return;
    this.events.draw();
    this.timeline.draw();
    if (this.wanted && this.events.pick(this.wanted)) this.wanted = null;
  }

  picked(key) {
    this.timeline.pick(key);
    this.context.setQuery({ ...this.context.query, event: key });
  }

  onHistory(event) {
    if (!this.history.add(event)) return;
    this.redraw();
    this.rereadSoon();
    if (/^(Child|Detached)/.test(event.kind)) this.childrenSoon();
  }

  /** And once more: the row may follow its event by some milliseconds. */
  rereadSoon() {
    this.reread();
    this.again();
  }

  tick() {
    if (!this.info || hasEnded(this.info.status)) return;
    this.timeline.draw();
    this.drawHead();
  }

  close() {
    this.closed = true;
    for (const fn of [this.reread, this.again, this.redraw, this.locate, this.childrenSoon]) fn.stop();
    this.timeline.close();
    this.events.close();
  }
}

export function mount(context) {
  const page = new InstancePage(context);
  return {
    title: line(page.id),
    node: page.node,
    table: page.events.table,
    search: page.events.filter,
    follows: true,
    history: (event) => page.onHistory(event),
    changed: (data) => (data.many || data.instance === page.id) && page.rereadSoon(),
    end: () => page.rereadSoon(),
    reconnected: () => {
      page.read(page.history.sequence);
      page.reread();
    },
    tick: () => page.tick(),
    close: () => page.close(),
    back: '/instances',
  };
}
