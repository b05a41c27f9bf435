// Facts of a plan that its views share: rows of nodes, what each node is stored in, work by step.
import { count, plural } from '../format.js';
import { rowsById } from './graphs.js';

const ITEM_BYTES = {
  bool: 1,
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  f16: 2,
  bf16: 2,
  i32: 4,
  u32: 4,
  f32: 4,
  i64: 8,
  u64: 8,
  f64: 8,
};

/// Bytes of a value that has this shape as text, "(2, 3)"; null where a size is not a number.
function bytesOf(shape, dtype) {
  const sizes = shape
    .replace(/[()\s]/g, '')
    .split(',')
    .filter(Boolean)
    .map(Number);
  const elements = sizes.reduce((product, size) => product * size, 1);
  return Number.isFinite(elements) && ITEM_BYTES[dtype] ? elements * ITEM_BYTES[dtype] : null;
}

/// Edges from source to user as rows; sources that no row defines are left out.
function edgesOf(graph, rows) {
  const from = [],
    to = [];
  for (let row = 0; row < graph.count; ++row) {
    for (let e = graph.sourceStart[row]; e < graph.sourceStart[row + 1]; ++e) {
      const source = rows.get(graph.sources[e]);
      if (source !== undefined && source !== row) {
        from.push(source);
        to.push(row);
      }
    }
  }
  return { from: Int32Array.from(from), to: Int32Array.from(to) };
}

/// "all-reduce 12,396 bytes of 5 values, ranks 0 1".
export function collectiveText({ kind, bytes, values, ranks }) {
  const members = values.length > 1 ? ` of ${plural(values.length, 'value')}` : '';
  return `${kind} ${count(bytes)} bytes${members}, ranks ${ranks.join(' ')}`;
}

/// What a step that is no kernel does.
function textOf(steps, step) {
  const { kind, collective, start } = steps[step] ?? { kind: `step ${step}` };
  if (collective) return `start ${collectiveText(collective)}`;
  const started = kind === 'wait' ? steps[start]?.collective : null;
  return started ? `wait for ${collectiveText(started)} (step ${start})` : kind;
}

/// All that moves between the devices of a plan's meshes: the value, where, and for which reader.
export function movementsOf(plan) {
  return plan.sharded.flatMap((reader) => {
    const mesh = plan.meshes[reader.mesh]?.axes ?? '';
    const row = (move, when) => ({ ...move, mesh, reader, when });
    return [
      ...reader.before.map((move) => row(move, 'before')),
      ...reader.after.map((move) => row(move, 'after')),
    ];
  });
}

const known = new WeakMap();

/// The facts of a plan, computed once.
export function planFacts(trace, plan) {
  if (known.has(plan)) return known.get(plan);
  const { graph } = plan,
    rows = rowsById(graph),
    text = (column, row) => trace.strings[graph[column][row]] ?? '';
  const bufferOfRow = new Map();
  plan.buffers.forEach((buffer, index) => {
    const row = rows.get(buffer.node);
    if (row !== undefined && !bufferOfRow.has(row)) bufferOfRow.set(row, index);
  });
  const nodesOfStep = new Int32Array(plan.steps.length);
  for (const step of graph.step) if (step >= 0 && step < nodesOfStep.length) ++nodesOfStep[step];
  const facts = {
    rows,
    text,
    bufferOfRow,
    nodesOfStep,
    ...edgesOf(graph, rows),
    kernel: (step) => {
      const row = trace.kernelRows.get(plan.steps[step]?.kernel);
      return row === undefined ? null : trace.kernels[row];
    },
    stepName: (step) => facts.kernel(step)?.name ?? textOf(plan.steps, step),
    sharded: new Map(plan.sharded.map((value) => [value.id, value])),
    bytes: (row) => {
      const index = bufferOfRow.get(row);
      return index === undefined
        ? bytesOf(text('shape', row), text('dtype', row))
        : plan.buffers[index].bytes;
    },
  };
  known.set(plan, facts);
  return facts;
}

/// The plan that parameters name: by plan, by kernel, else the one with the most launches or nodes.
export function choosePlan(trace, id, kernel) {
  const { plans } = trace;
  const wanted =
    plans.find((plan) => plan.id === id) ??
    (kernel === null
      ? undefined
      : plans.find((plan) => plan.steps.some((step) => step.kernel === kernel)));
  if (wanted) return wanted;
  return plans.reduce(
    (best, plan) => (!best || plan.graph.count > best.graph.count ? plan : best),
    null,
  );
}

export function planTitle(plan) {
  const { id, graph, steps, work } = plan;
  const ratio = work?.graph > 0 ? `, work ${(work.executed / work.graph).toFixed(2)}` : '';
  return `plan ${id}: ${plural(graph.count, 'node')}, ${plural(steps.length, 'step')}${ratio}`;
}
