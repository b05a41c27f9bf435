// Damages traces: values of another type or size, lines that are gone or twice, bytes that changed.
import { gzipSync } from 'node:zlib';
import { random } from './random.mjs';

const VALUES = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 53,
  4294967296,
  '',
  'x',
  '<b>bold</b>',
  '<img src=x onerror=hacked=1>',
  '__proto__',
  'constructor',
  [],
  {},
  [[]],
  [null],
  { length: 9 },
  'é\u0000\ud800',
  'a'.repeat(5000),
];

/// A copy in which some value was replaced, removed or repeated.
function mutateValue(value, { below, pick, next }, depth = 0) {
  if (depth > 0 && next() < 0.15) return pick(VALUES);
  if (Array.isArray(value) && value.length > 0) {
    const copy = value.slice(),
      at = below(copy.length);
    if (next() < 0.2) copy.splice(at, 1 + below(3));
    else if (next() < 0.1) copy.push(...copy);
    else copy[at] = mutateValue(copy[at], { below, pick, next }, depth + 1);
    return copy;
  }
  if (value && typeof value === 'object') {
    const copy = { ...value },
      keys = Object.keys(copy);
    if (keys.length === 0) return copy;
    const key = pick(keys);
    if (next() < 0.15) delete copy[key];
    else copy[key] = mutateValue(copy[key], { below, pick, next }, depth + 1);
    return copy;
  }
  return pick(VALUES);
}

function mutateText(text, { below, pick }) {
  const at = below(text.length + 1);
  return (
    text.slice(0, at) +
    pick(['', '"', '{', ']', '\\', '\n', '<script>', '1e999', '\u0000']) +
    text.slice(at + below(4))
  );
}

/// Damaged lines of a trace; the same for the same seed.
export function mutateLines(lines, seed) {
  const chance = random(seed),
    { below, next } = chance,
    copy = lines.slice();
  const times = 1 + below(6);
  for (let i = 0; i < times && copy.length; ++i) {
    const at = below(copy.length),
      kind = next();
    if (kind < 0.6) {
      try {
        copy[at] = JSON.stringify(mutateValue(JSON.parse(copy[at]), chance)) ?? '';
      } catch {
        copy[at] = mutateText(copy[at], chance);
      }
    } else if (kind < 0.75) copy[at] = mutateText(copy[at], chance);
    else if (kind < 0.85) copy.splice(at, 1);
    else if (kind < 0.95) copy.splice(below(copy.length), 0, copy[at]);
    else copy.length = at;
  }
  return copy;
}

/// Base64 of damaged data.
export function mutateBytes(lines, seed) {
  const { below, next } = random(seed),
    bytes = gzipSync(`${lines.join('\n')}\n`);
  if (next() < 0.3) return bytes.subarray(0, below(bytes.length)).toString('base64');
  for (let i = 0; i <= below(4); ++i) bytes[below(bytes.length)] ^= 1 << below(8);
  const base64 = bytes.toString('base64');
  return next() < 0.2 ? `${base64.slice(0, 40)}*${base64.slice(40)}` : base64;
}
