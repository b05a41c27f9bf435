// A headless Chromium that records what a page must not do: errors on the console, exceptions,
// requests.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fillPage } from './page.mjs';

export class Browser {
  constructor(options) {
    this.options = options;
    this.template = readFileSync(options.page, 'utf8');
    mkdirSync(options.output, { recursive: true });
  }

  async start() {
    const { chromium } = createRequire(join(this.options.packages, 'package.json'))(
      'playwright-core',
    );
    this.browser = await chromium.launch({
      executablePath: this.options.browser,
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
  }

  stop() {
    return this.browser.close();
  }

  /// Writes a page with the traces; returns its address.
  write(name, traces) {
    const path = join(this.options.output, `${name}.html`);
    writeFileSync(path, fillPage(this.template, traces));
    return pathToFileURL(path).href;
  }

  /// Opens an address; `page.wrong` collects errors and requests.
  async open(address, { width = 1280, height = 800, colorScheme = 'light', ...more } = {}) {
    const context = await this.browser.newContext({
      viewport: { width, height },
      colorScheme,
      ...more,
    });
    const page = await context.newPage();
    page.wrong = [];
    page.on('console', (message) => {
      const ofTest = message.text().includes('willReadFrequently'); // the checks read pixels
      if (['error', 'warning'].includes(message.type()) && !ofTest)
        page.wrong.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => page.wrong.push(`exception: ${error.stack}`));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(address.split('#')[0]) && !url.startsWith('blob:'))
        page.wrong.push(`request: ${url}`);
    });
    page.setDefaultTimeout(20000);
    await page.goto(address);
    await page.waitForSelector('nav, .message');
    return page;
  }

  close(page) {
    return page.context().close();
  }
}

/// Colours of a canvas in its own pixels: a map from "r,g,b" to the number of pixels.
export function canvasColours(page, selector) {
  return page.evaluate((wanted) => {
    const canvas = document.querySelector(wanted);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const counts = {};
    for (let i = 0; i < data.length; i += 4) {
      const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }, selector);
}

/// The pixel under a point of the canvas (in CSS pixels) as "r,g,b".
export function pixelAt(page, selector, x, y) {
  return page.evaluate(
    ([wanted, px, py]) => {
      const canvas = document.querySelector(wanted),
        density = canvas.width / canvas.clientWidth;
      const { data } = canvas.getContext('2d').getImageData(px * density, py * density, 1, 1);
      return `${data[0]},${data[1]},${data[2]}`;
    },
    [selector, x, y],
  );
}

/// Times between frames while `action` runs each frame for `frames` frames, in ms.
export function frameTimes(page, frames, action) {
  return page.evaluate(
    ([count, source]) =>
      new Promise((resolve) => {
        const step = new Function('i', source),
          times = [];
        let last = performance.now();
        const frame = () => {
          const now = performance.now();
          times.push(now - last);
          last = now;
          if (times.length > count) {
            times.shift();
            times.sort((a, b) => a - b);
            resolve({
              frames: count,
              median_ms: times[count >> 1],
              p95_ms: times[Math.floor(count * 0.95)],
              longest_ms: times.at(-1),
            });
            return;
          }
          step(times.length);
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    [frames, action],
  );
}
