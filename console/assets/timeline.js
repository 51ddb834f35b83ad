// The gantt of a history: a row for each activity, timer, awaited event and child; only visible rows are drawn.
import { h, svg, fill, line, number, throttle } from './dom.js';
import { localText, now, spanText } from './time.js';

const ROW_PX = 26;
const BAR_PX = 14;
const AXIS_PX = 26;
const EXTRA_ROWS = 5;
const ZOOM = 1.6;
const WHEEL_ZOOM = 1.15;
const TEXT_PX = 6.2; // of a character of the labels, about
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5,
  36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6];
const ICONS = { activity: '', timer: 'timer ', event: 'event ', child: '↳ ' };

export class Timeline {
  /** onPick(event key): a row was chosen. */
  constructor(history, { onPick, onChild }) {
    Object.assign(this, { history, onPick, onChild });
    this.domain = null; // null: all of it
    this.execution = null; // null: all of them
    this.picked = null;
    this.spans = null; // those of the last draw()
    this.drawn = new Map(); // index of a span -> its node
    this.axis = svg('svg', { class: 'tl-axis', height: AXIS_PX, 'aria-hidden': 'true' });
    this.under = svg('g');
    this.visible = svg('g');
    this.over = svg('g');
    this.rows = svg('svg', { class: 'tl-rows', role: 'img', 'aria-label': 'Timeline' }, this.under, this.visible, this.over);
    this.scroll = h('div', { class: 'tl-scroll', tabindex: 0, role: 'group', 'aria-label': 'Timeline; the table of events has the same as text. Keys: + and - zoom, arrows move, 0 shows all' }, this.rows);
    this.tools = h('div', { class: 'tl-tools' });
    this.notes = h('ul', { class: 'tl-notes' });
    this.node = h('div', { class: 'timeline' }, this.tools, this.axis, this.scroll, this.notes);
    this.drawSoon = throttle(() => this.draw(), 40);
    this.scroll.addEventListener('scroll', () => this.drawRows(), { passive: true });
    this.scroll.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.scroll.addEventListener('keydown', (event) => this.keydown(event));
    this.rows.addEventListener('click', (event) => this.click(event));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.node);
    this.buildTools();
  }

  close() {
    this.observer.disconnect();
    this.drawSoon.stop();
  }

  buildTools() {
    const button = (text, label, fn) => h('button', { type: 'button', class: 'small', 'aria-label': label, title: label, onclick: fn }, text);
    this.executionBox = h('select', { 'aria-label': 'Execution', onchange: () => this.setExecution(this.executionBox.value) });
    const key = (name, text) => h('span', { class: `key k-${name}` }, text);
    fill(
      this.tools,
      this.executionBox,
      button('+', 'Zoom in', () => this.zoom(1 / ZOOM)),
      button('−', 'Zoom out', () => this.zoom(ZOOM)),
      button('All', 'Show all of it', () => this.setDomain(null)),
      h('span', { class: 'keys', 'aria-hidden': 'true' }, key('open', 'open'), key('completed', 'done'), key('failed', 'failed'),
        key('cancelled', 'cancelled'), key('queued', 'queued'), key('backoff', 'until the next try')),
    );
  }

  setExecution(value) {
    this.execution = value === '' ? null : Number(value);
    this.domain = null;
    this.draw();
  }

  pick(key) {
    this.picked = key;
    const at = this.shown().indexOf(this.history.spanOf.get(key));
    if (at >= 0) this.reveal(at);
    this.draw();
  }

  reveal(index) {
    const top = index * ROW_PX;
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop || top + ROW_PX > scrollTop + clientHeight) this.scroll.scrollTop = Math.max(0, top - clientHeight / 2);
  }

  shown() {
    const { spans } = this.history;
    return this.execution === null ? spans : spans.filter((span) => span.execution === this.execution);
  }

  isLive() {
    return !this.history.ended;
  }

  whole() {
    const spans = this.execution === null ? null : this.shown();
    const events = this.execution === null ? null : this.history.events.filter((e) => e.execution === this.execution);
    const from = events?.length ? events[0].at : (this.history.first ?? now());
    let to = events?.length ? events[events.length - 1].at : (this.history.last ?? now());
    const open = spans ? spans.some((span) => span.to === null) : true;
    if (this.isLive() && open) to = Math.max(to, now());
    const room = Math.max(1, (to - from) * 0.02);
    return [from - room, to + room];
  }

  setDomain(domain) {
    this.domain = domain;
    this.draw();
  }

  zoom(factor, at = 0.5) {
    const [from, to] = this.domain ?? this.whole();
    const width = Math.max(1, (to - from) * factor);
    const middle = from + (to - from) * at;
    const whole = this.whole();
    if (width >= whole[1] - whole[0]) this.setDomain(null);
    else this.setDomain([middle - width * at, middle + width * (1 - at)]);
  }

  pan(share) {
    if (!this.domain) return;
    const by = (this.domain[1] - this.domain[0]) * share;
    this.setDomain([this.domain[0] + by, this.domain[1] + by]);
  }

  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey) this.zoom(event.deltaY > 0 ? WHEEL_ZOOM : 1 / WHEEL_ZOOM, this.shareAt(event.clientX));
    else if (sideways !== 0 && this.domain) this.pan(sideways / 800);
    else return;
    event.preventDefault();
  }

  shareAt(clientX) {
    const box = this.rows.getBoundingClientRect();
    const share = (clientX - box.left - this.labels) / (box.width - this.labels);
    return Math.min(1, Math.max(0, share));
  }

  keydown(event) {
    const fns = {
      '+': () => this.zoom(1 / ZOOM),
      '=': () => this.zoom(1 / ZOOM),
      '-': () => this.zoom(ZOOM),
      0: () => this.setDomain(null),
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
    };
    if (event.ctrlKey || event.metaKey || !fns[event.key]) return;
    fns[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  click(event) {
    const row = event.target.closest('[data-key]');
    if (!row) return;
    const span = this.history.spanOf.get(row.dataset.key);
    this.onPick(row.dataset.event ?? row.dataset.key);
    if (span?.child && event.target.closest('.tl-label')) this.onChild(span.child);
  }

  // ---- drawing ----

  draw() {
    const width = this.scroll.clientWidth;
    if (width === 0) return;
    this.drawExecutions();
    this.labels = Math.min(240, Math.max(104, width * 0.26));
    this.width = width;
    [this.from, this.to] = this.domain ?? this.whole();
    this.spans = this.shown();
    const height = Math.max(ROW_PX * this.spans.length, 1);
    this.rows.setAttribute('height', height);
    this.rows.setAttribute('width', width);
    this.viewHeight = this.scroll.clientHeight; // which follows the height of the rows
    this.axis.setAttribute('width', width);
    this.describe(this.spans);
    fill(this.under, this.clip(height), this.grid(height), this.shade(height));
    fill(this.over, this.lines(height));
    fill(this.axis, this.ticks(), this.markHeads());
    this.node.classList.toggle('empty-rows', this.spans.length === 0);
    fill(this.visible);
    this.drawn.clear();
    this.drawRows();
    this.drawNotes();
  }

  /** Only these change when it is scrolled: what stays visible keeps its node. */
  drawRows() {
    if (!this.spans) return;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW_PX) - EXTRA_ROWS);
    const last = Math.min(this.spans.length, first + Math.ceil(this.viewHeight / ROW_PX) + 2 * EXTRA_ROWS);
    for (const [index, node] of this.drawn)
      if (index < first || index >= last) {
        node.remove();
        this.drawn.delete(index);
      }
    for (let index = first; index < last; index++) {
      if (this.drawn.has(index)) continue;
      const node = this.row(this.spans[index], index);
      this.drawn.set(index, node);
      this.visible.append(node);
    }
  }

  /** Cancellations in words: why, what they hit, and how long that took to stop. */
  drawNotes() {
    const marks = this.history.marks.filter((mark) => mark.kind === 'cancel');
    const key = marks.map((mark) => mark.event.key + mark.spans.length).join();
    if (key === this.notesKey) return;
    this.notesKey = key;
    const item = (mark) => h('li', null, h('button', { type: 'button', class: 'link', onclick: () => this.onPick(mark.event.key) }, markText(mark).replace(/\n/g, '; ')));
    fill(this.notes, marks.slice(-3).map(item));
  }

  drawExecutions() {
    const all = this.history.executions;
    this.executionBox.hidden = all.length < 2;
    if (all.length < 2 || this.executionBox.length === all.length + 1) return;
    const option = (value, text) => h('option', { value, selected: String(this.execution ?? '') === String(value) }, text);
    fill(this.executionBox, option('', `all ${all.length} executions`), all.map((n) => option(n, `execution ${n}`)));
  }

  describe(spans) {
    const state = `${this.history.events.length} ${this.execution}`;
    if (state === this.described) return;
    this.described = state;
    this.rows.setAttribute('aria-label', this.summary(spans));
  }

  summary(spans) {
    const count = (kind) => spans.filter((span) => span.kind === kind).length;
    return `Timeline: ${count('activity')} activities, ${count('timer')} timers, ${count('event')} awaited events, ${count('child')} children, ${spans.filter((s) => s.to === null).length} of them open`;
  }

  x(ms) {
    const share = (ms - this.from) / (this.to - this.from);
    return this.labels + Math.min(1.05, Math.max(-0.05, share)) * (this.width - this.labels);
  }

  clip(height) {
    const box = svg('clipPath', { id: 'tl-clip' }, svg('rect', { x: this.labels, y: 0, width: Math.max(0, this.width - this.labels), height }));
    return svg('defs', null, box, svg('clipPath', { id: 'tl-names' }, svg('rect', { x: 0, y: 0, width: this.labels - 8, height })));
  }

  tickTimes() {
    const wanted = Math.max(2, Math.floor((this.width - this.labels) / 110));
    const raw = (this.to - this.from) / wanted;
    const step = STEPS_MS.find((s) => s >= raw) ?? STEPS_MS[STEPS_MS.length - 1];
    const shift = step >= 36e5 ? new Date(this.from).getTimezoneOffset() * 60000 : 0;
    const times = [];
    for (let t = Math.ceil((this.from - shift) / step) * step + shift; t <= this.to; t += step) times.push(t);
    return { times, step };
  }

  ticks() {
    const { times, step } = this.tickTimes();
    return times.map((t) => {
      const text = localText(t, { fraction: step < 1000, always: step >= 36e5 });
      return svg('text', { class: 'tl-tick', x: this.x(t) + 3, y: 17 }, step >= 864e5 ? text.slice(0, 10) : text);
    });
  }

  grid(height) {
    return this.tickTimes().times.map((t) => svg('line', { class: 'tl-grid', x1: this.x(t), x2: this.x(t), y1: 0, y2: height }));
  }

  shade(height) {
    return this.history.pauses.map(({ from, to }) => {
      const x = this.x(from);
      return svg('rect', { class: 'tl-pause', x, y: 0, width: Math.max(2, this.x(to ?? now()) - x), height }, svg('title', null, 'paused'));
    });
  }

  lines(height) {
    const tall = Math.max(height, this.viewHeight);
    const all = this.history.marks.filter((mark) => mark.kind === 'cancel' || mark.kind === 'execution').map((mark) =>
      svg('line', { class: `tl-mark m-${mark.kind}`, x1: this.x(mark.at), x2: this.x(mark.at), y1: 0, y2: tall }, svg('title', null, markText(mark))),
    );
    const at = now();
    if (this.isLive() && at <= this.to) all.push(svg('line', { class: 'tl-now', x1: this.x(at), x2: this.x(at), y1: 0, y2: tall }));
    return svg('g', { 'clip-path': 'url(#tl-clip)' }, all);
  }

  /** Above the rows: what happened to the instance itself. */
  markHeads() {
    return this.history.marks.filter((mark) => mark.at >= this.from && mark.at <= this.to).slice(-200).map((mark) => {
      const x = this.x(mark.at);
      return svg(
        'path',
        { class: `tl-head m-${mark.kind}`, d: `M${x - 4} ${AXIS_PX - 7} h8 l-4 7 z` },
        svg('title', null, markText(mark)),
      );
    });
  }

  row(span, index) {
    const y = index * ROW_PX;
    const picked = this.picked !== null && this.history.spanOf.get(this.picked) === span;
    const group = svg('g', { class: `tl-row${picked ? ' picked' : ''}`, 'data-key': span.key });
    group.append(svg('rect', { class: 'tl-back', x: 0, y, width: this.width, height: ROW_PX }));
    const label = `${ICONS[span.kind]}${span.kind === 'timer' ? spanText((span.due ?? span.from) - span.from) : line(span.name)}`;
    group.append(svg('text', { class: `tl-label t-${span.kind}${span.child ? ' tl-link' : ''}`, x: 8, y: y + 17, 'clip-path': 'url(#tl-names)' }, label));
    const bars = svg('g', { 'clip-path': 'url(#tl-clip)' });
    for (const part of parts(span)) bars.append(this.bar(part, y, span));
    const after = this.after(span, y);
    if (after) bars.append(after);
    group.append(bars, svg('title', null, spanTitle(span)));
    return group;
  }

  bar(part, y, span) {
    const x = this.x(part.from);
    const width = Math.max(3, this.x(part.to) - x);
    const top = y + (ROW_PX - BAR_PX) / 2;
    const thin = part.look === 'backoff' || part.look === 'queued';
    const rect = svg('rect', {
      class: `tl-bar b-${part.look}`,
      x,
      y: thin ? top + 4 : top,
      width,
      height: thin ? BAR_PX - 8 : BAR_PX,
      rx: thin ? 1 : 3,
      'data-event': part.event,
    });
    const numbered = part.number && span.tries.length > 1 && width > 16;
    return numbered ? svg('g', null, rect, svg('text', { class: `tl-try on-bar on-${part.look}`, x: x + 4, y: y + 17 }, part.number)) : rect;
  }

  /** Behind the bar: queue, worker, how long; where no room is, left of it, or on it. */
  after(span, y) {
    const end = this.x(span.to ?? Math.max(now(), span.due ?? 0)) + 6;
    const start = this.x(span.from) - 6;
    for (const text of spanNotes(span)) {
      const wide = text.length * TEXT_PX;
      if (end + wide <= this.width) return svg('text', { class: 'tl-note', x: end, y: y + 17 }, text);
      if (start - wide > this.labels) return svg('text', { class: 'tl-note', x: start, y: y + 17, 'text-anchor': 'end' }, text);
      const last = parts(span).pop();
      if (end - this.x(last.from) > wide + 24 && end <= this.width + 6)
        return svg('text', { class: `tl-note on-bar on-${last.look}`, x: end - 12, y: y + 17, 'text-anchor': 'end' }, text);
    }
    return null;
  }
}

