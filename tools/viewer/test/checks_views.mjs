// Each view in the browser: what it says, what it draws, how it leads to the others.
import assert from 'node:assert/strict';
import { canvasColours, frameTimes } from './browser.mjs';
import { expectText, train, withPage } from './pages.mjs';
import { manyEvents } from './synthetic.mjs';

export const viewChecks = {
  async 'timeline: shows tracks, use, and the event that is chosen'(tools) {
    await withPage(tools, 'train', train(), '', {}, async (page) => {
      await expectText(page, 'header', /train[\s\S]*60 launches/);
      await expectText(page, '.use', /copies 1\.25 MiB in 400 µs, of which 200 µs beside kernels/);
      await page.waitForTimeout(200);
      assert.ok(Object.keys(await canvasColours(page, '.timeline-canvas canvas')).length > 20);
      await page.fill('.timeline input', 'matmul_relu');
      await page.waitForFunction(
        () => document.querySelector('.timeline output').textContent === '22 found',
      );
      await page.locator('.timeline-canvas').focus();
      for (let i = 0; i < 3; ++i) await page.keyboard.press('n');
      await expectText(
        page,
        '.timeline .detail',
        /matmul_relu_64x64[\s\S]*40\.0 µs[\s\S]*2\.00 µs before it began/,
      );
      await expectText(page, '.timeline .detail', /matmul examples\/train\.cpp:21 in step/);
      await page.keyboard.press('Enter');
      await page.waitForSelector('.kernels article');
      assert.match(page.url(), /view=kernels&kernel=1/);
    });
  },

  async 'timeline: a million launches stay smooth'(tools) {
    const lines = manyEvents(1000000);
    await withPage(tools, 'million', [{ title: 'million', lines }], '', {}, async (page) => {
      const measures = await page.evaluate(() =>
        performance.getEntriesByType('measure').map((m) => [m.name, m.duration]),
      );
      tools.timings.million_events = {
        ...Object.fromEntries(measures),
        zoom: await frameTimes(
          page,
          60,
          `document.querySelector('.timeline-canvas').dispatchEvent(new WheelEvent('wheel',
          { deltaY: i < 30 ? -60 : 60, clientX: 500, clientY: 200, cancelable: true }))`,
        ),
        pan: await frameTimes(
          page,
          60,
          `document.querySelector('.timeline-canvas').dispatchEvent(new WheelEvent('wheel',
          { deltaX: i % 2 ? 40 : -40, clientX: 500, clientY: 200, cancelable: true }))`,
        ),
      };
      await expectText(page, '.window', /matmul_relu_64x64/);
    });
  },

  async 'kernels: sorts, filters, and shows source, IR and launches'(tools) {
    await withPage(tools, 'train', train(), '#view=kernels', {}, async (page) => {
      await expectText(
        page,
        '.kernels tbody tr:first-child',
        /matmul_relu_64x64\s+20\s+800 µs\s+73 %\s+40\.0 µs\s+900\s+13\.1\s+1\.2\s+13 %\s+compute/,
      );
      await page.getByRole('button', { name: 'GB/s', exact: true }).click();
      await expectText(page, '.kernels tbody tr:first-child', /update_4096/);
      assert.equal(await page.locator('th[aria-sort=descending]').count(), 1);
      await page.fill('.kernels input', 'relu');
      await page.waitForFunction(() => document.querySelectorAll('.kernels tbody tr').length === 1);
      await page.getByRole('link', { name: 'matmul_relu_64x64' }).click();
      await expectText(page, '.kernels article', /void matmul_64[\s\S]*vmulps/);
      await page.getByRole('tab', { name: 'IR by stage' }).click();
      await expectText(page, '[role=tabpanel]', /%4 = cast i32/);
      await page.getByRole('tab', { name: 'Launches' }).click();
      await page.locator('[role=tabpanel] tbody a').first().click();
      await page.waitForSelector('.timeline .detail .facts');
      await expectText(page, '.timeline .detail', /matmul_relu/);
      assert.ok(Object.keys(await canvasColours(page, '.kernels canvas')).length > 5);
    });
  },
};
