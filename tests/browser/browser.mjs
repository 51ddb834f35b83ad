// The browser that the tests and the screenshots drive: $CHROMIUM, with playwright-core of $THOLE_BROWSER_TOOLS.
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const tools = process.env.THOLE_BROWSER_TOOLS ?? join(import.meta.dirname, '../../build/tools/browser');
const require = createRequire(join(tools, 'node_modules/'));
const { chromium } = require('playwright-core');
export const axeSource = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');

export function launch() {
  // Debian's start script; the sandbox cannot be had by root.
  const args = ['--disable-gpu', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
}

/** A page that fails its test when a script fails or the content security policy was broken. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, timezoneId: 'Europe/Oslo', locale: 'en-GB', ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(error.stack ?? String(error)));
  page.on('console', (message) => message.type() === 'error' && !/status of [345]\d\d|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION/.test(message.text()) && page.faults.push(message.text()));
  await page.goto(url);
  return page;
}

/** Gives a function: what the page's main thread has had so far. {cpuMs: without other work on the machine, layouts: how often}. */
export async function meter(page) {
  const debuggerSession = await page.context().newCDPSession(page);
  await debuggerSession.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await debuggerSession.send('Performance.getMetrics');
    const value = (name) => metrics.find((m) => m.name === name).value;
    return { cpuMs: value('TaskDuration') * 1000, layouts: value('LayoutCount') };
  };
}

/** What axe-core finds that is serious or worse. */
export async function seriousFaults(page) {
  await page.evaluate(axeSource); // in the page by the debugger: the policy stays as it is
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`);
}