/** The pieces of a row, in the order of time. */
export function parts(span) {
  if (span.kind !== 'activity') {
    const to = span.to ?? (span.kind === 'timer' ? Math.max(span.due ?? 0, span.from) : now());
    return [{ from: span.from, to, look: span.outcome === 'open' && span.kind === 'timer' ? 'timer' : span.outcome }];
  }
  const all = [];
  span.tries.forEach((one, i) => {
    const to = one.to ?? now();
    const ran = one.started !== null && one.started !== undefined && one.started >= one.from ? Math.min(one.started, to) : null;
    if (ran !== null && ran > one.from) all.push({ from: one.from, to: ran, look: 'queued' });
    all.push({ from: ran ?? one.from, to, look: one.outcome, number: one.number });
    const next = span.tries[i + 1]?.from ?? (span.to === null && span.retryDue ? Math.max(now(), span.retryDue) : null);
    if (one.to !== null && next !== null && next > one.to) all.push({ from: one.to, to: next, look: 'backoff' });
  });
  return all;
}

function workerOf(span) {
  for (let i = span.tries.length - 1; i >= 0; i--) if (span.tries[i].worker) return span.tries[i].worker;
  return span.worker ?? '';
}

/** What stands beside a bar: all of it, and shorter for where there is less room. */
function spanNotes(span) {
  const how = [];
  if (span.to !== null) how.push(spanText(span.to - span.from));
  else if (span.kind === 'timer' && span.due) how.push(`due ${localText(span.due)}`);
  if (span.tries.length > 1) how.push(`${span.tries.length} tries`);
  if (span.outcome === 'cancelled' && span.cause) how.push(span.cause.replace(/_/g, ' '));
  if (span.latency !== undefined) how.push(`stopped after ${spanText(span.latency)}`);
  const where = span.kind === 'child' ? [line(span.child)] : [line(span.queue), line(workerOf(span))].filter(Boolean);
  const texts = [[...where, ...how], [...where.slice(0, 1), ...how], how, how.slice(0, 1)];
  return texts.map((words) => words.join(' · '));
}

