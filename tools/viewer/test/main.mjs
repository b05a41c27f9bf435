// Tests of the viewer's page in a real browser.
//   usage: node main.mjs --page P --packages DIR --browser B --output DIR
//     [--only NAME] [--fuzz-seconds S]
// Times are written to OUTPUT/timings.json and judged by nobody.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Browser } from './browser.mjs';
import { compilerChecks } from './checks_compiler.mjs';
import { fileChecks } from './checks_files.mjs';
import { pureChecks } from './checks_pure.mjs';
import { robustChecks } from './checks_robust.mjs';
import { viewChecks } from './checks_views.mjs';

const string = { type: 'string' };
const { values: options } = parseArgs({
  options: {
    page: string,
    packages: string,
    browser: string,
    output: string,
    only: string,
    'fuzz-seconds': { type: 'string', default: '15' },
  },
});
const missing = ['page', 'packages', 'browser', 'output'].filter((name) => !options[name]);
if (missing.length) {
  console.error(
    `usage: --page P --packages DIR --browser B --output DIR; missing: ${missing.join(', ')}`,
  );
  process.exit(2);
}

if (!existsSync(options.page)) {
  console.log('skipped: the page is not built (npm needs a network for its first build)');
  process.exit(77);
}

const timings = {};
const tools = { options, timings, browser: null };
const checks = { ...fileChecks, ...pureChecks, ...viewChecks, ...compilerChecks, ...robustChecks };
let failed = 0;
tools.browser = new Browser(options);
await tools.browser.start();
for (const [name, check] of Object.entries(checks)) {
  if (options.only && !name.includes(options.only)) continue;
  const begin = performance.now();
  try {
    await check(tools);
    console.log(`passed  ${name} (${Math.round(performance.now() - begin)} ms)`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
await tools.browser.stop();
writeFileSync(join(options.output, 'timings.json'), `${JSON.stringify(timings, null, 2)}\n`);
console.log(JSON.stringify(timings));
process.exit(failed ? 1 : 0);
