// Makes traces as docs/trace-format.md describes them: a training step of a small network with
// every type of line, in which all numbers are known.
import { networkPlan } from './synthetic_plan.mjs';
import { codegenStages, RULES, scheduleStages } from './synthetic_stages.mjs';

export const OPERATIONS = [
  {
    id: 1,
    name: 'matmul',
    file: 'examples/train.cpp',
    line: 21,
    function: 'step',
    stack: ['step (examples/train.cpp:21)', 'main (examples/train.cpp:40)'],
  },
  { id: 2, name: 'relu', file: 'examples/train.cpp', line: 21, function: 'step' },
  { id: 3, name: 'mean', file: 'examples/train.cpp', line: 23, function: 'step' },
  { id: 4, name: 'operator-', file: 'examples/train.cpp', line: 30, function: 'update' },
];

const SOURCE = `void matmul_64(const float* a, const float* b, float* c) {
  for (int i = 0; i < 64; ++i)
    c[i] = a[i] < 0 ? 0 : a[i] * b[i];
}`;

/// Kernels: 1 fused matmul and relu, 2 mean, 3 update; name, work and time of a launch in ns.
export const KERNELS = [
  {
    id: 1,
    name: 'matmul_relu_64x64',
    flops: 2 * 64 ** 3,
    work: 900,
    bytes: 3 * 64 * 64 * 4,
    time: 40000,
    operations: [1, 2],
  },
  { id: 2, name: 'mean_64', flops: 64 * 64, bytes: 64 * 64 * 4, time: 9000, operations: [3] },
  { id: 3, name: 'update_4096', flops: 2 * 4096, bytes: 3 * 4096 * 4, time: 6000, operations: [4] },
];

function candidates(kernel) {
  return [
    {
      schedule: 'upcast 0 4',
      predicted_ns: kernel.time * 1.4,
      measured_ns: kernel.time * 1.6,
      chosen: false,
    },
    {
      schedule: 'upcast 0 8, unroll 1 4',
      predicted_ns: kernel.time * 0.9,
      measured_ns: kernel.time,
      chosen: true,
    },
    { schedule: 'no step', predicted_ns: kernel.time * 8, measured_ns: 0, chosen: false },
  ];
}

function kernelLine(kernel, withRules) {
  const { time, ...rest } = kernel;
  return {
    t: 'kernel',
    device: 1,
    ...rest,
    source: SOURCE,
    disassembly: 'vmulps ymm0, ymm1, ymm2\nret',
    schedule: 'upcast 0 8\nunroll 1 4',
    why: 'The cost model predicts 36 µs; the next takes 56 µs.',
    global: [8, 1, 1],
    local: [8, 1, 1],
    predicted_ns: time * 0.9,
    compile_ns: 12e6,
    from_cache: kernel.id === 3,
    run: withRules ? kernel.id + 1 : 0,
    candidates: candidates(kernel),
  };
}

export function eventBlock(kind, columns) {
  const start = columns.start.map((value, i) => (i === 0 ? value : value - columns.start[i - 1]));
  return { t: 'events', kind, count: start.length, columns: { ...columns, start } };
}

export function definitions({
  program = 'train',
  cpu = 'Test CPU',
  rules = true,
  slower = 1,
  device = 'CPU:0',
} = {}) {
  const kernels = KERNELS.map((kernel) => ({
    ...kernel,
    time: Math.round(kernel.time * (kernel.id === 1 ? slower : 1)),
  }));
  return {
    kernels,
    lines: [
      {
        t: 'trace',
        version: 1,
        program,
        pid: 42,
        start_ns: 123,
        start_unix_ns: 1.7e18,
        rules,
        threads: 2,
        cpu,
      },
      {
        t: 'device',
        id: 1,
        name: device,
        arch: 'x86-64-v3',
        clock: 'host',
        clock_error_ns: 0,
        hardware: cpu,
        memory_bytes: 8 * 2 ** 30,
      },
      { t: 'machine', device: 1, peak_gflops: 100, peak_gbps: 20, launch_ns: 1500 },
      { t: 'track', id: 1, kind: 'queue', device: 1, name: 'queue 0' },
      { t: 'track', id: 2, kind: 'transfers', device: 1, name: 'transfers' },
      { t: 'track', id: 3, kind: 'thread', device: 0, name: 'main' },
      { t: 'track', id: 4, kind: 'thread', device: 0, name: 'pool 1' },
      ...OPERATIONS.map((operation) => ({ t: 'operation', ...operation })),
      ...kernels.map((kernel) => kernelLine(kernel, rules)),
      { t: 'name', id: 1, text: 'plan of step' },
      { t: 'name', id: 2, text: 'matmul_relu_64x64' },
      { t: 'name', id: 3, text: 'replay' },
      { t: 'name', id: 4, text: 'mean_64' },
      { t: 'name', id: 5, text: 'make kernels' },
      { t: 'future type', what: 'readers skip it' },
    ],
  };
}

function launches(kernels, steps) {
  const columns = {
    track: [],
    kernel: [],
    start: [],
    duration: [],
    submit: [],
    plan: [],
    step: [],
  };
  for (let step = 0; step < steps; ++step) {
    let time = 30e6 + step * 100e3;
    kernels.forEach((kernel, i) => {
      const row = [1, kernel.id, time, kernel.time, 2000, 1, i];
      Object.keys(columns).forEach((name, at) => columns[name].push(row[at]));
      time += kernel.time + 1000;
    });
  }
  return columns;
}

