// Each page in a real browser, with a mock server: with data, without, with much, and with what is hostile.
import test, { before, after, afterEach } from 'node:test';
import assert from 'node:assert/strict';
import { Mock, instance } from './mock.mjs';
import { shop, rows, longStory } from './samples.mjs';
import { launch, meter, open, seriousFaults } from './browser.mjs';
import { within, FIRST_PAINT_MS, LIVE_MS, SCROLL_MS, SCROLL_PLAIN } from './bounds.mjs';

const PATHS = ['/instances', '/instances/order-7?event=1.8', '/queues', '/engines', '/stuck', '/rejected', '/start', '/nowhere'];
let browser;
let mock;
let page;

before(async () => (browser = await launch()));
after(() => browser.close());
afterEach(async () => {
  const faults = page?.faults ?? [];
  await page?.context().close();
  await mock?.stop(); // also when the test has failed: a server that listens keeps this process
  page = mock = null;
  assert.deepEqual(faults, [], 'a script failed, or the policy was broken');
});

async function at(path, state = shop(), options = {}) {
  mock = await new Mock(state).start();
  page = await open(browser, mock.url + path, options);
  return page;
}
const settled = () => page.waitForSelector('.live.on');
const text = (selector) => page.innerText(selector);

test('each page has nothing that axe-core calls serious, in light and dark, wide and at 400 px', async () => {
  mock = await new Mock(shop()).start();
  for (const colorScheme of ['light', 'dark'])
    for (const width of [1280, 400]) {
      page = await open(browser, mock.url, { colorScheme, viewport: { width, height: 800 }, reducedMotion: 'reduce' });
      for (const path of PATHS) {
        await page.goto(mock.url + path);
        await settled();
        await page.waitForTimeout(150);
        assert.deepEqual(await seriousFaults(page), [], `${path} ${colorScheme} ${width}`);
      }
      assert.deepEqual(page.faults, []);
      await page.context().close();
    }
  page = null;
});

test('nothing is wider than the window, from 400 px to 4K', async () => {
  mock = await new Mock(shop()).start();
  for (const width of [400, 768, 3840]) {
    page = await open(browser, mock.url, { viewport: { width, height: 900 } });
    for (const path of PATHS) {
      await page.goto(mock.url + path);
      await settled();
      const over = await page.evaluate(() => document.getElementById('main').scrollWidth - document.getElementById('main').clientWidth);
      assert.ok(over <= 0, `${path} at ${width}: ${over} px too wide`);
    }
    await page.context().close();
  }
  page = null;
});

test('without data each page says what to do next', async () => {
  await at('/instances', { partitions: [] });
  const expected = {
    '/instances': 'thole start ORCHESTRATION',
    '/queues': 'thole queue list',
    '/engines': 'PROGRAM run',
    '/stuck': 'No instance is stuck',
    '/rejected': 'thole rejected',
    '/instances/none': 'there is no instance "none" in namespace shop',
  };
  for (const [path, words] of Object.entries(expected)) {
    await page.goto(mock.url + path);
    await page.waitForFunction((w) => document.getElementById('main').innerText.includes(w), words, { timeout: 5000 });
  }
});

test('100,000 instances: the first paint, and the last row', async () => {
  await at('/instances', { instances: rows(100000) });
  await within(FIRST_PAINT_MS, 'first rows of 100,000', async () => {
    await page.goto(`${mock.url}/instances`);
    await page.waitForSelector('.vt-body .vt-row:nth-child(5)');
    return page.evaluate(() => performance.getEntriesByName('rows')[0].startTime);
  });
  assert.match(await text('[data-status=Completed]'), /50,000/);
  await page.evaluate(() => (document.querySelector('.vt').scrollTop = 1e9));
  await page.waitForFunction(() => document.querySelector('.vt').getAttribute('aria-rowcount') > 300);
  const drawn = await page.locator('.vt-body .vt-row').count();
  assert.ok(drawn < 80, `${drawn} rows exist`);
});

