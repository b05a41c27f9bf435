// Reconstructs the graph of a stage after its first k rewrites.
//
// A rewrite replaces `from` by `to` wherever `from` is used, except below `to` itself: a rule may
// wrap a node, x -> cast(x). The graph after k rewrites is what is reachable from the roots when
// each node stands for its replacement.
import { rowsById } from './graphs.js';

/// The graphs that a rewrite may belong to.
const NONE = 0,
  BEFORE = 1,
  OWN = 2;

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
    this.findRoots();
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

  /// The graph after k rewrites: roots, and for each reachable row its sources, as rows. It grows
  /// from the roots of the graph that the rewrite `at` belongs to.
  after(k, at = k - 1) {
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
    const roots = [...new Set(this.rootsAt(at).map(rowOf))];
    for (const root of roots) this.visit(root, { sourceRows, sources, active, rowOf });
    return { roots, sources };
  }

  rowsOf(ids) {
    return [...ids].map((id) => this.rows.get(id)).filter((row) => row !== undefined);
  }

  /// The roots of the graph that a rewrite belongs to: that before the stage, or those of the
  /// stage's own graph that rewriters have begun with so far.
  rootsAt(rewrite) {
    const graph = rewrite >= 0 ? this.graphOf[rewrite] : BEFORE;
    if (graph === OWN) {
      return this.ownRoots.filter(({ since }) => since <= rewrite).map(({ row }) => row);
    }
    if (graph === BEFORE) return this.rowsOf(this.stage.before);
    return this.rowsOf([this.rewrite(rewrite).from]);
  }

  /// Finds the graph of each rewrite: that before the stage and what became of it, one that the
  /// stage itself made, or none: a builder simplifies a node that it makes.
  findRoots() {
    const { graph, rewrites, before, roots } = this.stage;
    this.graphOf = new Uint8Array(this.count).fill(BEFORE);
    this.ownRoots = []; // { row, since: the first rewrite below it }
    const owner = new Uint8Array(graph.count).fill(NONE);
    this.claim(owner, this.rowsOf(before), BEFORE);
    for (let i = 0, next = 0, root = -1; i < this.count; ++i) {
      while (next < roots.length && roots[next] <= i) {
        root = roots[next + 1];
        next += 2;
      }
      const row = this.rows.get(root >= 0 ? root : rewrites[i * 3 + 1]);
      if (row === undefined) continue;
      if (owner[row] === NONE && root >= 0) {
        this.ownRoots.push({ row, since: i });
        this.claim(owner, [row], OWN);
      }
      this.graphOf[i] = owner[row];
      this.claim(owner, this.rowsOf([rewrites[i * 3 + 2]]), owner[row]);
    }
  }

  /// Gives `who` the rows and what they reach, as far as nobody owns it.
  claim(owner, rows, who) {
    if (who === NONE) return;
    const { sourceStart } = this.stage.graph,
      open = rows.filter((row) => owner[row] === NONE);
    for (const row of open) owner[row] = who;
    while (open.length) {
      const row = open.pop();
      for (let e = sourceStart[row]; e < sourceStart[row + 1]; ++e) {
        const source = this.sourceRows[e];
        if (source < 0 || owner[source] !== NONE) continue;
        owner[source] = who;
        open.push(source);
      }
    }
  }

  /// The graph that the stage gave: its rewrites, and what it did besides.
  result() {
    const { graph, after } = this.stage,
      { sourceRows } = this;
    const sources = new Map(),
      roots = this.rowsOf(after);
    const context = {
      sourceRows,
      sources,
      active: new Uint8Array(graph.count),
      rowOf: (row) => row,
    };
    for (const root of roots) this.visit(root, context);
    return { roots, sources };
  }

  /// Adds a node and what it is made of to a graph that does not reach it.
  add(reached, id) {
    const { sourceRows } = this,
      { sources } = reached;
    const active = new Uint8Array(this.stage.graph.count);
    const context = { sourceRows, sources, active, rowOf: (row) => row };
    for (const row of this.rowsOf([id])) this.visit(row, context);
  }

  /// Whether the rewrites lead to the graph after the stage.
  isComplete() {
    const { after, graph } = this.stage;
    const roots = this.rootsAt(this.count - 1).map((row) =>
      this.resolve(graph.ids[row], this.count),
    );
    const found = new Set(roots);
    return found.size === new Set(after).size && after.every((id) => found.has(id));
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

/// The graph with one more edge, from what a rewrite gave to what it removed, so that both are
/// placed near each other; `joined` is its number. Unchanged where the node is still in use.
export function joinEnds(graph, from, to) {
  const removed = graph.index.get(from),
    given = graph.index.get(to);
  if (removed === undefined || given === undefined || graph.change[removed] !== 'bad') return graph;
  return {
    ...graph,
    from: Int32Array.of(...graph.from, given),
    to: Int32Array.of(...graph.to, removed),
    joined: graph.from.length,
  };
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
