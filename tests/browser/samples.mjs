// A shop's namespace as a mock has it: some of everything.
import { instance } from './mock.mjs';

const iso = (ms) => new Date(ms).toISOString();
const STATUSES = ['Running', 'Completed', 'Completed', 'Completed', 'Failed', 'Cancelled', 'Paused', 'Completed'];
const WORKERS = ['w-eu-1-5f0c2a', 'w-eu-2-91bd77'];

function row(i, from) {
  const status = STATUSES[i % STATUSES.length];
  const created = from - i * 41000;
  const ended = status !== 'Running' && status !== 'Paused';
  return instance(`order-${100000 - i}`, {
    orchestration: i % 5 === 4 ? 'cart' : 'checkout',
    version: (i % 3) + 1,
    status,
    created: iso(created),
    updated: iso(created + (ended ? 900 + ((i * 7919) % 90000) : 0)),
    detail: status === 'Failed' ? 'the payment took too long' : '',
    ...(status === 'Running' ? { custom_status: 'waits for the payment' } : {}),
    partition: i % 8,
    turns: (i % 9) + 1,
  });
}

export function rows(count, from = Date.now() - 5000) {
  return Array.from({ length: count }, (_, i) => row(i, from));
}

/** A history with each kind of row that the timeline draws. */
export function story(start = Date.now() - 40000) {
  const events = [];
  let at = start;
  const add = (kind, after, more = {}) => {
    at += after;
    events.push({ execution: 1, id: events.length + 1, kind, data: '', time: iso(at), turn: events.length, sequence: events.length + 2, ...more });
    return events.length;
  };
  const done = (ref, after, data, more = {}) => add('ActivityCompleted', after, { ref, data, try: 1, worker: WORKERS[ref % 2], host: 'eu-1.example', run_ended: iso(at + after), ...more });
  add('Started', 0, { name: 'checkout', version: 2, data: '{"order":7,"items":[{"sku":"tea","count":2},{"sku":"cup","count":1}],"total":4150}', request_id: 'a8c1' });
  const reserve = add('ActivityScheduled', 0, { name: 'reserve', queue: 'default', data: '{"order":7}' });
  const fraud = add('ActivityScheduled', 0, { name: 'fraud_check', queue: 'slow', data: '{"order":7}' });
  done(reserve, 1800, '{"place":"B-12"}', { run_started: iso(start + 500) });
  const child = add('ChildScheduled', 200, { name: 'shipment', other: 'order-7-shipment', data: '{"to":"Oslo"}' });
  add('CustomStatusSet', 100, { data: 'waits for the payment' });
  const charge = add('ActivityScheduled', 100, { name: 'charge', queue: 'payments', data: '{"amount":4150,"currency":"EUR"}' });
  add('ActivityTryFailed', 2500, { ref: charge, try: 1, status: 'APP', error_type: 'declined', data: 'card declined', due: iso(at + 4500), worker: WORKERS[0] });
  add('ActivityTryStarted', 2000, { ref: charge, try: 2, name: 'charge', queue: 'payments' });
  add('ActivityTryFailed', 3000, { ref: charge, try: 2, status: 'UNAVAILABLE', data: 'bank is away', due: iso(at + 7000), worker: WORKERS[1] });
  done(fraud, 1000, '{"score":0.02}', { run_started: iso(start + 2500) });
  add('ActivityTryStarted', 3000, { ref: charge, try: 3, name: 'charge', queue: 'payments' });
  const limit = add('TimerCreated', 0, { due: iso(at + 60000) });
  add('EventAwaited', 0, { name: 'approved' });
  add('EventReceived', 4000, { name: 'approved', data: '{"by":"grace"}', request_id: 'b77e' });
  add('ChildCompleted', 1500, { ref: child, data: '{"parcel":"NO-4411"}' });
  const mail = add('ActivityScheduled', 300, { name: 'send_mail', queue: 'default', data: '{"template":"receipt"}' });
  add('CancelRequested', 6000, { data: 'customer changed their mind', request_id: 'c012', actor: 'grace', actor_authenticated: true, client: 'thole' });
  add('ActivityCancelled', 0, { ref: charge, data: 'customer changed their mind', cause: 'requested', run_ended: iso(at + 12), worker: WORKERS[0] });
  add('TimerCancelled', 0, { ref: limit, data: 'customer changed their mind', cause: 'requested' });
  add('ActivityScheduled', 0, { name: 'refund', queue: 'payments', data: '{"amount":4150}' });
  add('TimerCreated', 0, { due: iso(at + 60000) });
  add('EventAwaited', 0, { name: 'parcel_back' });
  done(mail, 900, '', {});
  return events;
}

export function longStory(count) {
  const start = Date.now() - count * 20;
  const events = [{ execution: 1, id: 1, kind: 'Started', name: 'sweep', data: '', time: iso(start), turn: 1, sequence: 2 }];
  for (let i = 1; events.length < count; i++) {
    const id = events.length + 1;
    const at = start + i * 40;
    events.push({ execution: 1, id, kind: 'ActivityScheduled', name: `step_${i % 7}`, queue: 'default', data: `{"n":${i}}`, time: iso(at), turn: i, sequence: i + 2 });
    events.push({ execution: 1, id: id + 1, kind: 'ActivityCompleted', ref: id, try: 1, data: `done ${i}`, time: iso(at + 35), turn: i, sequence: i + 2 });
  }
  return events.slice(0, count);
}