test('filters are in the address, and chips count', async () => {
  await at('/instances');
  await settled();
  await page.fill('input[type=search]', 'order-99');
  await page.click('[data-status=Failed]');
  await page.waitForURL(/prefix=order-99&status=Failed/);
  await page.waitForFunction(() => [...document.querySelectorAll('.vt-body .badge')].every((b) => b.innerText === 'Failed'));
  await page.goto(page.url());
  assert.equal(await page.inputValue('input[type=search]'), 'order-99');
  assert.equal(await page.getAttribute('[data-status=Failed]', 'aria-pressed'), 'true');
  await page.fill('input[type=search]', 'zzz');
  await page.click('text=Clear the filters');
  await page.waitForSelector('text=order-7');
});

test('the list shows within 200 ms what has happened', async () => {
  await at('/instances');
  await settled();
  await page.waitForSelector('text=order-7');
  await page.waitForTimeout(300);
  await within(LIVE_MS, 'a new row', async (n) => {
    const seen = page.waitForSelector(`text=order-new-${n}`);
    const from = performance.now();
    mock.instances.unshift(instance(`order-new-${n}`));
    mock.changed(`order-new-${n}`);
    await seen;
    return performance.now() - from;
  });
});

test('one instance follows its history, within 200 ms, and draws it', async () => {
  await at('/instances/order-7');
  await settled();
  await page.waitForSelector('.events .vt-body .vt-row');
  await page.waitForTimeout(300);
  await within(LIVE_MS, 'a new event', async (n) => {
    const seen = page.waitForSelector(`text=${25 + n} events`);
    const from = performance.now();
    mock.append('order-7', { kind: 'ActivityScheduled', name: 'thank', queue: 'default' });
    await seen;
    return performance.now() - from;
  });
  await page.waitForFunction(() => [...document.querySelectorAll('.tl-label')].some((n) => n.textContent === 'thank'));
  assert.match(await text('.tl-notes'), /customer changed their mind; it cancelled 2; charge stopped after 12 ms/);
});

test('an event can be linked to, and its payload read', async () => {
  await at('/instances/order-7?event=1.7');
  await page.waitForSelector('.event-detail h3:has-text("charge")');
  assert.match(await text('.event-detail pre'), /"amount": 4150,\n/);
  assert.equal(await page.locator('.tl-row.picked').count(), 1);
  await page.locator('.tl-row').first().click();
  await page.waitForURL(/event=1\.(2|4)/);
  await page.click('.pending .link >> nth=0');
  await page.waitForURL(/event=1\.21/);
});

const STEPS = 60;

/** Runs in the page: both tables, drawn at once at each step. */
function scrollBoth(steps) {
  const [events, timeline] = [document.querySelector('.vt.events'), document.querySelector('.tl-scroll')];
  for (let i = 1; i <= steps; i++) {
    events.scrollTop = i * 5000;
    timeline.scrollTop = i * 2000;
    for (const box of [events, timeline]) box.dispatchEvent(new Event('scroll'));
    void document.body.offsetHeight;
  }
}

/** Runs in the page: as much text, made and laid out without any of the console's code. It says how fast the machine is. */
function plainSteps(steps) {
  const box = document.body.appendChild(document.createElement('div'));
  for (let i = 0; i < steps; i++) {
    box.replaceChildren();
    for (let n = 0; n < 56; n++) {
      const row = box.appendChild(document.createElement('div'));
      row.style.display = 'flex';
      for (let cell = 0; cell < 5; cell++) row.appendChild(document.createElement('div')).textContent = `${i} ${n} ${cell}`;
    }
    void document.body.offsetHeight;
  }
  box.remove();
}

test('10,000 events stay smooth', async () => {
  const state = { instances: [instance('long')], histories: { long: longStory(10000) } };
  await at('/instances/long', state);
  await page.waitForSelector('text=10,000 events', { timeout: 60000 });
  const used = await meter(page);
  const aStep = async (script) => {
    const from = await used();
    await page.evaluate(script, STEPS);
    const to = await used();
    return { ms: (to.cpuMs - from.cpuMs) / STEPS, layouts: (to.layouts - from.layouts) / STEPS };
  };
  const plain = await aStep(plainSteps);
  const limit = Math.max(SCROLL_MS, SCROLL_PLAIN * plain.ms);
  await within(limit, 'a step of scrolling through 10,000 events, of the processor', async () => {
    const { ms, layouts } = await aStep(scrollBoth);
    assert.ok(layouts < 2.5, `${layouts} layouts a step: one for each of the two, when nothing is read behind what was written`);
    return ms;
  });
  assert.ok((await page.locator('.vt-body .vt-row').count()) < 80);
  assert.ok((await page.locator('.tl-row').count()) < 60);
});

