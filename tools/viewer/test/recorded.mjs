// Records real programs, makes their pages with `plugrad view`, and clicks through every view.
//   usage: node recorded.mjs --build DIR --packages DIR --browser B --output DIR
// Programs that are not built, or lack their data, are left out; with none the exit status is 77.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { Browser, canvasColours } from './browser.mjs';
import { percent } from '../src/format.js';
import { expectText, VIEWS } from './pages.mjs';

const string = { type: 'string' };
const { values: options } = parseArgs({
  options: {
    build: string,
    packages: string,
    browser: string,
    output: string,
    mpiexec: string,
    only: string,
  },
});
const at = (...parts) => join(options.build, ...parts);
const plugrad = at('bin', 'plugrad');

/// A plugin that the conformance suite finds at fault; every kernel with vectors is wrong on it.
function brokenPlugin() {
  const folder = join(options.output, 'plugin');
  rmSync(folder, { recursive: true, force: true });
  const script = join(import.meta.dirname, '../../../tests/guilty/mutants.py');
  const made = spawnSync(
    'python3',
    [script, options.build, '--make', 'operand-of-lanes-lost', folder],
    { encoding: 'utf8' },
  );
  assert.equal(made.status, 0, made.stderr);
  return {
    DEV: 'ACME',
    PLUGRAD_PLUGIN_PATH: `${dirname(made.stdout.trim())}:${at('lib', 'plugrad', 'plugins')}`,
    PLUGRAD_LAYERS: 'compare:with=REFERENCE:device=ACME',
    PLUGRAD_TUNE: '0',
  };
}

const PROGRAMS = [
  [
    'mnist',
    plugrad,
    ['train', 'mnist', '--model', 'small', '--steps', '4'],
    { PLUGRAD_TRACE_RULES: '1' },
  ],
  ['resnet', at('docs', 'pgr_example_resnet'), [], {}],
  ['gpt', at('docs', 'pgr_example_gpt'), [], { PLUGRAD_TRACE_RULES: '1' }],
  // two ranks, of which the first is shown
  [
    'sharded',
    options.mpiexec ?? '',
    ['-n', '2', at('tests', 'pgr_sharded_recording')],
    { DEV: 'CPU', PLUGRAD_PLUGIN_PATH: at('lib', 'plugrad', 'plugins') },
  ],
  ['broken', plugrad, ['train', 'mnist', '--model', 'small', '--steps', '1'], brokenPlugin],
];

