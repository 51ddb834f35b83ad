// Instances: filters in the address, counts by status, rows that follow what happens.
import { get, instancePath } from './api.js';
import { batchMenu } from './batch.js';
import { h, fill, line, throttle, debounce, number } from './dom.js';
import { preview } from './payload.js';
import { instanceHref } from './router.js';
import { STATUSES, MEANING, badge, hasEnded } from './status.js';
import { VirtualTable } from './table.js';
import { timeNode, spanText, toMs, now } from './time.js';
import { empty, errorBox } from './ui.js';

const PAGE_ROWS = 100;
const REFRESH_MS = 150; // at most so often while much happens
const LATER_MS = [0, 100, 600]; // a row may follow its event by some milliseconds
const COUNTS_MS = 1000;
const TYPING_MS = 150;
const FIELDS = ['prefix', 'orchestration', 'custom_status', 'parent', 'after', 'before'];
const LABELS = {
  prefix: 'Id begins with',
  orchestration: 'Orchestration',
  custom_status: 'Custom status',
  parent: 'Parent',
  after: 'Created after',
  before: 'Created before',
};
const HINTS = { after: '2h, 2026-11-21, …', before: '1d, 2026-11-21T09:30Z', parent: 'id of the parent' };

function took(row) {
  const from = toMs(row.created);
  const to = hasEnded(row.status) ? toMs(row.updated) : now();
  return spanText(to - from);
}

const COLUMNS = [
  { name: 'Status', class: 'c-status', cell: (r) => badge(r.status) },
  {
    name: 'Id',
    class: 'c-id',
    cell: (r) =>
      h('a', { href: instanceHref(r.instance), tabindex: -1, class: 'mono', title: line(r.instance) }, line(r.instance)),
  },
  {
    name: 'Orchestration',
    class: 'c-name',
    cell: (r) => line(r.orchestration) + (r.version > 1 ? `@${r.version}` : ''),
  },
  { name: 'Created', class: 'c-time', cell: (r) => timeNode(r.created, { always: false }) },
  { name: 'Took', class: 'c-took', cell: took },
  { name: 'Detail', class: 'c-detail', cell: detail },
];

function detail(row) {
  const text = preview(row, 'detail') || preview(row, 'custom_status');
  return h('span', { title: line(text) }, line(text));
}

class ListPage {
  constructor(context) {
    this.context = context;
    this.filter = { ...context.query };
    this.rows = [];
    this.next = null;
    this.pages = 0;
    this.busy = null;
    this.refresh = throttle(() => this.load(), REFRESH_MS);
    this.recount = throttle(() => this.count(), COUNTS_MS);
    this.typed = debounce(() => this.changed(), TYPING_MS);
    this.build();
    this.load();
    this.count();
  }

