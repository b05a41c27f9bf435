// Damaged, hostile and missing data; narrow, dark and spoken pages.
import assert from 'node:assert/strict';
import { matchKernels, totalsOf } from '../src/trace/compare.js';
import { placeBuffers, liveBytes } from '../src/trace/memory.js';
import { planFacts } from '../src/trace/plan.js';
import { UnreadableTrace } from '../src/trace/records.js';
import { difference, Rewriting } from '../src/trace/rewriting.js';
import { traceOf } from './checks_pure.mjs';
import { mutateBytes, mutateLines } from './mutate.mjs';
import { assertOnlyText, expectText, textOf, train, VIEWS, withPage } from './pages.mjs';
import { hostileTrace, smallTrace } from './synthetic.mjs';

async function showAll(page) {
  for (const view of VIEWS) {
    await page.evaluate((id) => {
      location.hash = `#view=${id}`;
    }, view);
    await page.waitForSelector(`.view.${view}:not([hidden])`);
  }
}

const PLACES = [
  'view=timeline&launch=1',
  'view=kernels&kernel=1',
  'view=rewrites&stage=1&step=2',
  'view=rewrites&stage=3&step=1',
  'view=graph&plan=1&step=0&node=8',
  'view=memory&plan=1&buffer=2&step=1',
  'view=schedules&kernel=2',
  'view=kernels&kernel=1&trace=1',
  'view=__proto__&kernel=<b>&step=1e9&trace=2',
  'view=memory&buffer=-1&step=99999999999999999999',
];

/// Follows addresses as links would.
async function showPlaces(page) {
  for (const place of PLACES) {
    await page.evaluate((hash) => {
      location.hash = `#${hash}`;
    }, place);
  }
  await page.waitForTimeout(30);
}

/// What the views compute, without a page.
function useAll(lines) {
  const trace = traceOf(lines);
  for (const plan of trace.plans) {
    planFacts(trace, plan);
    placeBuffers(plan.buffers);
    liveBytes(plan.buffers, plan.steps.length);
  }
  for (const stage of trace.stages) {
    const rewriting = new Rewriting(stage);
    for (let k = 1; k <= rewriting.count; ++k)
      difference(rewriting.after(k - 1, k - 1), rewriting.after(k));
  }
  matchKernels(trace, trace);
  totalsOf(trace);
}

