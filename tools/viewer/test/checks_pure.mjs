// Functions without a page: reading, lanes.
import assert from 'node:assert/strict';
import { totalsOf } from '../src/trace/compare.js';
import { makeLanes, overlap, union } from '../src/trace/lanes.js';
import { layOutLayers } from '../src/graph/layers.js';
import { movementsOf, planFacts } from '../src/trace/plan.js';
import { TraceRecords } from '../src/trace/records.js';
import { around, difference, Rewriting } from '../src/trace/rewriting.js';
import { summarise } from '../src/trace/summary.js';
import { smallTrace } from './synthetic.mjs';
import { largePlan } from './synthetic_plan.mjs';
import { largeStage } from './synthetic_stages.mjs';

export function traceOf(lines) {
  const records = new TraceRecords();
  for (const line of lines) records.read(line);
  return Object.assign(summarise(records.finish()), {
    problems: records.problems,
    problemCount: records.problemCount,
  });
}

export const pureChecks = {
  'trace: numbers are those of the program'() {
    const trace = traceOf(smallTrace({ steps: 20 }));
    assert.equal(trace.problemCount, 0, trace.problems.join());
    assert.equal(trace.events.launch.count, 60);
    assert.equal(trace.kernels[0].launches, 20);
    assert.equal(trace.kernels[0].total, 20 * 40000);
    assert.equal(trace.use[0].bothTime, 20 * 10e3);
    assert.equal(trace.use[0].copyBytes, 20 * 65536);
    assert.equal(trace.use[0].busyTime, 20 * (55e3 + 10e3));
    assert.equal(trace.recorded, 33e6);
    const [{ launch, row, more }, ...others] = trace.findings;
    assert.deepEqual([launch, more.length, others.length], [4, 1, 0]);
    assert.equal(trace.kernels[row].name, 'mean_64');
    assert.equal(trace.memory[0].peak, 49152);
    assert.equal(trace.events.launch.start[3], 30e6 + 100e3);
  },

  'plan: names collectives, their waits, and what moves'() {
    const collective = { kind: 'all-reduce', bytes: 12396, ranks: [0, 1], dtype: 'f32' };
    const value = { op: 'Reduce', dtype: 'f32', shape: [1, 6], spec: '[-, -] partial add(data)' };
    const move = { kind: 'all-reduce', value: 7, along: 'data', bytes: 24 };
    const plan = {
      t: 'plan',
      id: 1,
      nodes: [{ id: 0, op: 'reduce', shape: [1, 6], part_of: 7, position: 1, spec: value.spec }],
      steps: [
        { kind: 'collective', collective: { ...collective, values: [{}, {}, {}, {}, {}] } },
        { kind: 'collective', collective: { ...collective, values: [{ shape: [2] }] } },
        { kind: 'wait', start: 0 },
        { kind: 'wait', start: 9 },
      ],
      meshes: [{ axes: 'data=2', ranks: [0, 1], devices: ['CPU', ''] }],
      sharded: [
        { ...value, id: 7, mesh: 0, after: [move] },
        { ...value, id: 8, mesh: 3, before: [move, 5, { kind: {} }], after: 'x' },
      ],
    };
    const trace = traceOf([JSON.stringify(plan)]);
    const facts = planFacts(trace, trace.plans[0]);
    assert.deepEqual([0, 1, 2, 3].map(facts.stepName), [
      'start all-reduce 12,396 bytes of 5 values, ranks 0 1',
      'start all-reduce 12,396 bytes, ranks 0 1',
      'wait for all-reduce 12,396 bytes of 5 values, ranks 0 1 (step 0)',
      'wait',
    ]);
    const rows = movementsOf(trace.plans[0]);
    assert.deepEqual(
      rows.map(({ kind, value, bytes, mesh, when }) => [kind, value, bytes, mesh, when]),
      [
        ['all-reduce', 7, 24, 'data=2', 'after'],
        ['all-reduce', 7, 24, '', 'before'],
        ['', -1, 0, '', 'before'],
      ],
    );
    assert.equal(facts.text('spec', 0), value.spec);
    assert.deepEqual([...trace.plans[0].graph.partOf], [7]);
  },

  'timeline: collectives are on a track of their own, and their waits on that of the thread'() {
    const events = (kind, columns) =>
      JSON.stringify({ t: 'events', kind, count: columns.start.length, columns });
    const trace = traceOf([
      JSON.stringify({ t: 'trace', version: 1, rank: 1, ranks: 4 }),
      JSON.stringify({ t: 'track', id: 5, kind: 'collectives', device: 0, name: 'collectives' }),
      events('collective', {
        track: [5, 5],
        collective: [0, 9],
        bytes: [28, 100],
        values: [2, 1],
        start: [100, 50],
        duration: [100, 60],
        waited: [30, 0],
        plan: [1, 1],
        step: [3, 4],
      }),
      events('wait', { track: [6, 6], device: [0, 1], start: [180, 70], duration: [30, 400] }),
    ]);
    assert.equal(trace.problemCount, 0, trace.problems.join());
    assert.deepEqual([trace.header.rank, trace.header.ranks], [1, 4]);
    assert.deepEqual(trace.exchange, { count: 2, bytes: 128, time: 110, waitTime: 30 });
    assert.deepEqual(
      trace.tracks.map(({ kind, lanes }) => [kind, lanes.length]),
      [
        ['collectives', 2],
        ['thread', 1],
      ],
    );
  },

  'compare: the time of compiling has each kernel once'() {
    const totals = new Map(totalsOf(traceOf(smallTrace())).map(([name, , value]) => [name, value]));
    assert.equal(totals.get('compiling'), 2 * 12e6);
    assert.equal(totals.get('kernels found in the disk cache'), 1);
    assert.equal(totals.get('plans found in their cache'), 0);
  },

  'compare: kernels in memory and spans that write the trace are no work'() {
    const lines = smallTrace(),
      totals = (of) => new Map(totalsOf(traceOf(of)).map(([name, , value]) => [name, value])),
      before = totals(lines),
      columns = {
        track: [3, 3],
        category: [2, 0],
        name: [2, 9000], // 2: of a kernel
        start: [10, 10],
        duration: [5, 7],
        value: [2, 0],
      };
    lines.splice(
      -1,
      0,
      JSON.stringify({ t: 'name', id: 9000, text: 'define plan for the trace' }),
      JSON.stringify({ t: 'events', kind: 'span', count: 2, columns }),
    );
    const after = totals(lines);
    assert.equal(before.get('kernels found in memory'), 0);
    assert.equal(after.get('kernels found in memory'), 1);
    assert.equal(after.get('kernels found in the disk cache'), 1);
    assert.equal(after.get('planning'), before.get('planning'));
  },

  'lanes: of events that begin together the longer one is first'() {
    const lanes = makeLanes(Float64Array.of(0, 0), Float64Array.of(1, 9), Uint32Array.of(0, 1));
    assert.deepEqual(
      lanes.map((lane) => [...lane.reference]),
      [[1], [0]],
    );
  },

  'lanes: overlapping events are in different lanes, in order'() {
    const lanes = makeLanes(
      Float64Array.of(5, 0, 1, 12),
      Float64Array.of(8, 10, 4, 13),
      Uint32Array.of(0, 1, 2, 3),
    );
    assert.deepEqual(
      lanes.map((lane) => [...lane.reference]),
      [
        [1, 3],
        [2, 0],
      ],
    );
    assert.deepEqual([...lanes[1].busy], [0, 3, 6]);
  },

  'lanes: overlap of two sets of intervals'() {
    const a = union(Float64Array.of(0, 5, 20), Float64Array.of(6, 10, 30));
    const b = union(Float64Array.of(8), Float64Array.of(25));
    assert.deepEqual(a, { starts: [0, 20], ends: [10, 30] });
    assert.equal(overlap(a, b), 2 + 5);
  },

  'rewriting: the graph after each rewrite, up to the one that the stage gave'() {
    const trace = traceOf(smallTrace()),
      [simplify, , casts] = trace.stages;
    const idsAfter = (stage, k) =>
      [...new Rewriting(stage).after(k).sources].map(([row, sources]) => [
        stage.graph.ids[row],
        ...sources.map((source) => stage.graph.ids[source]),
      ]);
    assert.deepEqual(idsAfter(simplify, 0), [[6, 5, 4], [5, 3, 4], [3, 1, 2], [1], [2], [4]]);
    assert.deepEqual(idsAfter(simplify, 1), [[6, 5, 4], [5, 1, 4], [1], [4]]);
    assert.deepEqual(idsAfter(simplify, 4), [[9, 1, 4], [1], [4]]);
    assert.deepEqual(
      idsAfter(casts, 1),
      [[6, 3], [3, 4, 2], [4, 1], [1], [2]],
      'a wrapped node stays below its wrapper',
    );
    for (const stage of trace.stages) {
      const { roots } = new Rewriting(stage).after(stage.rewrites.length / 3);
      assert.deepEqual(
        roots.map((row) => stage.graph.ids[row]),
        [...stage.after],
      );
    }
  },

  'rewriting: a graph that the stage made itself is below its root'() {
    const stage = {
      t: 'stage',
      id: 1,
      run: 1,
      nodes: [
        [1, 'sink', '', '', []],
        [2, 'const', 'i32', '1', []],
        [3, 'mul', 'i32', '', [2, 2]],
        [4, 'sink', '', '', [3]],
        [5, 'sink', '', '', [2]],
      ],
      before: [1],
      after: [5],
      roots: [[0, 4]],
      rewrites: [
        [1, 3, 2],
        [0, 4, 5],
      ],
    };
    const rewriting = new Rewriting(traceOf([JSON.stringify(stage)]).stages[0]);
    const ids = ({ sources }) => [...sources.keys()].map((row) => stage.nodes[row][0]);
    assert.deepEqual(ids(rewriting.after(0)), [1]);
    assert.deepEqual(ids(rewriting.after(0, 0)), [4, 3, 2]);
    assert.deepEqual(ids(rewriting.after(2)), [5, 2]);
    assert.ok(rewriting.isComplete());
  },

  'rewriting: a cycle of rewrites and of nodes ends'() {
    const stage = {
      t: 'stage',
      id: 1,
      run: 1,
      nodes: [
        [1, 'a', '', '', [2]],
        [2, 'b', '', '', [1]],
      ],
      before: [1, 7],
      after: [],
      rewrites: [
        [1, 1, 2],
        [1, 2, 1],
        [1, 1, 1],
        [1, 9, 1],
      ],
    };
    const rewriting = new Rewriting(traceOf([JSON.stringify(stage)]).stages[0]);
    for (let k = 0; k <= 4; ++k) assert.ok(rewriting.after(k).sources.size >= 1);
  },

  'rewriting: steps of a large stage are fast, their surroundings small'({ timings }) {
    const rewriting = new Rewriting(traceOf([JSON.stringify(largeStage(50000))]).stages[0]);
    const begin = performance.now();
    const shown = difference(rewriting.after(8000), rewriting.after(8001));
    const near = around(
      shown,
      [shown.index.get(rewriting.rows.get(rewriting.rewrite(8000).to))],
      120,
    );
    timings.rewrite_step_of_50000_nodes_ms = performance.now() - begin;
    assert.equal(shown.change.filter((change) => change === 'bad').length, 1);
    assert.ok(near.rows.length <= 120 && near.rows.length > 3);
  },

  'layers: no two nodes of a large graph overlap, users are below their sources'({ timings }) {
    const trace = traceOf([JSON.stringify({ t: 'plan', id: 1, ...largePlan(50000) })]),
      [plan] = trace.plans;
    const { from, to } = planFacts(trace, plan),
      { count } = plan.graph;
    const width = new Float32Array(count).fill(80),
      height = new Float32Array(count).fill(36),
      begin = performance.now();
    const { x, y } = layOutLayers({ count, from, to, width, height }, { across: 20, between: 30 });
    timings.layers_of_50000_nodes_ms = performance.now() - begin;
    for (let e = 0; e < from.length; ++e) assert.ok(y[from[e]] < y[to[e]]);
    const order = Array.from({ length: count }, (_, i) => i).sort(
      (a, b) => y[a] - y[b] || x[a] - x[b],
    );
    for (let i = 1; i < count; ++i) {
      const [a, b] = [order[i - 1], order[i]];
      assert.ok(y[a] < y[b] || x[b] - x[a] > 99, `${a} and ${b} overlap`);
    }
  },
};
