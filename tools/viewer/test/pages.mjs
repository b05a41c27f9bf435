// What the checks of pages share.
import assert from 'node:assert/strict';
import { smallTrace } from './synthetic.mjs';

/// Opens a page of traces, runs `body`, and fails if the page did anything wrong.
export async function withPage({ browser }, name, traces, hash, options, body) {
  const page = await browser.open(browser.write(name, traces) + hash, options);
  try {
    await body(page);
    assert.deepEqual(page.wrong, []);
  } finally {
    await browser.close(page);
  }
}

export const train = () => [{ title: 'train', lines: smallTrace() }];

export function textOf(page, selector) {
  return page.locator(selector).first().innerText();
}

/// Waits until the first element of the selector has a text like this.
export async function expectText(page, selector, wanted) {
  let text = '';
  for (const begin = Date.now(); Date.now() - begin < 8000;) {
    const first = page.locator(selector).first();
    text = (await first.count()) ? await first.innerText() : '';
    if (wanted.test(text)) return;
    await page.waitForTimeout(25);
  }
  assert.match(text, wanted, selector);
}

export const VIEWS = ['timeline', 'kernels', 'rewrites', 'graph', 'memory', 'schedules', 'compare'];

/// Nothing of a trace became an element or ran.
export async function assertOnlyText(page) {
  const found = await page.evaluate(() => ({
    hacked: window.hacked ?? null,
    elements: [
      ...document.querySelectorAll(
        'img, iframe, object, embed, link, base, form, video, svg, b, script:not([type])',
      ),
    ]
      .map((element) => element.outerHTML.slice(0, 80))
      .slice(1), // the first is the page's own script
    handlers: [...document.querySelectorAll('*')].filter((element) =>
      [...element.attributes].some(
        ({ name, value }) => name.startsWith('on') || /^\s*javascript:/i.test(value),
      ),
    ).length,
  }));
  assert.deepEqual(found, { hacked: null, elements: [], handlers: 0 });
}