function spanTitle(span) {
  const lines = [`${span.kind} ${line(span.name || span.child || '')} (event ${span.key})`, `from ${localText(span.from, { fraction: true, always: true })}`];
  if (span.to !== null) lines.push(`to ${localText(span.to, { fraction: true, always: true })}, ${spanText(span.to - span.from)}: ${span.outcome}`);
  for (const one of span.tries) {
    const where = [one.worker && `worker ${line(one.worker)}`, one.host && `host ${line(one.host)}`].filter(Boolean).join(', ');
    lines.push(`try ${one.number}: ${one.outcome}${one.to ? ` after ${spanText(one.to - one.from)}` : ''}${where ? `, ${where}` : ''}${one.text ? `: ${line(one.text).slice(0, 200)}` : ''}`);
  }
  if (span.reason) lines.push(line(span.reason).slice(0, 200));
  return lines.join('\n');
}

export function markText(mark) {
  const { event } = mark;
  const at = localText(mark.at, { fraction: true, always: true });
  if (mark.kind !== 'cancel') return `${line(event.kind)}${event.name ? ` ${line(event.name)}` : ''} at ${at}`;
  const late = mark.spans.filter((span) => span.latency !== undefined).map((span) => `${line(span.name)} stopped after ${spanText(span.latency)}`);
  const count = mark.spans.length > 0 ? `; it cancelled ${number(mark.spans.length)}` : '';
  return [`${event.kind} at ${at}${event.data ? `: ${line(event.data)}` : ', no reason given'}${count}`, ...late].join('\n');
}