test('hostile payloads are text', async () => {
  const nasty = '<script>window.broken=1</script><img src=x onerror="window.broken=1">\u001b[31m\u0000\u202eevil';
  const big = `{"k":"${'x'.repeat(65536)}`;
  const state = {
    instances: [instance(nasty, { detail: nasty, custom_status: nasty, orchestration: nasty, status: 'Failed', input: nasty, input_bytes: nasty.length, output: nasty, parent: nasty })],
    histories: { [nasty]: [
      { execution: 1, id: 1, kind: nasty, name: nasty, data: nasty, time: new Date().toISOString(), turn: 1, sequence: 2 },
      { execution: 1, id: 2, kind: 'EventReceived', name: nasty, data_base64: 'gP8APHNjcmlwdD4=', time: new Date().toISOString(), turn: 1, sequence: 3 },
      { execution: 1, id: 3, kind: 'EventReceived', name: 'big', data: big, data_bytes: 262144, time: new Date().toISOString(), turn: 1, sequence: 4, whole: `${big}${'y'.repeat(262144 - big.length)}` },
    ] },
    queues: [{ queue: nasty, waiting: 1, running: 0, outside: 0, poisoned: 1, limit: null, workers: [{ worker: nasty, activities: 1, silent_ms: 1 }], serving: [], activities: [{ name: nasty, count: 1, known: false }] }],
    poisoned: [{ instance: nasty, execution: 1, activity_id: 1, activity: nasty, queue: nasty, try: 1, claims: 2, last_worker: nasty, since: 1, reason: nasty }],
    nodes: [{ node: nasty, role: 'engine', heartbeat_ms: 1, started: 1, orchestrations: 1, partitions: [0] }],
    rejected: [{ number: 1, code: nasty, reason: nasty, subject: nasty, partition: 0, sequence: 1, time: 1, bytes: 3, payload_base64: 'gP8A' }],
  };
  await at('/instances', state);
  const paths = ['/instances', `/instances/${encodeURIComponent(nasty)}`, '/queues', '/engines', '/stuck', '/rejected'];
  for (const path of paths) {
    await page.goto(mock.url + path);
    await settled();
    await page.waitForTimeout(150);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.equal(await page.locator('main script, main img').count(), 0, path);
    const shown = await page.evaluate(() => document.body.innerText);
    assert.ok(!/[\u0000\u001b\u202e]/.test(shown), `${path} has control characters`);
    if (path !== '/stuck') assert.ok(shown.includes('<script>window.broken=1</script>'), path);
  }
  await page.goto(`${mock.url}/instances/${encodeURIComponent(nasty)}?event=1.2`);
  await page.waitForSelector('.event-detail pre:has-text("80 ff 00 3c 73")');
  await page.goto(`${mock.url}/instances/${encodeURIComponent(nasty)}?event=1.3`);
  await page.click('text=Load all of it');
  await page.waitForFunction(() => document.querySelector('.event-detail pre').textContent.length >= 200000);
  assert.match(await text('.event-detail .payload-bar'), /262,144 bytes, text/);
  await page.click('text=Show all');
  assert.equal(await page.evaluate(() => document.querySelector('.event-detail pre').textContent.length), 262144);
});

test('an action, its confirmation, and its refusal', async () => {
  await at('/instances/order-7');
  await page.click('text=Cancel…');
  await page.fill('dialog input', 'too late');
  await page.click('dialog button:has-text("Cancel")');
  await page.waitForSelector('.title-line .badge:has-text("Cancelled")');
  assert.deepEqual(mock.posts[0].body, { reason: 'too late' });
  assert.equal(mock.posts[0].headers['x-thole-csrf'], 'csrf-of-the-mock');
  await page.goto(`${mock.url}/instances/order-31`);
  mock.refuse['/instances/order-31/terminate'] = { status: 409, problem: { title: 'conflict', detail: 'instance "order-31" ended as Cancelled; nothing was terminated', hint: 'thole show order-31' } };
  await page.click('text=Terminate…');
  assert.ok(await page.isDisabled('dialog button.danger'));
  await page.fill('dialog input >> nth=1', 'order-31');
  await page.click('dialog button.danger');
  assert.match(await text('dialog .error'), /ended as Cancelled; nothing was terminated\s+Try: thole show order-31/);
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' }); // it is closed behind the key's event
});