export const queues = [
  { queue: 'default', waiting: 12, running: 7, outside: 1, poisoned: 1, limit: null, lease_ms: 30000, oldest_ms: 1400, delivered: 61055,
    workers: [{ worker: WORKERS[0], activities: 5, silent_ms: 800 }, { worker: WORKERS[1], activities: 2, silent_ms: 41000 }],
    serving: [{ worker: WORKERS[0], slots: 16 }], activities: [{ name: 'reserve', count: 9, known: true }, { name: 'weigh', count: 3, known: false }] },
  { queue: 'payments', waiting: 340, running: 16, outside: 0, poisoned: 0, limit: 16, lease_ms: 30000, oldest_ms: 93000, delivered: 9120, each_s: 41.5,
    workers: [{ worker: WORKERS[0], activities: 16, silent_ms: 300 }], serving: [{ worker: WORKERS[0], slots: 16 }], activities: [{ name: 'charge', count: 356, known: true }] },
  { queue: 'slow', waiting: 3, running: 0, outside: 0, poisoned: 0, limit: null, lease_ms: 30000, oldest_ms: 3725000, delivered: 0, workers: [], serving: [], activities: [{ name: 'fraud_check', count: 3, known: false }] },
];
export const poisoned = [
  { instance: 'order-99992', execution: 1, activity_id: 4, activity: 'render_label', queue: 'default', try: 1, claims: 3, last_worker: WORKERS[1],
    since: iso(Date.now() - 240000), until: iso(Date.now() + 86400000), reason: 'its worker was killed by signal 11 (SIGSEGV) 3 times' },
];
export const nodes = [
  { node: 'engine-a-10.0.0.4', role: 'engine', heartbeat_ms: 1086, started: iso(Date.now() - 7200000), orchestrations: 4, partitions: [0, 1, 2, 3] },
  { node: 'engine-b-10.0.0.5', role: 'engine', heartbeat_ms: 8020, started: iso(Date.now() - 40000), orchestrations: 4, partitions: [4, 5, 6] },
  { node: WORKERS[0], role: 'worker', queue: 'default', slots: 16, activities: ['reserve', 'charge', 'ship', 'refund'] },
  { node: WORKERS[1], role: 'worker', queue: 'payments', slots: 16, activities: ['charge', 'refund'] },
];
export const partitions = Array.from({ length: 8 }, (_, p) => ({
  partition: p, owner: p === 7 ? null : p < 4 ? 'engine-a-10.0.0.4' : 'engine-b-10.0.0.5', epoch: p < 4 ? 1 : 2,
  opened_by: p < 4 ? 'engine-a-10.0.0.4' : 'engine-b-10.0.0.5', opened: iso(Date.now() - (p < 4 ? 7200000 : 30000)), inbox_lag: p === 7 ? 41 : 0, projection_lag: p === 5 ? 1200 : 0 }));
export const rejected = [
  { number: 3, code: 'malformed', reason: 'the body is no Start: field 3 has wire type 5', subject: 'thole.shop.in.3.start.b3JkZXItNw', partition: 3, sequence: 512,
    time: iso(Date.now() - 600000), bytes: 42, payload_base64: 'CgVoZWxsbwD/gIEKAg==' },
];

export function shop() {
  const asked = { asked_for: iso(Date.now() - 15000) };
  const waiting = [
    { kind: 'activity', id: 21, name: 'refund', ...asked, queue: 'payments', try: 1, state: 'running', text: `worker ${WORKERS[0]} has it, heard of 1 s ago`, worker: WORKERS[0], silent_ms: 1100 },
    { kind: 'timer', id: 22, ...asked, due: iso(Date.now() + 45000) },
    { kind: 'event', id: 23, ...asked, name: 'parcel_back' },
  ];
  const input = '{"order":7,"items":[{"sku":"tea","count":2},{"sku":"cup","count":1}],"total":4150}';
  const first = instance('order-7', { version: 2, parent: 'basket-3', custom_status: 'waits for the payment', created: iso(Date.now() - 40000), open_activities: 2, open_timers: 1, turns: 9, pending: waiting, source: 'sell (checkout.c:61)', input, input_bytes: input.length });
  const child = instance('order-7-shipment', { orchestration: 'shipment', parent: 'order-7', status: 'Completed', created: iso(Date.now() - 38000), updated: iso(Date.now() - 12000) });
  const stuck = [
    instance('order-31', { status: 'Stuck', detail: "history has 'refund' where the code asks for 'charge' (checkout.c:61): event 8 of execution 1" }),
    instance('order-32', { status: 'Stuck', detail: 'the code crashed twice: signal 11 (SIGSEGV) in turn 4' }),
    instance('import-9', { status: 'Waiting', orchestration: 'import', version: 3, detail: "engine n-1, which owned partition 3 then, does not have version 3 of orchestration 'import'" }),
  ];
  return {
    instances: [first, child, ...stuck, ...rows(300)],
    histories: { 'order-7': story() },
    queues, poisoned, nodes, partitions, rejected,
    orchestrations: ['cart', 'checkout', 'checkout@2', 'shipment'],
  };
}
