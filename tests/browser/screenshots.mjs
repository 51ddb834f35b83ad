// Pictures of the pages, for docs/console.md: node screenshots.mjs FOLDER
import { join } from 'node:path';
import { Mock } from './mock.mjs';
import { shop } from './samples.mjs';
import { launch, open } from './browser.mjs';

const SHOTS = [
  { name: 'instances', path: '/instances', height: 560 },
  { name: 'instance', path: '/instances/order-7?event=1.7', height: 1280 },
  { name: 'queues-dark', path: '/queues', height: 520, colorScheme: 'dark', text: '/s' },
  { name: 'phone', path: '/instances/order-7', width: 400, height: 800 },
];
const SETTLE_MS = 700;

const mock = await new Mock(shop()).start();
const browser = await launch();
for (const { name, path, width = 1200, height, colorScheme = 'light', text } of SHOTS) {
  const page = await open(browser, mock.url + path, { viewport: { width, height }, colorScheme, reducedMotion: 'reduce' });
  await page.waitForSelector('.live.on');
  if (text) await page.getByText(text).first().waitFor();
  await page.waitForTimeout(SETTLE_MS);
  await page.screenshot({ path: join(process.argv[2], `${name}.png`) });
  await page.context().close();
}
await browser.close();
await mock.stop();
