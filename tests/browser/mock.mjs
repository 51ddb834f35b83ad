// A server that speaks the contract of the console (docs/console.md) from memory: for 100,000 rows, payloads that no
// program would write, and answers that a real server gives rarely.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { join, extname, basename } from 'node:path';

const ASSETS = join(import.meta.dirname, '../../console/assets');
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
const CSRF = 'csrf-of-the-mock';
const iso = (ms) => new Date(ms).toISOString();

export function instance(id, more = {}) {
  const created = more.created ?? iso(Date.now() - 60000);
  return {
    instance: id,
    orchestration: 'checkout',
    version: 1,
    status: 'Running',
    execution: 1,
    created,
    updated: created,
    detail: '',
    turns: 1,
    partition: 0,
    open_activities: 0,
    open_timers: 0,
    input: '',
    input_bytes: 0,
    pending: [],
    ...more,
  };
}

export class Mock {
  constructor(state = {}) {
    this.session = { namespace: 'shop', version: '0.1.0', actions: true, user: 'ada', ...state.session };
    this.instances = state.instances ?? [];
    this.histories = state.histories ?? {};
    this.queues = state.queues ?? [];
    this.since = Date.now();
    this.poisoned = state.poisoned ?? [];
    this.nodes = state.nodes ?? [];
    this.partitions = state.partitions ?? [];
    this.rejected = state.rejected ?? [];
    this.orchestrations = state.orchestrations ?? ['checkout', 'cart'];
    this.refuse = {}; // path -> {status, problem}
    this.posts = [];
    this.streams = new Set();
  }

