// Takes the pictures of docs/viewer.md from a trace with rewrites and one of a broken plugin.
//   usage: node screenshots.mjs --page P --packages DIR --browser B --trace TRACE --broken TRACE
//     --output DIR
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { Browser } from './test/browser.mjs';

const string = { type: 'string' };
const { values: options } = parseArgs({
  options: {
    page: string,
    packages: string,
    browser: string,
    trace: string,
    broken: string,
    output: string,
  },
});
const missing = ['page', 'packages', 'browser', 'trace', 'broken', 'output'].filter(
  (name) => !options[name],
);
if (missing.length) {
  console.error(`screenshots: missing: ${missing.map((name) => `--${name}`).join(', ')}`);
  process.exit(2);
}

/// Paths of the machine that recorded the trace become their last two parts.
const PATH = /(?<![\w.+-])\/(?:[\w.+-]+\/)+((?:[\w.+-]+\/)?[\w.+-]+\.(?:cpp|cc|h|py|rec)\b)/g;

function linesOf(trace) {
  const text = gunzipSync(readFileSync(trace)).toString().replace(PATH, '$1');
  return text.trim().split('\n');
}

const lines = linesOf(options.trace),
  broken = linesOf(options.broken);
const wrong = broken.map((line) => JSON.parse(line)).find((line) => line.t === 'finding');
const objects = lines.map((line) => JSON.parse(line));

const kernel = objects.find((line) => line.t === 'kernel' && line.run > 0 && line.flops > 1e6);
const stage = objects.find(
  (line) => line.t === 'stage' && line.run === kernel?.run && line.rewrites.length > 4,
);
const plan = objects
  .filter((line) => line.t === 'plan')
  .sort((a, b) => b.steps.length - a.steps.length)[0];

const SHOTS = [
  ['timeline', {}, async (page) => page.keyboard.press('n')],
  ['kernels', { kernel: kernel?.id }],
  ['rewrites', { stage: stage?.id, step: 2 }],
  ['graph', { plan: plan?.id, step: Math.floor((plan?.steps.length ?? 0) / 3) }],
  ['memory', { plan: plan?.id, step: Math.floor((plan?.steps.length ?? 0) / 2) }],
  ['schedules', { kernel: kernel?.id }],
];

async function take(browser, address, [view, parameters, act], name = view) {
  const search = new URLSearchParams({ view, ...parameters });
  const page = await browser.open(`${address}#${search}`, { width: 1280, height: 760 });
  await act?.(page);
  await page.waitForTimeout(1200);
  await page.evaluate(() => window.scrollTo(0, 0));
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 40,
    clip: { x: 0, y: 0, width: 1280, height: 760, scale: 0.75 },
  });
  writeFileSync(join(options.output, `viewer-${name}.webp`), Buffer.from(data, 'base64'));
  await browser.close(page);
}

const browser = new Browser({ ...options, output: mkdtempSync(join(tmpdir(), 'viewer-')) });
await browser.start();
const address = browser.write('shots', [{ title: 'plugrad train mnist', lines }]);
for (const shot of SHOTS) await take(browser, address, shot);
const guilty = browser.write('broken', [{ title: 'plugrad train mnist', lines: broken }]);
const choose = (page) => page.click('.note.wrong a');
await take(browser, guilty, ['kernels', {}, choose], 'wrong');
await browser.stop();
