// The viewer's own files: limits on their size, and no way from a string to markup.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const MARKUP = new RegExp(
  '\\b(innerHTML|outerHTML|insertAdjacentHTML|document\\.write|DOMParser|setHTML\\w*|' +
    'createContextualFragment)\\b|\\beval\\(|new Function',
);

function* filesBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else if (/\.(js|mjs|css)$/.test(entry.name)) yield path;
  }
}

/// Length of the longest function: its lines up to the brace at its own indentation.
function longestFunction(lines) {
  let longest = 0;
  lines.forEach((line, at) => {
    const head = /^(\s*)(?:export |async |static )*(?:function\b|[\w$]+\([^;]*\) \{$)/.exec(line);
    if (!head || /^\s*(if|for|while|switch|catch)\b/.test(line) || !line.endsWith('{')) return;
    const end = lines.findIndex((other, i) => i > at && other.startsWith(`${head[1]}}`));
    longest = Math.max(longest, end - at + 1);
  });
  return longest;
}

export const fileChecks = {
  'files: no string becomes markup or code'() {
    for (const path of filesBelow(join(root, 'src'))) {
      assert.doesNotMatch(readFileSync(path, 'utf8'), MARKUP, path);
    }
  },

  'files: at most 500 lines, 100 columns, functions of 70 lines'() {
    for (const path of filesBelow(root)) {
      const lines = readFileSync(path, 'utf8').split('\n');
      assert.ok(lines.length <= 500, `${path}: ${lines.length} lines`);
      assert.ok(
        longestFunction(lines) <= 70,
        `${path}: a function of ${longestFunction(lines)} lines`,
      );
      const wide = lines.findIndex((line) => line.length > 100);
      assert.ok(wide < 0, `${path}:${wide + 1}: ${lines[wide]?.length} columns`);
    }
  },

  'files: the page has a strict policy and no address'({ browser }) {
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(
      browser.template,
    )[1];
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.doesNotMatch(browser.template, /\b(src|href)="(https?:)?\/\//);
  },
};