  async start() {
    this.server = createServer((request, response) => this.serve(request, response));
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async stop() {
    const closed = new Promise((done) => this.server.close(done)); // first: none may come behind those that are closed
    for (const { response } of this.streams) response.end();
    this.server.closeAllConnections();
    await closed;
  }

  // ---- what happens ----

  send(type, data, id) {
    for (const { instance: followed, response } of this.streams) {
      if (type !== 'changed' && followed !== data.follow) continue;
      response.write(`event: ${type}\n${id ? `id: ${id}\n` : ''}data: ${JSON.stringify(data.event ?? data)}\n\n`);
    }
  }

  changed(id) {
    this.send('changed', { instance: id });
  }

  append(id, event) {
    const events = (this.histories[id] ??= []);
    const whole = { execution: 1, id: events.length + 1, data: '', time: iso(Date.now()), turn: 1, sequence: events.length + 2, ...event };
    events.push(whole);
    this.send('history', { follow: id, event: whole }, whole.sequence);
  }

  // ---- serving ----

  async serve(request, response) {
    const url = new URL(request.url, this.url);
    response.setHeader('Content-Security-Policy', CSP);
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('Referrer-Policy', 'no-referrer');
    try {
      if (url.pathname.startsWith('/api/v1/')) await this.api(request, response, url);
      else await this.asset(response, url.pathname.startsWith('/assets/') ? basename(url.pathname) : 'index.html');
    } catch (error) {
      problem(response, error.code === 'ENOENT' ? 404 : 500, { title: String(error.message) });
    }
  }

  async asset(response, name) {
    const bytes = await readFile(join(ASSETS, name));
    response.writeHead(200, { 'content-type': TYPES[extname(name)] });
    response.end(bytes);
  }

  async api(request, response, url) {
    const path = url.pathname.slice('/api/v1'.length);
    const refused = this.refuse[path];
    if (refused) return problem(response, refused.status, refused.problem);
    if (request.method === 'POST') return this.post(request, response, path);
    const lists = {
      '/session': () => ({ ...this.session, csrf: CSRF, now_ms: Date.now() }),
      '/instances': () => this.list(url.searchParams),
      '/counts': () => this.counts(url.searchParams),
      '/queues': () => ({ queues: this.queues.map((q) => this.handedOut(q)), complete: true }),
      '/quarantine': () => ({ poisoned: this.poisoned, complete: true }),
      '/nodes': () => ({ nodes: this.nodes, complete: true }),
      '/defects': () => ({
        defects: [
          { object: 'hist', text: 'stream THOLE_shop_HIST_0 has max_age 1d, but no limit is needed', remedy: 'thole doctor -n shop --fix', warns: false },
        ],
        complete: true,
      }),
      '/mended': () => ({ mended: [{ object: 'work', name: 'stream THOLE_shop_WORK', at: new Date().toISOString() }], complete: true }),
      '/room': () => ({
        room: [
          { what: 'account', bytes: 3e9, bytes_max: 4e9, span_ms: 3600000, bytes_per_day: 5e8, days_left: 2 },
          { what: 'hist', streams: 8, bytes: 820, span_ms: 1000 },
        ],
        complete: true,
      }),
      '/partitions': () => ({ partitions: this.partitions, complete: true }),
      '/rejected': () => ({ rejected: this.rejected, complete: true }),
      '/orchestrations': () => ({ orchestrations: this.orchestrations }),
    };
    if (path === '/stream') return this.stream(request, response, url);
    if (lists[path]) return json(response, lists[path]());
    return this.one(response, path, url.searchParams);
  }

  filtered(params) {
    const want = (name) => params.get(name);
    const status = want('status')?.toLowerCase();
    return this.instances.filter(
      (i) =>
        (!status || i.status.toLowerCase() === status) &&
        (!want('prefix') || i.instance.startsWith(want('prefix'))) &&
        (!want('orchestration') || i.orchestration === want('orchestration')) &&
        (!want('custom_status') || i.custom_status === want('custom_status')) &&
        (!want('parent') || i.parent === want('parent')),
    );
  }

  /** A queue that hands out so many each second. */
  handedOut(queue) {
    return { ...queue, delivered: queue.delivered + Math.round(((Date.now() - this.since) / 1000) * (queue.each_s ?? 0)) };
  }

  list(params) {
    const rows = this.filtered(params);
    const from = Number(params.get('next') ?? 0);
    const to = from + Number(params.get('limit') ?? 100);
    const slim = rows.slice(from, to).map(({ input, input_bytes, output, output_bytes, pending, ...row }) => row);
    return { instances: slim, complete: to >= rows.length, ...(to < rows.length ? { next: String(to) } : {}) };
  }

  counts(params) {
    params.delete('status');
    const counts = {};
    for (const { status } of this.filtered(params)) counts[status] = (counts[status] ?? 0) + 1;
    return { counts, exact: true };
  }

  one(response, path, params) {
    const [, id, what, sequence] = /^\/instances\/([^/]+)(?:\/(history|source)(?:\/(\d+)\/data)?)?$/.exec(path) ?? [];
    const name = decodeURIComponent(id ?? '');
    const row = this.instances.find((i) => i.instance === name);
    if (row && what === 'source') return json(response, row.source ? { instance: name, source: row.source } : { instance: name, source: null, source_error: 'no engine answers' });
    if (!row) return problem(response, 404, notFound(name));
    if (sequence) return this.data(response, name, Number(sequence), params.get('id'));
    if (!what) return json(response, row);
    const events = this.histories[name] ?? [];
    const from = Number(params.get('from') ?? 0);
    const limit = Number(params.get('limit') ?? 1000);
    const rest = events.filter((e) => e.sequence >= from);
    return json(response, { events: rest.slice(0, limit), next: rest.length > limit ? rest[limit].sequence : null });
  }

  data(response, id, sequence, want) {
    const event = this.histories[id].find((e) => e.sequence === sequence && String(e.id) === want);
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-disposition': 'attachment' });
    response.end(event.whole);
  }

  stream(request, response, url) {
    const entry = { instance: url.searchParams.get('instance'), response };
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write(': ping\n\n');
    this.streams.add(entry);
    request.on('close', () => this.streams.delete(entry));
  }

  async post(request, response, path) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}');
    this.posts.push({ path, body, headers: request.headers });
    if (request.headers['x-thole-csrf'] !== CSRF) return problem(response, 403, { title: 'the token of the page is wrong' });
    if (!this.session.actions) return problem(response, 403, { title: 'read-only', detail: this.session.actions_why });
    if (path === '/batch') return json(response, this.batch(body));
    if (path === '/instances') return json(response, this.begin(body));
    return this.control(response, path, body);
  }

  begin(body) {
    const id = body.id ?? `id-${this.instances.length}`;
    this.instances.unshift(instance(id, { orchestration: body.orchestration, input: body.input ?? '', input_bytes: body.input?.length ?? 0 }));
    this.changed(id);
    return { instance: id };
  }

  control(response, path, body) {
    const [, id, verb] = /^\/instances\/([^/]+)\/([a-z]+)$/.exec(path) ?? [];
    const row = this.instances.find((i) => i.instance === decodeURIComponent(id ?? ''));
    if (path.startsWith('/quarantine/')) this.poisoned = this.poisoned.filter((p) => p.instance !== body.instance);
    else if (!row) return problem(response, 404, notFound(decodeURIComponent(id ?? '')));
    else if (verb === 'query') return json(response, { output: JSON.stringify({ asked: body.name, items: [1, 2] }) });
    else if (verb === 'cancel' || verb === 'terminate') this.end(row, verb === 'cancel' ? 'Cancelled' : 'Terminated', body.reason);
    return json(response, { accepted: true });
  }

  end(row, status, reason) {
    row.status = status;
    row.detail = reason ?? '';
    row.updated = iso(Date.now());
    row.pending = [];
    this.changed(row.instance);
  }

  batch({ action, filter, preview }) {
    const rows = this.filtered(new URLSearchParams(filter)).filter((i) => (action === 'retry' ? i.status === 'Stuck' : /Running|Waiting|Paused|Stuck/.test(i.status)));
    if (preview) return { count: rows.length, sample: rows.slice(0, 10).map(({ instance: id, status }) => ({ instance: id, status })) };
    for (const row of rows) this.end(row, action === 'cancel' ? 'Cancelled' : 'Terminated', 'batch');
    return { done: rows.length, failed: 0, errors: [] };
  }
}

const notFound = (id) => ({
  type: 'about:blank',
  title: 'not found',
  detail: `there is no instance "${id}" in namespace shop`,
  code: 'NOT_FOUND',
  hint: 'thole list',
});

function json(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

function problem(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/problem+json' });
  response.end(JSON.stringify({ status, ...value }));
}