/// One copy a step: the first half of it lies beside the first kernel.
function copies(steps) {
  const columns = { track: [], direction: [], bytes: [], start: [], duration: [] };
  for (let step = 0; step < steps; ++step) {
    [2, step % 2, 65536, 30e6 + step * 100e3 - 10e3, 20e3].forEach((value, at) =>
      Object.values(columns)[at].push(value),
    );
  }
  return columns;
}

function memory(steps) {
  const columns = { device: [], start: [], used: [], cached: [], change: [], buffer: [] };
  const add = (...row) => Object.values(columns).forEach((column, at) => column.push(row[at]));
  add(1, 1e6, 16384, 0, 16384, 1);
  for (let step = 0; step < steps; ++step) {
    add(1, 30e6 + step * 100e3, 49152, 0, 32768, 2 + step);
    add(1, 30e6 + step * 100e3 + 70e3, 16384, 32768, -32768, 2 + step);
  }
  return columns;
}

/// Two reports of a layer: mean_64 differs in its second launch.
const FINDINGS = [
  {
    text: 'kernel mean_64 differs from REFERENCE:0: buffer 0 [1,234] is 2 (0x40000000)',
    difference: {
      reference: 'REFERENCE:0',
      buffer: 0,
      index: 1234,
      got: '2 (0x40000000)',
      expected: '1 (0x3f800000)',
      ulp: 8388608,
      differing: 3,
      elements: 4096,
    },
  },
  { text: 'kernel mean_64: operation: ADD f32' },
];

function findings(device) {
  const about = { layer: 'compare', device, kernel: 'mean_64', time_ns: 30e6 + 199e3 };
  return FINDINGS.map((finding, i) => ({ t: 'finding', id: i + 1, ...about, ...finding }));
}

/// A trace of `steps` training steps as lines of text.
export function smallTrace({ steps = 20, rules = true, ...more } = {}) {
  const { kernels, lines } = definitions({ rules, ...more });
  lines.push({ t: 'plan', id: 1, run: rules ? 1 : 0, ...networkPlan() });
  lines.push({ t: 'work', plan: 1, executed: 600000, graph: 500000 });
  if (rules) lines.push(...RULES, ...scheduleStages(), ...codegenStages());
  lines.push(...findings(more.device ?? 'CPU:0'));
  const spans = {
    track: [3, 3, 3, 3, 4, 3],
    category: [0, 1, 2, 2, 2, 3],
    name: [1, 2, 5, 2, 4, 3],
    start: [2e6, 5e6, 8.5e6, 9e6, 9.5e6, 29e6],
    duration: [2e6, 3e6, 13e6, 12e6, 12e6, steps * 100e3 + 2e6],
    value: [3, 0, 0, 0, 1, steps],
  };
  lines.push(
    eventBlock('launch', launches(kernels, steps)),
    eventBlock('copy', copies(steps)),
    eventBlock('wait', { track: [3], device: [1], start: [29.5e6], duration: [5e5] }),
    eventBlock('span', spans),
    eventBlock('memory', memory(steps)),
    {
      t: 'end',
      launches: steps * 3,
      copies: steps,
      copied_bytes: steps * 65536,
      waits: 1,
      rewrites: 7,
      dropped: 0,
      time_ns: 33e6,
    },
  );
  return lines.map((line) => JSON.stringify(line));
}

/// A trace of many launches on two queues, copies and memory over time.
export function manyEvents(count) {
  const { lines } = definitions({ program: 'many events', rules: false });
  lines.push({ t: 'track', id: 5, kind: 'queue', device: 1, name: 'queue 1' });
  const block = 4096;
  for (let begin = 0; begin < count; begin += block) {
    const size = Math.min(block, count - begin);
    const at = (make) => Array.from({ length: size }, (_, i) => make(begin + i));
    const start = at((i) => Math.floor(i / 2) * 900 + (i % 7) * 11);
    lines.push(
      eventBlock('launch', {
        track: at((i) => (i % 2 ? 5 : 1)),
        kernel: at((i) => 1 + (((i * 7919) >>> 3) % 3)),
        start,
        duration: at((i) => 300 + ((i * 31) % 500)),
        submit: at((i) => 100 + (i % 900)),
        plan: at(() => 0),
        step: at(() => -1),
      }),
    );
    lines.push(
      eventBlock('memory', {
        device: at(() => 1),
        start,
        used: at((i) => 1e6 + ((i * 37) % 1000003)),
        cached: at((i) => (i * 17) % 300007),
        change: at((i) => (i % 2 ? -64 : 64)),
        buffer: at((i) => i >> 1),
      }),
    );
  }
  lines.push({
    t: 'end',
    launches: count,
    copies: 0,
    copied_bytes: 0,
    waits: 0,
    rewrites: 0,
    dropped: 0,
  });
  return lines.map((line) => JSON.stringify(line));
}

/// Replaces every name in a trace by text that would run or show if it became markup.
export function hostileTrace() {
  const evil =
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u0000\u202e"\'`${1}';
  const poison = (value, key) => {
    if (typeof value === 'string')
      return ['t', 'kind', 'pipeline'].includes(key) ? value : `${evil}${value}`;
    if (Array.isArray(value)) return value.map((item) => poison(item, key));
    if (value && typeof value === 'object') {
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, poison(item, name)]),
      );
    }
    return value;
  };
  return smallTrace({ steps: 3 }).map((line) => JSON.stringify(poison(JSON.parse(line))));
}
