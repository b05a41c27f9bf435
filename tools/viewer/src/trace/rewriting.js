// Reconstructs the graph of a stage after its first k rewrites.
//
// A rewrite replaces `from` by `to` wherever `from` is used, except below `to` itself: a rule may
// wrap a node, x -> cast(x). The graph after k rewrites is what is reachable from the roots when each
// node stands for its replacement.
import { rowsById } from './graphs.js';

export class Rewriting {
  constructor(stage) {
    this.stage = stage;
    this.rows = rowsById(stage.graph);
    this.count = stage.rewrites.length / 3;
    this.byFrom = new Map();
    for (let i = 0; i < this.count; ++i) {
      const from = stage.rewrites[i * 3 + 1];
      if (!this.byFrom.has(from)) this.byFrom.set(from, []);
      this.byFrom.get(from).push(i);
    }
    /// The rewrites of rules; the others only rebuild the users of a changed node.
    this.fired = [];
    for (let i = 0; i < this.count; ++i) if (stage.rewrites[i * 3] !== 0) this.fired.push(i);
  }

  rewrite(index) {
    const [rule, from, to] = this.stage.rewrites.subarray(index * 3, index * 3 + 3);
    return { rule, from, to };
  }

  /// What stands for the node after the first k rewrites. Rewrites of the replacement happen later;
  /// a replacement that was itself rewritten before is replaced in the same way.
  resolve(id, k) {
    let time = -1, current = id;
    const seen = new Set([id]);
    for (;;) {
      const list = this.byFrom.get(current);
      if (!list || list[0] >= k) return current;
      let next = list.find((index) => index > time && index < k);
      if (next === undefined) next = list.findLast((index) => index < k);
      const to = this.stage.rewrites[next * 3 + 2];
      if (seen.has(to)) return current;
      seen.add(to);
      time = Math.max(time, next);
      current = to;
    }
  }

  /// The graph after k rewrites: roots, and for each reachable row its sources, as rows.
  after(k) {
    const { graph } = this.stage, sources = new Map(), active = new Set();
    const memo = new Map();
    const standsFor = (id) => {
      if (!memo.has(id)) memo.set(id, this.resolve(id, k));
      return memo.get(id);
    };
    /// Below a node that is being visited, a node that stands for it stands for itself.
    const rowOf = (id) => {
      const row = this.rows.get(standsFor(id));
      if (row === undefined || active.has(row)) return this.rows.get(id);
      return row;
    };
    const roots = [...new Set(this.stage.before.map(rowOf).filter((row) => row !== undefined))];
    for (const root of roots) this.visit(root, graph, sources, active, rowOf);
    return { roots, sources };
  }

  /// Depth first, without recursion.
  visit(root, graph, sources, active, rowOf) {
    if (sources.has(root)) return;
    const open = [{ row: root, next: graph.sourceStart[root], found: [] }];
    sources.set(root, open[0].found);
    active.add(root);
    while (open.length) {
      const top = open.at(-1);
      if (top.next === graph.sourceStart[top.row + 1]) {
        active.delete(top.row);
        open.pop();
        continue;
      }
      const row = rowOf(graph.sources[top.next++]);
      if (row === undefined || active.has(row)) continue;
      top.found.push(row);
      if (sources.has(row)) continue;
      const made = { row, next: graph.sourceStart[row], found: [] };
      sources.set(row, made.found);
      active.add(row);
      open.push(made);
    }
  }
}

/// Both graphs in one: rows, edges from source to user, and for each row whether the rewrite
/// removed it ("bad"), added it ("good") or kept it (null).
export function difference(before, after) {
  const rows = [...new Set([...after.sources.keys(), ...before.sources.keys()])].sort((a, b) => a - b);
  const index = new Map(rows.map((row, i) => [row, i]));
  const from = [], to = [], change = rows.map((row) =>
    (!after.sources.has(row) ? 'bad' : !before.sources.has(row) ? 'good' : null));
  for (const row of rows) {
    for (const source of after.sources.get(row) ?? before.sources.get(row)) {
      from.push(index.get(source));
      to.push(index.get(row));
    }
  }
  return { rows, index, from: Int32Array.from(from), to: Int32Array.from(to), change };
}

const FEW = 8;  // users of a node through which the surroundings grow; a constant has thousands

/// The surroundings of the given nodes along the edges: at most `most` nodes.
export function around(graph, starts, most) {
  const { rows, from, to, change } = graph;
  const sources = rows.map(() => []), users = rows.map(() => []);
  for (let e = 0; e < from.length; ++e) {
    users[from[e]].push(to[e]);
    sources[to[e]].push(from[e]);
  }
  const kept = [...new Set(starts)], seen = new Set(kept);
  for (let at = 0; at < kept.length && kept.length < most; ++at) {
    const near = users[kept[at]].length > FEW && at >= starts.length ? [] : users[kept[at]].slice(0, FEW);
    for (const other of [...sources[kept[at]], ...near]) {
      if (!seen.has(other) && kept.length < most) {
        seen.add(other);
        kept.push(other);
      }
    }
  }
  kept.sort((a, b) => a - b);
  const renamed = new Map(kept.map((old, i) => [old, i])), newFrom = [], newTo = [];
  for (let e = 0; e < from.length; ++e) {
    if (renamed.has(from[e]) && renamed.has(to[e])) {
      newFrom.push(renamed.get(from[e]));
      newTo.push(renamed.get(to[e]));
    }
  }
  return {
    rows: kept.map((i) => rows[i]), index: new Map(kept.map((i, at) => [rows[i], at])),
    from: Int32Array.from(newFrom), to: Int32Array.from(newTo), change: kept.map((i) => change[i]),
  };
}
