// Keeps the nodes of graphs as arrays of numbers, because a trace may have millions of them.
import { array, integer, text } from './values.js';

/// Gives equal strings equal numbers.
export class Strings {
  constructor() {
    this.list = [''];
    this.numbers = new Map([['', 0]]);
  }

  number(value) {
    const string = text(value);
    let found = this.numbers.get(string);
    if (found === undefined) {
      found = this.list.push(string) - 1;
      this.numbers.set(string, found);
    }
    return found;
  }
}

/// Nodes in rows: ids, op, dtype and arg (numbers of strings), sources (ids; those of node i are
/// sources[sourceStart[i]] to sources[sourceStart[i + 1] - 1]).
export class GraphBuilder {
  constructor(strings) {
    this.strings = strings;
    this.ids = [];
    this.op = [];
    this.dtype = [];
    this.arg = [];
    this.sourceStart = [0];
    this.sources = [];
  }

  add(id, op, dtype, arg, sources) {
    this.ids.push(integer(id));
    this.op.push(this.strings.number(op));
    this.dtype.push(this.strings.number(dtype));
    this.arg.push(this.strings.number(arg));
    for (const source of array(sources)) this.sources.push(integer(source));
    this.sourceStart.push(this.sources.length);
  }

  finish() {
    const result = { count: this.ids.length };
    for (const name of ['ids', 'op', 'dtype', 'arg', 'sourceStart', 'sources']) {
      result[name] = Int32Array.from(this[name]);
    }
    return result;
  }
}

/// Rows of nodes by id. Of two nodes with one id the first counts.
export function rowsById(graph) {
  const rows = new Map();
  for (let row = 0; row < graph.count; ++row) {
    if (!rows.has(graph.ids[row])) rows.set(graph.ids[row], row);
  }
  return rows;
}
