// The pages with thole dev's console: real nats-server, real Postgres, a real engine and worker (examples/checkout).
import test, { before, after, afterEach } from 'node:test';
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Namespace } from './namespace.mjs';
import { launch, open, seriousFaults } from './browser.mjs';
import { within, FIRST_PAINT_MS, LIVE_MS } from './bounds.mjs';

const SLOW = 'order=1;pay_ms=600000;limit_ms=600000'; // its payment runs until it is cancelled
let browser;
let real;
let page;

before(async () => {
  real = new Namespace();
  await real.start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await real?.stop();
});
afterEach(async () => {
  const faults = page?.faults ?? [];
  await page?.context().close();
  page = null;
  assert.deepEqual(faults, [], 'a script failed, or the policy was broken');
});

async function at(path) {
  page = await open(browser, real.url + path);
  await page.waitForSelector('.live.on');
}
const text = (selector) => page.innerText(selector);
/** The time, of this machine's clock, at which this text stands in the page. */
const drawn = (words) =>
  page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const look = () => document.getElementById('main').textContent.includes(wanted) && resolve(Date.now());
        new MutationObserver(look).observe(document.getElementById('main'), { childList: true, subtree: true, characterData: true });
        look();
      }),
    words,
  );

test('an instance is started, followed, cancelled with a reason, and what comes too late is refused', async () => {
  await at('/start');
  await page.fill('.start input >> nth=0', 'checkout');
  await page.fill('.start input >> nth=2', 'from-page');
  await page.fill('.start textarea', SLOW);
  await page.click('.start button[type=submit]');
  await page.waitForURL(/instances\/from-page/);
  await page.waitForSelector('.tl-label:has-text("charge")');
  await page.waitForSelector('.pending:has-text("activity charge in queue default, try 1")');
  await page.click('text=Terminate…');
  await page.fill('dialog input >> nth=1', 'from-page');
  await real.thole('cancel', 'from-page', '--reason', 'changed their mind');
  await page.waitForSelector('.title-line .badge:has-text("Cancelled")');
  await page.click('dialog button.danger');
  await page.waitForSelector('dialog .error:has-text("ended as Cancelled")');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.tl-notes:has-text("changed their mind; it cancelled 2")');
  assert.match(await text('#main'), /Completed|Cancelled/);
});

test('the page of an instance shows within 200 ms what happens to it', async () => {
  await within(LIVE_MS, 'from a request to cancel to its mark', async (n) => {
    await real.thole('start', 'checkout', '--id', `live-1-${n}`, '--input', SLOW);
    await page?.context().close();
    await at(`/instances/live-1-${n}`);
    await page.waitForSelector('.tl-label:has-text("charge")');
    const seen = drawn('quick, now');
    const { requested_us: from } = JSON.parse(await real.thole('cancel', `live-1-${n}`, '--reason', 'quick, now', '-o', 'json'));
    return (await seen) - from / 1000;
  });
});

test('the list shows within 200 ms an instance that has begun', async () => {
  await at('/instances');
  await page.waitForSelector('.vt-body .vt-row');
  await within(LIVE_MS, 'from the first turn to the row', async (n) => {
    const id = n === 0 ? 'live-2' : `live-2-${n}`;
    const seen = drawn(id);
    await real.thole('start', 'checkout', '--id', id, '--input', SLOW);
    const shownAt = await seen;
    const [first] = JSON.parse(await real.thole('history', id, '-o', 'json')).events;
    return shownAt - Date.parse(first.time);
  });
});

test('signal of an event, query and its refusal', async () => {
  await at('/instances/live-2');
  await page.click('text=Signal…');
  await page.fill('dialog input', 'greeting');
  await page.fill('dialog textarea', '<b>hallo</b> \u0007');
  await page.click('dialog button:has-text("Send")');
  await page.waitForSelector('.events .vt-row:has-text("EventReceived")');
  assert.match(await text('.events .vt-row:has-text("EventReceived")'), /<b>hallo<\/b> \\x07/);
  await page.click('text=Query…');
  await page.fill('dialog input', 'nothere');
  await page.click('dialog button:has-text("Ask")');
  await page.waitForSelector("dialog .error:has-text(\"there is no query 'nothere'\")");
});

