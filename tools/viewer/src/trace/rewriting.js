// Reconstructs the graph of a stage after its first k rewrites.
//
// A rewrite replaces `from` by `to` wherever `from` is used, except below `to` itself: a rule may
// wrap a node, x -> cast(x). The graph after k rewrites is what is reachable from the roots when
// each node stands for its replacement.
import { rowsById } from './graphs.js';

export class Rewriting {
  constructor(stage) {
    this.stage = stage;
    this.rows = rowsById(stage.graph);
    this.count = stage.rewrites.length / 3;
    this.sourceRows = stage.graph.sources.map((id) => this.rows.get(id) ?? -1);
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
    let time = -1,
      current = id;
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
    const { graph } = this.stage,
      { sourceRows } = this;
    const memo = new Int32Array(graph.count).fill(-1),
      active = new Uint8Array(graph.count);
    /// Below a node that is being visited, a node that it stands for stands for itself.
    const rowOf = (row) => {
      if (memo[row] < 0) memo[row] = this.rows.get(this.resolve(graph.ids[row], k)) ?? row;
      return active[memo[row]] ? row : memo[row];
    };
    const sources = new Map();
    const ids = this.stage.before.map((id) => this.rows.get(id));
    const roots = [...new Set(ids.filter((row) => row !== undefined).map(rowOf))];
    for (const root of roots) this.visit(root, { sourceRows, sources, active, rowOf });
    return { roots, sources };
  }

  /// Depth first, without recursion.
  visit(root, { sourceRows, sources, active, rowOf }) {
    if (sources.has(root)) return;
    const { sourceStart } = this.stage.graph,
      rows = [root],
      next = [sourceStart[root]],
      lists = [[]];
    sources.set(root, lists[0]);
    active[root] = 1;
    while (rows.length) {
      const top = rows.length - 1;
      if (next[top] === sourceStart[rows[top] + 1]) {
        active[rows.pop()] = 0;
        next.pop();
        lists.pop();
        continue;
      }
      const source = sourceRows[next[top]++];
      const row = source < 0 ? -1 : rowOf(source);
      if (row < 0 || active[row]) continue;
      lists[top].push(row);
      if (sources.has(row)) continue;
      const list = [];
      sources.set(row, list);
      active[row] = 1;
      rows.push(row);
      next.push(sourceStart[row]);
      lists.push(list);
    }
  }
}

/// Both graphs in one: rows, edges from source to user, and for each row whether the rewrite
/// removed it ("bad"), added it ("good") or kept it (null).
export function difference(before, after) {
  const rows = [...new Set([...after.sources.keys(), ...before.sources.keys()])].sort(
    (a, b) => a - b,
  );
  const index = new Map(rows.map((row, i) => [row, i]));
  const from = [],
    to = [],
    change = rows.map((row) =>
      !after.sources.has(row) ? 'bad' : !before.sources.has(row) ? 'good' : null,
    );
  for (const row of rows) {
    for (const source of after.sources.get(row) ?? before.sources.get(row)) {
      from.push(index.get(source));
      to.push(index.get(row));
    }
  }
  return { rows, index, from: Int32Array.from(from), to: Int32Array.from(to), change };
}

const FEW = 8; // users of a node through which the surroundings grow; a constant has thousands

/// The surroundings of the given nodes along the edges: at most `most` nodes.
export function around(graph, starts, most) {
  const { rows, from, to, change } = graph;
  const sources = rows.map(() => []),
    users = rows.map(() => []);
  for (let e = 0; e < from.length; ++e) {
    users[from[e]].push(to[e]);
    sources[to[e]].push(from[e]);
  }
  const kept = [...new Set(starts)],
    seen = new Set(kept);
  for (let at = 0; at < kept.length && kept.length < most; ++at) {
    const near =
      users[kept[at]].length > FEW && at >= starts.length ? [] : users[kept[at]].slice(0, FEW);
    for (const other of [...sources[kept[at]], ...near]) {
      if (!seen.has(other) && kept.length < most) {
        seen.add(other);
        kept.push(other);
      }
    }
  }
  kept.sort((a, b) => a - b);
  const renamed = new Map(kept.map((old, i) => [old, i])),
    newFrom = [],
    newTo = [];
  for (let e = 0; e < from.length; ++e) {
    if (renamed.has(from[e]) && renamed.has(to[e])) {
      newFrom.push(renamed.get(from[e]));
      newTo.push(renamed.get(to[e]));
    }
  }
  return {
    rows: kept.map((i) => rows[i]),
    index: new Map(kept.map((i, at) => [rows[i], at])),
    from: Int32Array.from(newFrom),
    to: Int32Array.from(newTo),
    change: kept.map((i) => change[i]),
  };
}