export const robustChecks = {
  async 'hostile: strings of a trace stay text in every view'(tools) {
    const traces = [
      { title: '<img src=x onerror=hacked=1>"\'', lines: hostileTrace() },
      { title: 'b', lines: hostileTrace() },
    ];
    await withPage(tools, 'hostile', traces, '', {}, async (page) => {
      await showAll(page);
      await page.evaluate(() => {
        location.hash = '#view=kernels&kernel=1';
      });
      for (const tab of await page.getByRole('tab').all()) await tab.click();
      await expectText(page, '.kernels article h2', /<img src=x onerror="window\.hacked=1">/);
      await page.evaluate(() => {
        location.hash = '#view=rewrites&stage=1&step=1';
      });
      await page.evaluate(() => {
        location.hash = '#view=graph&node=8';
      });
      await page.waitForTimeout(200);
      await assertOnlyText(page);
    });
  },

  async 'damaged: what is wrong is told, what is whole is shown'(tools) {
    const lines = smallTrace(),
      cases = [
        ['version', ['{"t":"trace","version":9}'], /format version 9[\s\S]*reads version 1/],
        ['not gzip', { base64: Buffer.from('hello').toString('base64') }, /not a compressed trace/],
        ['not base64', { base64: '%%%' }, /not a compressed trace/],
        ['no end', lines.slice(0, -1), /Kernels[\s\S]*The trace has no last line/],
        [
          'a bad line',
          [...lines.slice(0, 5), 'nonsense', ...lines.slice(5)],
          /1 part of the trace could not be read/,
        ],
        [
          'dropped',
          [...lines.slice(0, -1), '{"t":"end","dropped":12345}'],
          /The 12,345 oldest events did not fit/,
        ],
        ['no header', ['{"t":"name","id":1}'], /could not be read[\s\S]*/],
        ['only a header', lines.slice(0, 1), /0 launches/],
      ];
    for (const [title, data, expected] of cases) {
      await withPage(
        tools,
        'damaged',
        [Array.isArray(data) ? { title, lines: data } : { title, ...data }],
        '',
        {},
        async (page) => {
          await expectText(page, 'body', expected);
          if (await page.locator('nav').count()) await showAll(page);
        },
      );
    }
    await withPage(tools, 'none', [], '', {}, async (page) => {
      await expectText(
        page,
        '.message',
        /PLUGRAD_TRACE=file[\s\S]*plugrad view TRACE -o page\.html/,
      );
    });
  },

  'fuzz: damaged lines never stop the reading'({ options, timings }) {
    const lines = smallTrace({ steps: 3 }),
      until = performance.now() + (1000 * options['fuzz-seconds']) / 3;
    let seed = 1;
    for (; performance.now() < until; ++seed) {
      try {
        useAll(mutateLines(lines, seed));
      } catch (error) {
        if (!(error instanceof UnreadableTrace)) throw new Error(`seed ${seed}: ${error.stack}`);
      }
    }
    timings.fuzzed_traces = seed - 1;
  },

  async 'fuzz: the page shows damaged traces, or says why not'(tools) {
    const lines = smallTrace({ steps: 3 }),
      until = Date.now() + (1000 * tools.options['fuzz-seconds'] * 2) / 3;
    let seed = 1;
    for (; Date.now() < until; ++seed) {
      const data =
        seed % 4 === 0 ? { base64: mutateBytes(lines, seed) } : { lines: mutateLines(lines, seed) };
      try {
        await withPage(
          tools,
          'fuzz',
          [
            { title: 'fuzz', ...data },
            { title: 'whole', lines },
          ],
          '',
          {},
          async (page) => {
            if (await page.locator('nav').count()) {
              await showAll(page);
              await showPlaces(page);
            } else assert.ok((await textOf(page, '.message p')).length > 20);
            await assertOnlyText(page);
          },
        );
      } catch (error) {
        throw new Error(`seed ${seed}: ${error.stack}`);
      }
    }
    tools.timings.fuzzed_pages = seed - 1;
  },

  async 'phone: no view is wider than the screen'(tools) {
    await withPage(
      tools,
      'train',
      train(),
      '',
      { width: 390, height: 780, hasTouch: true, isMobile: true },
      async (page) => {
        for (const view of VIEWS) {
          await page.evaluate((id) => {
            location.hash = `#view=${id}${id === 'kernels' ? '&kernel=1' : ''}`;
          }, view);
          await page.waitForSelector(`.view.${view}:not([hidden])`);
          await page.waitForTimeout(120);
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(width <= 391, `${view}: ${width} pixels`);
        }
        await page.getByRole('link', { name: 'Timeline', exact: true }).first().tap();
        await page.locator('.timeline').getByRole('button', { name: 'Next' }).tap();
        await expectText(page, '.timeline .detail', /duration/);
      },
    );
  },

  async 'dark: the canvas follows the theme'(tools) {
    await withPage(tools, 'train', train(), '', { colorScheme: 'dark' }, async (page) => {
      const backgrounds = await page.evaluate(() => {
        const canvas = document.querySelector('canvas');
        const { data } = canvas.getContext('2d').getImageData(4, canvas.height - 4, 1, 1);
        return [
          getComputedStyle(document.body).backgroundColor,
          `rgb(${data[0]}, ${data[1]}, ${data[2]})`,
        ];
      });
      assert.equal(backgrounds[0], 'rgb(18, 22, 28)');
      assert.equal(backgrounds[1], backgrounds[0]);
    });
  },

  async 'spoken: every control has a name, every table its heads'(tools) {
    await withPage(tools, 'train', train(), '', {}, async (page) => {
      await showAll(page);
      const nameless = await page.evaluate(() =>
        [
          ...document.querySelectorAll(
            'button, a, input, select, [role=application], [role=region]',
          ),
        ]
          .filter(
            (element) =>
              !(
                element.getAttribute('aria-label') ||
                element.textContent.trim() ||
                element.closest('label')
              ),
          )
          .map((element) => element.outerHTML.slice(0, 100)),
      );
      assert.deepEqual(nameless, []);
      const tables = await page.evaluate(
        () =>
          [...document.querySelectorAll('table')].filter(
            (table) => !table.querySelector('thead th[scope=col]'),
          ).length,
      );
      assert.equal(tables, 0);
      await page.keyboard.press('?');
      assert.equal(await page.locator('dialog[open] h2').innerText(), 'Keys');
      await page.keyboard.press('Escape');
      await page.keyboard.press('2');
      await page.waitForSelector('.view.kernels:not([hidden])');
    });
  },
};