/// The trace's lines, or null where the program could not run.
function record([name, program, parameters, settings]) {
  if (!existsSync(program)) return null;
  const trace = join(options.output, `${name}.trace`);
  rmSync(trace, { force: true });
  const set = typeof settings === 'function' ? settings() : settings;
  const env = { ...process.env, ...set, PLUGRAD_TRACE: trace };
  const done = spawnSync(program, parameters, { env, encoding: 'utf8', timeout: 100e3 });
  if (done.status !== 0 || !existsSync(trace)) {
    console.log(`left out  ${name}: ${(done.stderr || '').trim().split('\n').at(-1)}`);
    return null;
  }
  const page = join(options.output, `${name}.html`);
  const made = spawnSync(plugrad, ['view', trace, '-o', page], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
  const lines = gunzipSync(readFileSync(trace)).toString().trim().split('\n').map(JSON.parse);
  const profiled = spawnSync(plugrad, ['profile', trace, '--json'], { encoding: 'utf8' });
  assert.equal(profiled.status, 0, profiled.stderr);
  const profile = JSON.parse(profiled.stdout);
  return { name, address: pathToFileURL(page).href, lines, profile };
}

async function go(page, hash) {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
  const view = new URLSearchParams(hash.slice(1)).get('view');
  await page.waitForSelector(`.view.${view}:not([hidden])`);
}

async function assertDrawn(page, selector) {
  for (const begin = Date.now(); Date.now() - begin < 10e3;) {
    await page.waitForTimeout(100);
    if (Object.keys(await canvasColours(page, selector)).length > 5) return;
  }
  assert.fail(`${selector} is empty`);
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/// The page and `plugrad profile` agree on how long each device was busy.
async function assertUse(page, profile) {
  for (const device of profile.devices) {
    if (device.launches + device.copies === 0) continue;
    const busy = device.busy_seconds / profile.seconds;
    const text = percent(busy);
    await expectText(page, '.use', new RegExp(`${escaped(device.name)}: busy ${text} `));
  }
}

async function walkTimeline(page, end, profile) {
  await expectText(page, 'header', new RegExp(`${end.launches.toLocaleString('en-US')} launch`));
  await assertUse(page, profile);
  await assertDrawn(page, '.timeline-canvas canvas');
  await page.keyboard.press('n');
  await expectText(page, '.timeline .detail', /duration/);
}

async function walkKernels(page) {
  await go(page, '#view=kernels');
  await page.locator('.kernels tbody a').first().click();
  await expectText(page, '.kernels article', /launches\s+\d[\s\S]*Source/);
  for (const tab of await page.locator('.kernels [role=tab]').all()) await tab.click();
  await expectText(page, '.kernels [role=tabpanel]', /\S/);
}

async function walkRewrites(page, lines) {
  const stage = lines.find(
    (line) => line.t === 'stage' && line.rewrites.some(([rule]) => rule > 0),
  );
  if (!stage) return;
  await go(page, `#view=rewrites&stage=${stage.id}`);
  const [rule] = stage.rewrites.find(([id]) => id > 0);
  const { name } = lines.find((line) => line.t === 'rule' && line.id === rule);
  await page.keyboard.press('ArrowRight');
  await expectText(page, '.rewrites .detail h3', new RegExp(name));
  await assertDrawn(page, '.rewrites canvas');
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
}

async function walkPlans(page, lines) {
  const plan = lines.find(
    (line) => line.t === 'plan' && line.steps.some(({ kind }) => kind === 'kernel'),
  );
  if (!plan) return;
  const step = plan.steps.findIndex(({ kind }) => kind === 'kernel');
  await go(page, `#view=graph&plan=${plan.id}&step=${step}`);
  await assertDrawn(page, '.graph canvas');
  await go(page, `#view=memory&plan=${plan.id}&step=${step}`);
  await expectText(page, '.memory .detail', new RegExp(`Step ${step}: [\\s\\S]* alive`));
  await assertDrawn(page, '.plan-canvas canvas');
}

/// Collectives in the timeline, the step that starts one, the spec of a node, and what moves.
async function walkSharding(page, name, lines) {
  const plans = lines.filter((line) => line.t === 'plan' && line.sharded);
  assert.equal(plans.length > 0, name === 'sharded');
  if (name !== 'sharded') return;
  await go(page, '#view=timeline');
  await expectText(page, 'header', /rank 0 of 2/);
  await expectText(page, '.use', /Collectives: 124 B in .*; the program waited .* for them/);
  await page.locator('input[aria-label="Search the timeline"]').fill('all-reduce');
  await expectText(page, '.timeline output', /^1 found$/);
  await page.keyboard.press('Enter');
  await expectText(page, '.timeline .detail', /all-reduce[\s\S]*28 bytes[\s\S]*ranks\s+0 1/);
  await page.locator('input[aria-label="Search the timeline"]').fill('wait for a collective');
  await expectText(page, '.timeline output', /^2 found$/);
  const plan = plans.find(({ steps }) => steps.some((step) => step.collective?.bytes === 28));
  const step = plan.steps.findIndex(({ kind }) => kind === 'collective');
  await go(page, `#view=graph&plan=${plan.id}&step=${step}`);
  const started = 'all-reduce 28 bytes of 2 values, ranks 0 1';
  await expectText(page, '.graph', new RegExp(`start ${started}[\\s\\S]*wait for ${started}`));
  await expectText(page, '.graph', /Mesh data=2: CPU of rank 0, – of rank 1/);
  await expectText(page, '.graph', /all-reduce along data\s+24\s+after %\d+ Reduce/);
  const part = plan.nodes.find(({ op, spec }) => op === 'buffer' && spec === '[data, -]');
  await go(page, `#view=graph&plan=${plan.id}&node=${part.id}`);
  await expectText(page, '.graph .detail', /part of\s+%\d+ Buffer \(8, 6\) \[data, -\]/);
  await expectText(page, '.graph .detail', /spec\s+\[data, -\], position 0/);
}

/// The page names the first kernel that a layer reported, and tells what differs.
async function walkFindings(page, name, lines) {
  const first = lines.find((line) => line.t === 'finding');
  assert.equal(first !== undefined, name === 'broken', 'only the broken plugin is reported');
  if (!first) return;
  const { kernel, difference } = first;
  await page.evaluate(() => document.querySelector('.note.wrong a').click());
  await expectText(page, '.kernels article h2', new RegExp(`^${escaped(kernel)}$`));
  await expectText(
    page,
    '.kernels .finding',
    new RegExp(
      `Differs from ${difference.reference}[\\s\\S]*element ${difference.index}\\s` +
        `[\\s\\S]*${escaped(difference.got)}[\\s\\S]*${escaped(difference.expected)}[\\s\\S]*` +
        `${difference.ulp.toLocaleString('en-US')} ulp[\\s\\S]*operation: ADD`,
    ),
  );
  await expectText(page, '.kernels tr.marked', /differs/);
  await page.locator('.finding .links a').first().click();
  await expectText(page, '.timeline .detail h3', new RegExp(escaped(kernel)));
  await expectText(page, '.timeline .detail .finding', /should be/);
}

async function walk(browser, { name, address, lines, profile }, timings) {
  const end = lines.at(-1);
  assert.equal(end.t, 'end');
  const stages = lines.filter((line) => line.t === 'stage');
  const fired = stages.flatMap((stage) => stage.rewrites).filter(([rule]) => rule > 0).length;
  assert.equal(fired, end.rewrites, 'the stages have every use of a rule');
  const page = await browser.open(address);
  await walkTimeline(page, end, profile);
  await walkKernels(page);
  await walkRewrites(page, lines);
  await walkPlans(page, lines);
  await walkSharding(page, name, lines);
  await walkFindings(page, name, lines);
  await go(page, '#view=schedules');
  await go(page, '#view=compare');
  await expectText(page, '.compare', /plugrad view BEFORE AFTER/);
  for (const view of VIEWS) await go(page, `#view=${view}`);
  timings[name] = await page.evaluate(() =>
    Object.fromEntries(performance.getEntriesByType('measure').map((m) => [m.name, m.duration])),
  );
  assert.deepEqual(page.wrong, []);
  await browser.close(page);
}

const emptyPage = at('share', 'plugrad', 'viewer.html');
if (!existsSync(emptyPage) || !existsSync(plugrad)) {
  console.log('skipped: the page or the command is not built');
  process.exit(77);
}
mkdirSync(options.output, { recursive: true });
const recorded = PROGRAMS.filter(([name]) => !options.only || name === options.only)
  .map(record)
  .filter(Boolean);
if (recorded.length === 0) {
  console.log('skipped: no program of the test is built');
  process.exit(77);
}
const browser = new Browser({ ...options, page: emptyPage });
await browser.start();
const timings = {};
for (const trace of recorded) {
  await walk(browser, trace, timings);
  console.log(`passed  ${trace.name}`);
}
await browser.stop();
writeFileSync(join(options.output, 'recorded.json'), `${JSON.stringify(timings, null, 2)}\n`);
console.log(JSON.stringify(timings));