  build() {
    this.table = new VirtualTable({
      label: 'Instances, the newest first',
      kind: 'instances',
      columns: COLUMNS,
      key: (row) => row.instance,
      onOpen: (row) => this.context.go(instanceHref(row.instance)),
      onEnd: () => this.more(),
    });
    this.chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'Status' });
    this.inputs = {};
    const fields = FIELDS.map((field) => this.field(field));
    this.extra = h('details', { class: 'filters' }, h('summary', null, 'More filters'), h('div', { class: 'fields' }, fields.slice(1)));
    this.extra.open = FIELDS.slice(1).some((field) => this.filter[field]);
    this.batch = h('div', { class: 'batch' });
    this.note = h('div', { class: 'note', role: 'status', 'aria-live': 'polite' });
    this.message = h('div');
    this.node = h(
      'div',
      { class: 'page fill' },
      h('h1', { class: 'off-screen' }, 'Instances'),
      h('div', { class: 'toolbar' }, fields[0], this.extra, this.batch),
      this.chips,
      this.message,
      this.table.node,
      this.note,
    );
    this.drawChips({});
  }

  field(name) {
    const input = h('input', {
      type: name === 'prefix' ? 'search' : 'text',
      value: this.filter[name] ?? '',
      placeholder: HINTS[name] ?? '',
      autocomplete: 'off',
      spellcheck: 'false',
      list: name === 'orchestration' ? 'orchestrations' : null,
      'aria-keyshortcuts': name === 'prefix' ? '/' : null,
    });
    input.addEventListener('input', () => this.typed());
    this.inputs[name] = input;
    return h('label', { class: `field f-${name}` }, h('span', null, LABELS[name]), input);
  }

  params() {
    const params = {};
    for (const field of [...FIELDS, 'status']) if (this.filter[field]) params[field] = this.filter[field];
    return params;
  }

  changed() {
    for (const field of FIELDS) this.filter[field] = this.inputs[field].value.trim();
    this.context.setQuery(this.params());
    this.pages = 0;
    this.load();
    this.count();
  }

  setStatus(status) {
    this.filter.status = this.filter.status === status ? '' : status;
    this.changed();
    this.drawChips(this.counts ?? {});
  }

  /** The first page anew; what has been read behind it stays. */
  async load() {
    this.busy?.abort();
    const busy = new AbortController();
    this.busy = busy;
    try {
      const page = await get('/instances', { ...this.params(), limit: PAGE_ROWS }, busy.signal);
      this.take(page);
    } catch (error) {
      if (error.name !== 'AbortError') fill(this.message, errorBox(error, () => this.load()));
    } finally {
      if (this.busy === busy) this.busy = null;
    }
  }

  take(page) {
    const fresh = new Set(page.instances.map((row) => row.instance));
    const behind = this.pages > 1 ? this.rows.slice(PAGE_ROWS).filter((row) => !fresh.has(row.instance)) : [];
    if (this.pages <= 1) {
      this.next = page.complete ? null : (page.next ?? null);
      this.pages = 1;
    }
    this.rows = page.instances.map((row) => this.kept(row)).concat(behind);
    fill(this.message);
    this.draw();
  }

  /** The object that is drawn already, if nothing in it has changed. */
  kept(row) {
    const old = this.byId?.get(row.instance);
    return old && JSON.stringify(old) === JSON.stringify(row) && hasEnded(row.status) ? old : row;
  }

  async more() {
    if (!this.next || this.reading) return;
    this.reading = true;
    const asked = this.next;
    try {
      const page = await get('/instances', { ...this.params(), limit: PAGE_ROWS * 5, next: asked });
      if (this.next !== asked) return;
      const known = new Set(this.rows.map((row) => row.instance));
      this.rows = this.rows.concat(page.instances.filter((row) => !known.has(row.instance)));
      this.next = page.complete ? null : (page.next ?? null);
      this.pages++;
      this.draw();
    } catch (error) {
      fill(this.message, errorBox(error, () => this.more()));
      this.next = null;
    } finally {
      this.reading = false;
    }
  }

  draw() {
    this.byId = new Map(this.rows.map((row) => [row.instance, row]));
    this.table.setRows(this.rows);
    this.table.node.hidden = this.rows.length === 0;
    if (this.rows.length > 0 && !this.painted) this.painted = performance.mark('rows');
    if (this.rows.length === 0) fill(this.note, this.nothing());
    else fill(this.note, h('p', null, this.next ? `${number(this.rows.length)} shown; scroll for more` : `${number(this.rows.length)} shown, no more`));
  }

  nothing() {
    if (Object.keys(this.params()).length > 0) {
      const clear = h('button', { type: 'button', class: 'small', onclick: () => this.clear() }, 'Clear the filters');
      return h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, 'No instance fits these filters.'), clear);
    }
    const where = this.context.session.namespace;
    return empty(
      `There are no instances in namespace ${where} yet.`,
      'Start one here with Start, or on the command line:',
      'thole start ORCHESTRATION --id my-first --input "…"',
    );
  }

  clear() {
    for (const field of FIELDS) this.inputs[field].value = '';
    this.filter = {};
    this.changed();
    this.drawChips(this.counts ?? {});
  }

  async count() {
    const params = this.params();
    delete params.status;
    try {
      const told = await get('/counts', params);
      this.counts = told.counts ?? {};
      this.exact = told.exact !== false;
      this.drawChips(this.counts);
    } catch (error) {
      if (this.rows.length > 0) fill(this.message, errorBox(error, () => this.count()));
    }
  }

  drawChips(counts) {
    const about = this.exact === false ? '≥ ' : '';
    const chip = (status) =>
      h(
        'button',
        {
          type: 'button',
          class: `chip s-${status.toLowerCase()}`,
          'aria-pressed': same(this.filter.status, status),
          title: MEANING[status],
          'data-status': status,
          onclick: () => this.setStatus(status),
        },
        h('span', { class: 'dot', 'aria-hidden': 'true' }),
        status,
        h('span', { class: 'count' }, counts[status] === undefined ? '0' : about + number(counts[status])),
      );
    const focused = this.chips.contains(document.activeElement) ? document.activeElement.dataset.status : null;
    fill(this.chips, STATUSES.map(chip));
    if (focused) this.chips.querySelector(`[data-status="${focused}"]`)?.focus();
    fill(this.batch, batchMenu(this.context, () => this.params(), () => this.refresh()));
  }

  /** Rows on the first page come with it; one behind it is read alone. */
  onChanged(data) {
    for (const ms of LATER_MS) setTimeout(() => !this.closed && this.refresh(), ms);
    this.recount();
    const at = data.instance === undefined ? -1 : this.rows.findIndex((row) => row.instance === data.instance);
    if (at >= PAGE_ROWS) this.readRow(data.instance);
  }

  async readRow(id) {
    try {
      const row = await get(instancePath(id));
      const at = this.rows.findIndex((old) => old.instance === id);
      if (at < 0) return;
      this.rows = this.rows.with(at, row);
      this.draw();
    } catch {
      // deleted meanwhile: the next reading of the list says so
    }
  }

  close() {
    this.closed = true;
    this.busy?.abort();
    for (const fn of [this.refresh, this.recount, this.typed]) fn.stop();
    this.table.close();
  }
}

const same = (a, b) => String(a ?? '').toLowerCase() === b.toLowerCase();

export function mount(context) {
  const page = new ListPage(context);
  return {
    title: 'Instances',
    node: page.node,
    table: page.table,
    search: page.inputs.prefix,
    changed: (data) => page.onChanged(data),
    reconnected: () => page.onChanged({ many: true }),
    tick: () => page.table.draw(),
    close: () => page.close(),
  };
}