test('a payload of 256 KiB, and one that is not UTF-8', async () => {
  const big = 'x'.repeat(262000);
  const post = (path, body) =>
    page.evaluate(
      async ([where, what]) => {
        const { csrf } = await (await fetch('/api/v1/session')).json();
        const answer = await fetch(where, { method: 'POST', headers: { 'content-type': 'application/json', 'x-thole-csrf': csrf }, body: JSON.stringify(what) });
        return answer.status;
      },
      [path, body],
    );
  await at('/instances/live-2');
  assert.equal(await post('/api/v1/instances/live-2/signal', { name: 'big', data: big }), 200);
  assert.equal(await post('/api/v1/instances/live-2/signal', { name: 'raw', data_base64: 'gP8A' }), 200);
  await page.click('.events .vt-row:has-text("262,000") , .events .vt-row:has-text("big")');
  await page.click('text=Load all of it');
  await page.waitForFunction(() => document.querySelector('.event-detail .payload-bar').innerText.includes('262,000 bytes, text'));
  await page.click('.events .vt-row:has-text("raw")');
  await page.waitForSelector('.event-detail pre:has-text("80 ff 00")');
});

test('queues, engines, stuck, rejected: what is there, and nothing serious for axe-core', async () => {
  const expected = { '/queues': 'charge: ', '/engines': '8: 0-7', '/stuck': 'No instance is stuck', '/rejected': 'Nothing was rejected', '/instances': 'live-2', '/instances/live-2': 'charge', '/start': 'Start an instance' };
  for (const [path, words] of Object.entries(expected)) {
    await at(path);
    await page.waitForFunction((w) => document.getElementById('main').innerText.includes(w), words);
    assert.deepEqual(await seriousFaults(page), [], path);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
  page = null;
});

test('a batch cancels what fits', async () => {
  for (const id of ['b-1', 'b-2', 'b-3']) await real.thole('start', 'checkout', '--id', id, '--input', SLOW);
  await at('/instances?prefix=b-');
  await page.waitForSelector('text=b-3');
  await page.click('[data-batch=cancel]');
  await page.waitForSelector('dialog .hits:has-text("It hits 3 instances")');
  await page.fill('dialog input >> nth=0', 'all of them');
  await page.fill('dialog input >> nth=1', '3');
  await page.click('dialog button.danger');
  await page.waitForFunction(() => document.querySelectorAll('.vt-body .s-cancelled').length === 3);
});

test('a console with a token: it only reads until the right one is typed', async () => {
  const token = 'a-token-of-the-tests-0123456789';
  const file = join(real.folder, 'token');
  await writeFile(file, `${token}\n`, { mode: 0o600 });
  page = await open(browser, `${await real.console('--token-file', file)}/instances/live-2`);
  await page.waitForSelector('.read-only');
  await page.click('.read-only >> text=Enter a token…');
  await page.fill('dialog input', 'a-wrong-token-0123456789');
  await page.click('dialog button.primary');
  await page.waitForSelector('dialog .error');
  await page.fill('dialog input', token);
  await page.click('dialog button.primary');
  await page.waitForSelector('text=Pause…');
  await page.click('text=Pause…');
  await page.click('dialog button.primary');
  await page.waitForSelector('.title-line .badge:has-text("Paused")');
  await page.waitForSelector('text=Resume…');
  await page.click('text=Sign out');
  await page.waitForSelector('.read-only');
});

test('100,000 instances: the first rows within 500 ms', async () => {
  await real.sql(
    `INSERT INTO instances SELECT (jsonb_populate_record(i, jsonb_build_object('instance', 'bulk-' || n, 'status', 4, 'created_ms', i.created_ms - n * 10))).*
     FROM instances AS i, generate_series(1, 100000) AS n WHERE i.instance = 'b-1'`,
  );
  await at('/instances');
  await within(FIRST_PAINT_MS, 'first rows of 100,000', async () => {
    await page.goto(`${real.url}/instances`);
    await page.waitForSelector('.vt-body .vt-row:nth-child(5)');
    return page.evaluate(() => performance.getEntriesByName('rows')[0].startTime);
  });
  await page.waitForFunction(() => /[1-9]/.test(document.querySelector('[data-status=Completed] .count').innerText));
});
