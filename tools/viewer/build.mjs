// Turns src/ and template.html into one self-contained page.
//   usage: node build.mjs FOLDER_OF_NODE_MODULES OUTPUT.html
// The page requests nothing: its policy allows the inline script and style by their hashes, and the
// worker from a Blob.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [packages, output] = process.argv.slice(2).map((path) => resolve(path));
if (!output) {
  console.error('usage: node build.mjs FOLDER_OF_NODE_MODULES OUTPUT.html');
  process.exit(2);
}
const require = createRequire(join(packages, 'package.json'));
const esbuild = require('esbuild');

const options = {
  bundle: true,
  minify: true,
  write: false,
  logLevel: 'warning',
  target: ['chrome103', 'firefox113', 'safari16.4'], // the oldest with DecompressionStream
  nodePaths: [join(packages, 'node_modules')],
};

async function bundle(entry, more = {}) {
  const built = await esbuild.build({
    ...options,
    entryPoints: [join(here, 'src', entry)],
    ...more,
  });
  return built.outputFiles[0].text.trim();
}

const workerSource = await bundle('worker/main.js', { format: 'iife' });
const embedWorker = {
  name: 'worker source',
  setup(build) {
    build.onResolve({ filter: /^worker-source$/ }, () => ({ path: 'worker', namespace: 'worker' }));
    build.onLoad({ filter: /.*/, namespace: 'worker' }, () => ({
      contents: workerSource,
      loader: 'text',
    }));
  },
};
const script = await bundle('main.js', { format: 'iife', plugins: [embedWorker] });
const style = await bundle('style/all.css');
for (const [name, text] of [
  ['script', script],
  ['style', style],
]) {
  if (new RegExp(`</${name}|<!--`, 'i').test(text)) throw new Error(`the ${name} would end early`);
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  'worker-src blob:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/// The licences of what is bundled, as a comment; "--" would end it early.
function licences() {
  const texts = ['@dagrejs/dagre', '@dagrejs/graphlib', 'uplot'].map((name) => {
    const text = readFileSync(join(packages, 'node_modules', name, 'LICENSE'), 'utf8');
    return `${name}\n\n${text.trim()}`;
  });
  return texts.join('\n\n').replace(/-{2,}/g, '-');
}

const page = readFileSync(join(here, 'template.html'), 'utf8')
  .replace('@LICENCES@', licences)
  .replace('@POLICY@', () => policy)
  .replace('@STYLE@', () => style)
  .replace('@SCRIPT@', () => script);
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, page);
console.log(`${output}: ${(page.length / 1024).toFixed(0)} KiB`);
