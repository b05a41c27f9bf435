// Functions without a page: reading, lanes.
import assert from 'node:assert/strict';
import { makeLanes, overlap, union } from '../src/trace/lanes.js';
import { TraceRecords } from '../src/trace/records.js';
import { summarise } from '../src/trace/summary.js';
import { smallTrace } from './synthetic.mjs';

export function traceOf(lines) {
  const records = new TraceRecords();
  for (const line of lines) records.read(line);
  return Object.assign(summarise(records.finish()), { problems: records.problems, problemCount: records.problemCount });
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
    assert.equal(trace.memory[0].peak, 49152);
    assert.equal(trace.events.launch.start[3], 30e6 + 100e3);
  },

  'lanes: overlapping events are in different lanes, in order'() {
    const lanes = makeLanes(Float64Array.of(5, 0, 1, 12), Float64Array.of(8, 10, 4, 13), Uint32Array.of(0, 1, 2, 3));
    assert.deepEqual(lanes.map((lane) => [...lane.reference]), [[1, 3], [2, 0]]);
    assert.deepEqual([...lanes[1].busy], [0, 3, 6]);
  },

  'lanes: overlap of two sets of intervals'() {
    const a = union(Float64Array.of(0, 5, 20), Float64Array.of(6, 10, 30));
    const b = union(Float64Array.of(8), Float64Array.of(25));
    assert.deepEqual(a, { starts: [0, 20], ends: [10, 30] });
    assert.equal(overlap(a, b), 2 + 5);
  },
};