test('signal, query and start', async () => {
  await at('/instances/order-7');
  await page.click('text=Signal…');
  assert.equal(await page.inputValue('dialog input'), 'parcel_back');
  await page.fill('dialog textarea', '{"by":"me"}');
  await page.click('dialog button:has-text("Send")');
  await page.waitForFunction(() => document.getElementById('toast').textContent.includes('parcel_back sent'));
  assert.deepEqual(mock.posts[0].body, { name: 'parcel_back', data: '{"by":"me"}' });
  await page.click('text=Query…');
  await page.fill('dialog input', 'items');
  await page.click('dialog button:has-text("Ask")');
  await page.waitForSelector('dialog pre:has-text("\\"asked\\": \\"items\\"")');
  await page.keyboard.press('Escape');
  await page.click('nav >> text=Start');
  await page.fill('.start input >> nth=0', 'checkout@2');
  await page.fill('.start input >> nth=2', 'fresh 1');
  await page.fill('.start textarea', '{"order":1}');
  assert.match(await text('.command'), /thole start checkout@2 --id 'fresh 1' --input '\{"order":1\}'/);
  await page.click('.start button[type=submit]');
  await page.waitForURL(/instances\/fresh%201/);
  assert.deepEqual(mock.posts.at(-1).body, { orchestration: 'checkout', version: 2, id: 'fresh 1', input: '{"order":1}' });
});

test('a batch shows what it hits before it asks', async () => {
  await at('/instances?orchestration=checkout&status=Running');
  await page.click('[data-batch=cancel]');
  await page.waitForSelector('dialog .hits b');
  const count = Number(await text('dialog .hits b'));
  assert.ok(count > 10 && (await page.locator('dialog .sample .mono').count()) === 10);
  assert.ok(await page.isDisabled('dialog button.danger'));
  await page.fill('dialog input >> nth=1', String(count));
  await page.click('dialog button.danger');
  await page.waitForFunction(() => document.getElementById('toast').textContent.includes('instances accepted'));
  assert.deepEqual(mock.posts.map((p) => p.body.preview), [true, false]);
  assert.equal(mock.posts[1].body.expect, count);
  assert.deepEqual(mock.posts[1].body.filter, { orchestration: 'checkout', status: 'Running' });
});

test('queues have their oldest and, from two readings, their rate; partitions their lag', async () => {
  await at('/queues');
  const cell = (queue, head) => page.locator(`tr:has(th:has-text("${queue}")) td[data-head=${head}]`);
  await page.waitForSelector('td[data-head=Oldest]');
  assert.equal(await cell('payments', 'Oldest').innerText(), '1 min 33 s');
  await cell('payments', 'Rate').filter({ hasText: /^4[0-9](\.[0-9])?\/s$/ }).waitFor();
  assert.equal(await cell('slow', 'Rate').innerText(), '0/s');
  await page.goto(`${mock.url}/engines`);
  const lag = (partition, head) => page.locator(`tr:has(th:text-is("${partition}")) td[data-head="${head}"]`);
  await lag(7, 'Inbox lag').waitFor();
  assert.equal(await lag(7, 'Inbox lag').innerText(), '41');
  assert.match(await lag(5, 'Projection lag').innerText(), /^1.?200$/);
});

test('what is missing, what was made again, and for how long there is room', async () => {
  await at('/engines');
  await page.waitForSelector('text=stream THOLE_shop_HIST_0 has max_age 1d, but no limit is needed. Try: thole doctor -n shop --fix');
  await page.waitForSelector('text=stream THOLE_shop_WORK was missing and was made again');
  const cell = (what, head) => page.locator(`tr:has(th:has-text("${what}")) td[data-head="${head}"]`);
  await cell('account', 'Full in').waitFor();
  assert.equal(await cell('account', 'Full in').innerText(), '2 days');
  assert.equal(await cell('account', 'Limit').innerText(), '4.0 GB');
  assert.equal(await cell('hist (8)', 'Stored').innerText(), '820 bytes');
  assert.equal(await cell('hist (8)', 'Grows a day').innerText(), 'too early to say');
});

