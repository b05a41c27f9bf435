// Turns base64 of a gzip member into a trace.
import { TraceRecords, UnreadableTrace } from '../trace/records.js';
import { summarise } from '../trace/summary.js';

const PIECE = 1 << 20; // characters of base64 at a time; a multiple of 4

function decoded(piece) {
  const binary = atob(piece);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/// The bytes of the base64, decoded on demand.
function byteStream(base64) {
  const clean = /\s/.test(base64) ? base64.replace(/\s+/g, '') : base64;
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= clean.length) {
        controller.close();
        return;
      }
      const piece = clean.slice(at, at + PIECE);
      at += PIECE;
      controller.enqueue(decoded(piece));
    },
  });
}

/// Splits chunks of text into lines.
class LineSplitter {
  constructor(take) {
    this.take = take;
    this.rest = [];
  }

  add(chunk) {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      const line = chunk.slice(start, end);
      this.take(this.rest.length ? this.rest.join('') + line : line);
      this.rest.length = 0;
      start = end + 1;
    }
    if (start < chunk.length) this.rest.push(chunk.slice(start));
  }

  finish() {
    if (this.rest.length) this.take(this.rest.join(''));
  }
}

/// The trace, summarised. Damage costs what lies behind it and is told in `problems`.
export async function readTrace(base64, progress) {
  const records = new TraceRecords();
  const splitter = new LineSplitter((line) => records.read(line));
  const reader = byteStream(base64)
    .pipeThrough(new DecompressionStream('gzip'))
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let characters = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      characters += value.length;
      splitter.add(value);
      progress(characters, records.lines);
    }
  } catch (error) {
    if (error instanceof UnreadableTrace) throw error;
    if (records.lines === 0) {
      throw new UnreadableTrace(
        'The data in this page is not a compressed trace. ' +
          'Make the page again with plugrad view.',
      );
    }
    records.problem('The compressed data is damaged; what follows the damage is missing.');
  }
  splitter.finish();
  const trace = summarise(records.finish());
  trace.problems = records.problems;
  trace.problemCount = records.problemCount;
  return trace;
}
