// The plan of the synthetic training step: w and x in, relu(x w) mean, w updated; and large graphs.
import { random } from './random.mjs';

const node = (id, op, shape, sources, step, more = {}) => ({
  id,
  op,
  dtype: 'f32',
  shape,
  arg: '',
  sources,
  operation: 0,
  step,
  ...more,
});

const NODES = [
  node(1, 'buffer', [64, 64], [], -1, { arg: 'x' }),
  node(2, 'buffer', [64, 64], [], -1, { arg: 'w' }),
  node(3, 'reshape', [64, 64, 1], [1], 0, { operation: 1 }),
  node(4, 'permute', [1, 64, 64], [2], 0, { operation: 1 }),
  node(5, 'mul', [64, 64, 64], [3, 4], 0, { operation: 1 }),
  node(6, 'sum', [64, 64], [5], 0, { operation: 1, arg: 'axis 1' }),
  node(7, 'const', [], [], 0, { arg: '0' }),
  node(8, 'max', [64, 64], [6, 7], 0, { operation: 2 }),
  node(9, 'sum', [], [8], 1, { operation: 3 }),
  node(10, 'mul', [], [9, 7], 1, { operation: 3 }),
  node(11, 'sub', [64, 64], [2, 8], 2, { operation: 4 }),
];

const STEPS = [
  { kind: 'kernel', kernel: 1, buffers: [0, 1, 2] },
  { kind: 'kernel', kernel: 2, buffers: [2, 3] },
  { kind: 'kernel', kernel: 3, buffers: [1, 2, 4] },
];

const BUFFERS = [
  {
    kind: 'input',
    bytes: 16384,
    dtype: 'f32',
    device: 1,
    storage: 0,
    offset: 0,
    first_step: 0,
    last_step: 2,
    node: 1,
  },
  {
    kind: 'input',
    bytes: 16384,
    dtype: 'f32',
    device: 1,
    storage: 1,
    offset: 0,
    first_step: 0,
    last_step: 2,
    node: 2,
  },
  {
    kind: 'temporary',
    bytes: 16384,
    dtype: 'f32',
    device: 1,
    storage: 2,
    offset: 0,
    first_step: 0,
    last_step: 2,
    node: 8,
  },
  {
    kind: 'output',
    bytes: 4,
    dtype: 'f32',
    device: 1,
    storage: 3,
    offset: 0,
    first_step: 1,
    last_step: 2,
    node: 10,
  },
  {
    kind: 'output',
    bytes: 16384,
    dtype: 'f32',
    device: 1,
    storage: 4,
    offset: 0,
    first_step: 2,
    last_step: 2,
    node: 11,
  },
];

export function networkPlan() {
  return { nodes: NODES, steps: STEPS, buffers: BUFFERS };
}

/// A plan of `count` nodes: layers of 40 whose nodes read nodes of the layers before.
export function largePlan(count) {
  const { below, pick } = random(19);
  const nodes = [];
  for (let id = 1; id <= count; ++id) {
    const layer = Math.floor((id - 1) / 40);
    const source = () => 1 + Math.max(0, (layer - 1 - below(3)) * 40 + below(40));
    const sources = layer === 0 ? [] : [source(), source()].filter((other) => other < id);
    nodes.push(
      node(
        id,
        pick(['add', 'mul', 'sum', 'reshape', 'exp2']),
        [below(64) + 1, 32],
        sources,
        Math.floor(layer / 2),
      ),
    );
  }
  const steps = Math.ceil(count / 80);
  return {
    nodes,
    steps: Array.from({ length: steps }, (_, i) => ({
      kind: 'kernel',
      kernel: 1 + (i % 3),
      buffers: [i],
    })),
    buffers: Array.from({ length: steps }, (_, i) => ({
      kind: 'temporary',
      bytes: 4096 * (1 + (i % 17)),
      dtype: 'f32',
      device: 1,
      storage: i % 8,
      offset: (i % 5) * 65536,
      first_step: i,
      last_step: Math.min(steps - 1, i + 1 + (i % 9)),
      node: 1 + i * 80,
    })),
  };
}
