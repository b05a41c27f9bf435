// Answers "how much memory at most between two times" quickly, for a curve of many steps.
import { upperBound } from '../trace/lanes.js';

const FACTOR = 16;

function coarser(values) {
  const result = new Float64Array(Math.ceil(values.length / FACTOR));
  for (let i = 0; i < values.length; ++i) {
    const to = (i / FACTOR) | 0;
    if (i % FACTOR === 0 || values[i] > result[to]) result[to] = values[i];
  }
  return result;
}

export class MemoryCurve {
  constructor(memory) {
    this.memory = memory;
    const total = memory.used.map((used, i) => used + memory.cached[i]);
    this.levels = { used: [memory.used], total: [total] };
    for (const levels of Object.values(this.levels)) {
      while (levels.at(-1).length > FACTOR) levels.push(coarser(levels.at(-1)));
    }
    this.top = total.reduce((most, value) => Math.max(most, value), 1);
  }

  /// The largest value of events from position `from` to before `to`.
  most(name, from, to, level = 0) {
    const values = this.levels[name][level];
    let most = 0;
    if (to - from < 2 * FACTOR || level + 1 >= this.levels[name].length) {
      for (let i = from; i < to; ++i) if (values[i] > most) most = values[i];
      return most;
    }
    const low = Math.ceil(from / FACTOR),
      high = Math.floor(to / FACTOR);
    most = this.most(name, low, high, level + 1);
    for (let i = from; i < low * FACTOR; ++i) if (values[i] > most) most = values[i];
    for (let i = high * FACTOR; i < to; ++i) if (values[i] > most) most = values[i];
    return most;
  }

  /// The largest use between two times, the value at the first included.
  mostBetween(name, begin, end) {
    const from = Math.max(0, upperBound(this.memory.start, begin) - 1);
    const to = upperBound(this.memory.start, end);
    if (to === 0) return 0;
    return this.most(name, Math.min(from, to - 1), to);
  }
}
