// Collects blocks of events as growing typed arrays, one for each column.
import { array } from './values.js';

const LARGEST_TIME = 2 ** 53;

/// The columns of each kind of event: name, type and the value where a block lacks it.
export const KINDS = {
  launch: [
    ['track', 'i'],
    ['kernel', 'i'],
    ['start', 't'],
    ['duration', 'd'],
    ['submit', 'f'],
    ['plan', 'i'],
    ['step', 'i', -1],
  ],
  copy: [
    ['track', 'i'],
    ['direction', 'i'],
    ['bytes', 'd'],
    ['start', 't'],
    ['duration', 'd'],
  ],
  wait: [
    ['track', 'i'],
    ['device', 'i'],
    ['start', 't'],
    ['duration', 'd'],
  ],
  collective: [
    ['track', 'i'],
    ['collective', 'i'],
    ['bytes', 'd'],
    ['values', 'd'],
    ['start', 't'],
    ['duration', 'd'],
    ['waited', 'd'],
    ['plan', 'i'],
    ['step', 'i', -1],
  ],
  span: [
    ['track', 'i'],
    ['category', 'i'],
    ['name', 'i'],
    ['start', 't'],
    ['duration', 'd'],
    ['value', 'f'],
  ],
  memory: [
    ['device', 'i'],
    ['start', 't'],
    ['used', 'd'],
    ['cached', 'd'],
    ['change', 'f'],
    ['buffer', 'f'],
  ],
};

function grown(old, Type, size) {
  const made = new Type(size);
  made.set(old);
  return made;
}

/// Types: i int32, f any number, d a number of at least 0, t a time given as differences.
const COPY = {
  i(to, at, from, count, otherwise) {
    for (let i = 0; i < count; ++i) to[at + i] = from[i] === undefined ? otherwise : from[i] | 0;
  },
  f(to, at, from, count) {
    for (let i = 0; i < count; ++i) {
      const value = +from[i];
      to[at + i] = Number.isFinite(value) ? value : 0;
    }
  },
  d(to, at, from, count) {
    for (let i = 0; i < count; ++i) {
      const value = +from[i];
      to[at + i] = value > 0 && value < LARGEST_TIME ? value : 0;
    }
  },
  t(to, at, from, count) {
    let time = 0;
    for (let i = 0; i < count; ++i) {
      const value = +from[i];
      const next = time + value;
      if (Math.abs(next) < LARGEST_TIME) time = next;
      to[at + i] = time;
    }
  },
};

/// The events of one kind.
export class Table {
  constructor(kind) {
    this.columns = KINDS[kind];
    this.count = 0;
    this.data = {};
    for (const [name, type] of this.columns) {
      this.data[name] = type === 'i' ? new Int32Array(256) : new Float64Array(256);
    }
  }

  /// Appends a block; returns how many events it had beyond the columns' agreement.
  append(columns) {
    const count = Math.min(array(columns.start).length, 2 ** 27 - this.count);
    const size = this.data.start.length;
    if (this.count + count > size) {
      const larger = Math.max(size * 2, this.count + count);
      for (const [name] of this.columns) {
        this.data[name] = grown(this.data[name], this.data[name].constructor, larger);
      }
    }
    let odd = 0;
    for (const [name, type, otherwise] of this.columns) {
      const from = array(columns[name]);
      if (from.length !== count) ++odd;
      COPY[type](this.data[name], this.count, from, count, otherwise ?? 0);
    }
    this.count += count;
    return odd;
  }

  /// The columns without spare room.
  finish() {
    const result = { count: this.count };
    for (const [name] of this.columns) result[name] = this.data[name].slice(0, this.count);
    return result;
  }
}
