// The views of what the compiler did: rewrites, tensor graph, memory, schedules; and the
// comparison.
import assert from 'node:assert/strict';
import { canvasColours, frameTimes } from './browser.mjs';
import { expectText, train, withPage } from './pages.mjs';
import { definitions, smallTrace } from './synthetic.mjs';
import { largePlan } from './synthetic_plan.mjs';
import { largeStage, RULES } from './synthetic_stages.mjs';

const hasColour = (colours, wanted) =>
  Object.entries(colours).some(([colour, pixels]) => {
    const [r, g, b] = colour.split(',').map(Number);
    return pixels > 20 && wanted(r, g, b);
  });

async function placed(page, canvas) {
  await page.waitForTimeout(350);
  return canvasColours(page, canvas);
}

function largeTrace(nodes) {
  return [
    ...definitions().lines,
    { t: 'plan', id: 1, run: 8, ...largePlan(nodes) },
    ...RULES,
    largeStage(nodes),
  ].map((line) => JSON.stringify(line));
}

export const compilerChecks = {
  async 'rewrites: keys go forwards and backwards, rule and change are shown'(tools) {
    await withPage(tools, 'train', train(), '#view=rewrites&stage=1', {}, async (page) => {
      await expectText(page, '.rewrites .detail', /identities of algebra are gone/);
      const before = await placed(page, '.rewrites canvas');
      await page.keyboard.press('ArrowRight');
      await expectText(
        page,
        '.rewrites .detail',
        /mul-one\s+file\s+core\/src\/symbolic\/rules\/algebra\.cpp:14[\s\S]*x \* 1\s+→ x/,
      );
      await expectText(
        page,
        '.rewrites .detail',
        /Before %3\s+mul\.f32\(buffer\.f32\(x\), const\.f32\(1\)\)/,
      );
      await expectText(page, '.node-text', /4 nodes in the graph now, 6 shown/);
      const after = await placed(page, '.rewrites canvas');
      assert.ok(
        hasColour(after, (r, g, b) => r > 150 && g < 60 && b < 60),
        'what was removed is red',
      );
      assert.ok(!hasColour(before, (r, g, b) => r > 150 && g < 60 && b < 60));
      await page.keyboard.press('ArrowRight');
      await expectText(page, '.rewrites .detail', /add-zero[\s\S]*is_int\(x\)/);
      assert.match(page.url(), /step=2/);
      await page.keyboard.press('ArrowLeft');
      await expectText(page, '.rewrites .detail', /mul-one/);
      await page.keyboard.press('End');
      await page.getByRole('checkbox').check();
      await expectText(page, '.rewrites output', /0 of 4/);
      await page.keyboard.press('End');
      await expectText(page, '.rewrites .detail', /rebuilt with new sources/);
    });
  },

  async 'rewrites: a kernel leads to its stages, a stage to its kernel'(tools) {
    await withPage(tools, 'train', train(), '#view=kernels&kernel=1', {}, async (page) => {
      await page.locator('.kernels article').getByRole('link', { name: 'Rewrites' }).click();
      await expectText(page, '.stages', /lower casts \(1\)/);
      await page.getByRole('button', { name: 'Next use of wrap-cast' }).click();
      await expectText(page, '.rewrites .detail', /wrap-cast[\s\S]*casts\.cpp:40/);
      await page
        .locator('.rewrites .detail')
        .getByRole('link', { name: /Kernel/ })
        .click();
      await page.waitForSelector('.kernels article');
    });
  },

  async 'graph: colours are steps, a node leads to kernel, memory and source'(tools) {
    await withPage(tools, 'train', train(), '#view=graph&step=0', {}, async (page) => {
      await page.waitForFunction(() =>
        document.querySelector('.graph .detail')?.innerText.includes('%8 max'),
      );
      await expectText(page, '.graph .detail', /relu examples\/train\.cpp:21[\s\S]*/);
      await expectText(
        page,
        '.graph .detail',
        /fused with\s+5 other nodes\s+memory\s+16\.0 KiB, temporary/,
      );
      assert.ok(Object.keys(await placed(page, '.graph canvas')).length > 10);
      await page.fill('.graph input', 'sum axis');
      await page.keyboard.press('Enter');
      await expectText(
        page,
        '.graph .detail',
        /%6 sum[\s\S]*not stored: it lives within its kernel/,
      );
      await page.locator('.graph-canvas').first().focus();
      await page.locator('.graph .graph-canvas').focus();
      await page.keyboard.press('ArrowDown');
      await expectText(page, '.graph .detail', /%8 max/);
      await page.locator('.graph .detail').getByRole('link', { name: 'Memory plan' }).click();
      await expectText(page, '.memory .detail', /%8 max\s+Tensor graph\s+kind\s+temporary/);
    });
  },

  async 'graph: 50,000 nodes are placed and move'(tools) {
    const traces = [{ title: 'large', lines: largeTrace(50000) }];
    await withPage(tools, 'large', traces, '#view=graph', {}, async (page) => {
      await page.waitForFunction(
        () => performance.getEntriesByName('plugrad: graph placed').length > 0,
      );
      const measures = await page.evaluate(() =>
        performance.getEntriesByType('measure').map((m) => [m.name, m.duration]),
      );
      assert.ok(Object.keys(await placed(page, '.graph canvas')).length > 10);
      const zoom = (
        delta,
      ) => `document.querySelector('.graph .graph-canvas').dispatchEvent(new WheelEvent('wheel',
        { deltaY: ${delta}, clientX: 466, clientY: 400, cancelable: true }))`;
      const frames = { whole: await frameTimes(page, 40, zoom('i % 2 ? 10 : -10')) };
      await frameTimes(page, 12, zoom('-120'));
      frames.middle = await frameTimes(page, 40, zoom('i % 2 ? 10 : -10'));
      tools.timings.graph_of_50000_nodes = { ...Object.fromEntries(measures), frames };
      const begin = Date.now();
      await page.evaluate(() => {
        location.hash = '#view=rewrites&stage=9&step=8000';
      });
      await page.waitForFunction(() =>
        document.querySelector('.rewrites .detail')?.innerText.includes('mul-one'),
      );
      tools.timings.stage_of_50000_nodes_ms = Date.now() - begin;
      await page.selectOption('.rewrites [aria-label=Extent]', { index: 1 });
      await page.waitForTimeout(1500);
      await expectText(page, '.node-text', /nodes in the graph now/);
    });
  },

  async 'memory: the plan and what was measured'(tools) {
    await withPage(tools, 'train', train(), '#view=memory', {}, async (page) => {
      await expectText(page, '.memory option', /^plan 1: .* steps?, work 1\.20$/);
      await expectText(
        page,
        '.plan-summary',
        /5 buffers of 64\.0 KiB together need 64\.0 KiB; most are alive in step 2 \(update_4096\)/,
      );
      await page.locator('.plan-canvas').focus();
      await page.keyboard.press('ArrowRight');
      await expectText(
        page,
        '.memory .detail',
        /Step 0: matmul_relu_64x64[\s\S]*3 buffers alive, 48\.0 KiB/,
      );
      assert.ok(Object.keys(await placed(page, '.plan-canvas canvas')).length > 5);
      await expectText(
        page,
        '.memory figcaption',
        /at most 48\.0 KiB in use of 8\.00 GiB, 41 changes/,
      );
      await page.locator('.memory .u-over').click({ position: { x: 300, y: 20 } });
      await expectText(page, '.held', /1 buffer, 16\.0 KiB[\s\S]*buffer 1/);
      await page.locator('.memory .detail').getByRole('link', { name: 'Kernel' }).click();
      await page.waitForSelector('.kernels article');
    });
  },

  async 'schedules: candidates, predicted and measured'(tools) {
    await withPage(tools, 'train', train(), '#view=schedules', {}, async (page) => {
      await expectText(page, '.schedule-detail', /The cost model predicts 36 µs/);
      await expectText(
        page,
        '.schedule-detail tbody tr:first-child',
        /\(chosen\)\s+36\.0 µs\s+40\.0 µs\s+0\.90 ×/,
      );
      assert.ok(Object.keys(await placed(page, '.schedules canvas')).length > 5);
      await page.locator('.schedules').getByRole('link', { name: 'mean_64' }).first().click();
      await expectText(page, '.schedule-detail h2', /mean_64/);
    });
  },

  async 'compare: what got slower, totals, and the other trace'(tools) {
    const traces = [
      { title: 'before', lines: smallTrace() },
      { title: 'after', lines: smallTrace({ slower: 1.5, device: 'GPU:0' }) },
    ];
    await withPage(tools, 'compare', traces, '#view=compare', {}, async (page) => {
      await expectText(
        page,
        '.verdict',
        /400 µs longer in B\. Most of what got slower: matmul_relu_64x64 \(\+400 µs\)/,
      );
      await expectText(
        page,
        '.compare tbody tr:first-child',
        /matmul_relu_64x64\s+800 µs\s+1\.20 ms\s+\+400 µs\s+1\.50 ×/,
      );
      await page.getByRole('link', { name: '1.20 ms' }).click();
      await page.waitForSelector('.kernels article');
      assert.match(page.url(), /trace=1/);
      await expectText(page, '.kernels:not([hidden]) article', /GPU:0[\s\S]*mean 60\.0 µs/);
      await page.getByRole('link', { name: 'A: before' }).click();
      assert.doesNotMatch(page.url(), /trace=1/);
    });
    await withPage(tools, 'train', train(), '#view=compare', {}, async (page) => {
      await expectText(page, '.compare', /plugrad view BEFORE AFTER/);
    });
  },
};
