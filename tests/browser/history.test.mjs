// The modules that need no browser: what a history says, payloads, paths, times.
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { readdirSync, readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { History } from '../../console/assets/history.js';
import { match, instanceHref } from '../../console/assets/router.js';
import { indentJson, payloadOf, hexDump } from '../../console/assets/payload.js';
import { safe, line } from '../../console/assets/dom.js';
import { spanText, toMs } from '../../console/assets/time.js';
import { ranges } from '../../console/assets/engines.js';
import { verbsFor } from '../../console/assets/actions.js';
import { parts } from '../../console/assets/timeline.js';
import { story } from './samples.mjs';

const at = (ms) => new Date(1e12 + ms).toISOString();
const event = (id, kind, ms, more) => ({ execution: 1, id, kind, time: at(ms), sequence: id + 1, turn: id, ...more });

function history(...events) {
  const all = new History();
  for (const one of events) all.add(one);
  return all;
}
const brief = (span) => `${span.kind} ${span.name} ${span.outcome} ${span.to === null ? 'open' : span.to - span.from}`;

test('tries, timers, events and children become spans', () => {
  const all = history(...story(1e12));
  assert.deepEqual(all.spans.map(brief), [
    'activity reserve completed 1800',
    'activity fraud_check completed 10700',
    'child shipment completed 17200',
    'activity charge cancelled 23300',
    'timer  cancelled 11800',
    'event approved completed 4000',
    'activity send_mail completed 6900',
    'activity refund open open',
    'timer  open open',
    'event parcel_back open open',
  ]);
  const charge = all.spans[3];
  assert.deepEqual(charge.tries.map((t) => `${t.number} ${t.outcome}`), ['1 failed', '2 failed', '3 cancelled']);
  assert.deepEqual(parts(charge).map((p) => p.look), ['failed', 'backoff', 'failed', 'backoff', 'cancelled']);
  assert.equal(charge.latency, 12);
  assert.equal(all.cancelled.spans.length, 2);
});

test('an event that came before it was awaited goes to the first that awaits it', () => {
  const all = history(
    event(1, 'EventReceived', 0, { name: 'go', data: 'a' }),
    event(2, 'EventAwaited', 50, { name: 'go' }),
    event(3, 'EventAwaited', 60, { name: 'go' }),
    event(4, 'EventAwaitCancelled', 90, { ref: 3, cause: 'explicit' }),
    event(5, 'EventReceived', 100, { name: 'go' }),
  );
  assert.deepEqual(all.spans.map(brief), ['event go completed 0', 'event go cancelled 30']);
});

test('the same event twice is there once; an end closes what is open in its execution', () => {
  const all = history(event(1, 'ActivityScheduled', 0, { name: 'a', queue: 'q' }));
  assert.equal(all.add(event(1, 'ActivityScheduled', 0, { name: 'a' })), false);
  all.add(event(2, 'Terminated', 70));
  assert.deepEqual(all.spans.map(brief), ['activity a left 70']);
  assert.equal(all.ended.outcome, 'cancelled');
});

test('where a result says when it was worked on, waiting in the queue is drawn apart', () => {
  const all = history(event(1, 'ActivityScheduled', 0, { name: 'a' }), event(2, 'ActivityCompleted', 100, { ref: 1, run_started: at(40), worker: 'w' }));
  assert.deepEqual(parts(all.spans[0]).map((p) => `${p.look} ${p.to - p.from}`), ['queued 40', 'completed 60']);
});

test('payloads: JSON keeps its digits, bytes are dumped, what was cut is known', () => {
  assert.equal(indentJson('{"n":12345678901234567890,"a":[],"s":"x,{"}'), '{\n  "n": 12345678901234567890,\n  "a": [],\n  "s": "x,{"\n}');
  assert.equal(indentJson('{broken'), null);
  assert.equal(indentJson('12'), null);
  assert.deepEqual(payloadOf({ data: 'abc', data_bytes: 70000 }, 'data'), { text: 'abc', length: 70000, cut: true });
  const raw = payloadOf({ data_base64: 'gP8A' }, 'data');
  assert.equal(hexDump(raw.bytes), `00000000  80 ff 00${' '.repeat(39)}  ...`);
});

test('control and direction characters are shown, not obeyed', () => {
  assert.equal(safe('a\u001b[31m\u202eb\u0000\n'), 'a\\x1b[31m\\u202eb\\x00\n');
  assert.equal(line('a\nb\u0085'), 'a\\nb\\x85');
});

test('paths: ids of any characters, and what is no page', () => {
  const id = 'a/b%c d?e#f';
  assert.deepEqual(match(instanceHref(id), '?event=1.2'), { page: 'instance', params: { id }, query: { event: '1.2' } });
  assert.equal(match('/').page, 'list');
  assert.equal(match('/nowhere').page, 'lost');
  assert.equal(match('/instances/%zz').params.id, '%zz');
});

test('times, ranges, verbs', () => {
  assert.deepEqual([0, 950, 1234, 61000, 3.7e6, 1e8].map(spanText), ['0 ms', '950 ms', '1.23 s', '1 min 1 s', '1 h 1 min', '1 d 3 h']);
  assert.equal(toMs('2026-11-24T15:32:12.258Z'), toMs(toMs('2026-11-24T15:32:12.258Z')));
  assert.equal(ranges([0, 1, 2, 5, 7, 8]), '0-2, 5, 7-8');
  assert.deepEqual(verbsFor('Completed'), ['query']);
  assert.ok(verbsFor('Stuck').includes('retry') && verbsFor('Paused').includes('resume'));
});

test('all of it has at most 60 KiB when compressed, and nothing from elsewhere', () => {
  const folder = new URL('../../console/assets/', import.meta.url);
  const files = readdirSync(folder).map((name) => [name, readFileSync(new URL(name, folder))]);
  const bytes = files.reduce((sum, [, content]) => sum + gzipSync(content, { level: 9 }).length, 0);
  console.log(`${files.length} files, ${bytes} bytes compressed`);
  assert.ok(bytes <= 60 * 1024, `${bytes} bytes`);
  for (const [name, content] of files) {
    const text = content.toString().replaceAll('http://www.w3.org/2000/svg', '');
    assert.ok(!/https?:|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|style="/.test(text), name);
  }
  const wanted = files.map(([name]) => name).filter((name) => name.endsWith('.js'));
  const index = readFileSync(new URL('index.html', folder), 'utf8');
  for (const name of wanted) assert.ok(index.includes(`/assets/${name}`), `index.html does not load ${name} ahead`);
});