test('an instance shows what would let it go on, its error type and events that nothing waits for', async () => {
  const hindrances = [{ kind: 'paused', text: 'the instance is paused', remedy: 'thole resume lets it go on' }];
  const kept = Array.from({ length: 22 }, (_, i) => ({ name: `e${i}`, count: i + 1 }));
  const paused = instance('p-1', { status: 'Paused', reason: 'paused', next_step: 'of the list', hindrances, events_kept: kept });
  await at('/instances/p-1', { instances: [paused, instance('f-1', { status: 'Failed', error_type: 'declined' })] });
  await page.waitForSelector('text=thole resume lets it go on');
  assert.match(await text('.instance-head'), /e0 \(1\), e1 \(2\), .*e19 \(20\), and 2 more/);
  assert.doesNotMatch(await text('.instance-head'), /of the list/);
  await page.goto(`${mock.url}/instances/f-1`);
  await page.waitForSelector('text=declined');
});

test('where the code is, and that it is not known', async () => {
  await at('/instances/order-7');
  await page.waitForSelector('text=The code is at sell (checkout.c:61)');
  await page.waitForSelector('.children >> text=1 child: 1 Completed');
  await page.goto(`${mock.url}/instances/${mock.instances.find((i) => i.status === 'Running' && !i.source).instance}`);
  await page.waitForSelector('text=is not known: no engine answers');
});

test('quarantine: retry, and what the server refuses', async () => {
  await at('/queues');
  await page.click('[data-decide=retry]');
  await page.click('dialog button.primary');
  await page.waitForSelector('text=Nothing is in quarantine.');
  assert.deepEqual(mock.posts[0].body, { instance: 'order-99992', execution: 1, activity_id: 4, try: 1 });
});

test('read-only: no action is offered, and why is said', async () => {
  await at('/instances/order-7', { ...shop(), session: { actions: false, actions_why: 'this console is read-only: start it with --token-file' } });
  await page.waitForSelector('.read-only:has-text("start it with --token-file")');
  assert.equal(await page.locator('text=Terminate…').count(), 0);
  await page.goto(`${mock.url}/instances`);
  await settled();
  assert.equal(await page.locator('[data-batch]').count(), 0);
});

test('keys: /, j, k, Enter, Esc, g q, ?', async () => {
  await at('/instances');
  await settled();
  await page.waitForSelector('text=order-7');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
  await page.keyboard.type('order-');
  await page.waitForURL(/prefix=order-/);
  await page.keyboard.press('Enter');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  assert.match(await text('.vt-row.selected'), /order-7-shipment/);
  assert.equal(await page.evaluate(() => document.querySelector('.vt').getAttribute('aria-activedescendant')), await page.getAttribute('.vt-row.selected', 'id'));
  await page.keyboard.press('Enter');
  await page.waitForURL(/instances\/order-7-shipment/);
  await page.keyboard.press('Escape');
  await page.waitForURL(/instances\?prefix=order-/);
  await page.keyboard.press('?');
  await page.waitForSelector('dialog:has-text("next and previous row")');
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('q');
  await page.waitForURL(/queues$/);
});

test('the server goes and comes back: it says so, and reads again what it missed', async () => {
  await at('/instances');
  await settled();
  for (const { response } of mock.streams) response.destroy();
  mock.instances.unshift(instance('missed'));
  await page.waitForSelector('.live.off');
  await page.waitForSelector('text=missed', { timeout: 10000 });
  mock.refuse['/queues'] = { status: 503, problem: { title: 'unavailable', detail: 'Postgres cannot be reached: connection refused', hint: 'thole doctor' } };
  await page.click('nav >> text=Queues');
  await page.waitForSelector('.error:has-text("Postgres cannot be reached: connection refused")');
});

test('times are of the viewer, UTC when pointed at', async () => {
  await at('/instances', { instances: [instance('winter', { status: 'Completed', created: '2026-01-05T23:30:00.000Z', updated: '2026-01-05T23:30:01.000Z' })] });
  await page.waitForSelector('time');
  assert.equal(await text('.vt-body time'), '2026-01-06 00:30:00');
  assert.equal(await page.getAttribute('.vt-body time', 'title'), '2026-01-05T23:30:00.000Z (UTC)');
});
