// Matches the kernels of two traces and says what got slower.
import { count, plural } from '../format.js';

function operationNames(trace, kernel) {
  return kernel.operations
    .map((id) => trace.operations.get(id)?.name)
    .filter(Boolean)
    .join(' ');
}

/// Names that differ in numbers only (sizes of another schedule) are alike.
function withoutNumbers(name) {
  return name.replace(/\d+/g, '#');
}

const WAYS = [
  {
    how: 'name and operations',
    key: (trace, kernel) => `${kernel.name}\n${operationNames(trace, kernel)}`,
  },
  { how: 'name', key: (_, kernel) => kernel.name },
  {
    how: 'operations and work',
    key: (trace, kernel) => {
      const operations = operationNames(trace, kernel);
      return operations && kernel.flops > 0 ? `${operations}\n${kernel.flops}` : null;
    },
  },
  { how: 'operations', key: (trace, kernel) => operationNames(trace, kernel) || null },
  { how: 'name without numbers', key: (_, kernel) => withoutNumbers(kernel.name) },
];

/// Kernels with equal key become one group with the sums of their launches.
function groupsOf(trace, kernels, key) {
  const groups = new Map();
  for (const kernel of kernels) {
    const at = key(trace, kernel);
    if (at === null) continue;
    if (!groups.has(at)) groups.set(at, []);
    groups.get(at).push(kernel);
  }
  return groups;
}

function sumOf(kernels) {
  const launches = kernels.reduce((sum, kernel) => sum + kernel.launches, 0);
  const total = kernels.reduce((sum, kernel) => sum + kernel.total, 0);
  return { launches, total, mean: launches > 0 ? total / launches : 0 };
}

/// Rows { name, how, a, b, kernelsA, kernelsB, change }: a and b are sums, or null where a trace
/// lacks it. `change` is the time that b took more.
export function matchKernels(first, second) {
  const launched = (trace) => trace.kernels.filter((kernel) => kernel.launches > 0);
  let openA = new Set(launched(first)),
    openB = new Set(launched(second));
  const rows = [];
  const add = (how, kernelsA, kernelsB) => {
    const a = kernelsA.length ? sumOf(kernelsA) : null,
      b = kernelsB.length ? sumOf(kernelsB) : null;
    rows.push({
      name: (kernelsA[0] ?? kernelsB[0]).name,
      how,
      a,
      b,
      kernelsA,
      kernelsB,
      change: (b?.total ?? 0) - (a?.total ?? 0),
      ratio: a?.mean > 0 && b ? b.mean / a.mean : 0,
    });
  };
  for (const { how, key } of WAYS) {
    const inA = groupsOf(first, openA, key),
      inB = groupsOf(second, openB, key);
    for (const [at, kernelsA] of inA) {
      const kernelsB = inB.get(at);
      if (!kernelsB) continue;
      add(how, kernelsA, kernelsB);
      kernelsA.forEach((kernel) => openA.delete(kernel));
      kernelsB.forEach((kernel) => openB.delete(kernel));
    }
  }
  for (const kernel of openA) add('only in A', [kernel], []);
  for (const kernel of openB) add('only in B', [], [kernel]);
  return rows;
}

function sum(values) {
  let result = 0;
  for (const value of values) result += value;
  return result;
}

const PLAN = 0,
  CODEGEN = 1,
  COMPILE = 2; // categories

/// Spans of a category: their time over all threads, their number, hits of the cache (of plans, or
/// of kernels on disk), and, beside these, kernels that the process had. Other spans of compilation
/// than those of a kernel contain them, and some of planning only write the trace
/// (tools/trace/summary.cpp counts alike).
function spanUse({ events: { span }, names, kernels }, category) {
  const ofKernels = new Set(kernels.map((kernel) => kernel.name)),
    use = { time: 0, count: 0, hits: 0, known: 0 };
  for (let i = 0; i < span.count; ++i) {
    if (span.category[i] !== category) continue;
    const name = names.get(span.name[i])?.text;
    if (category === COMPILE && !ofKernels.has(name)) continue;
    if (category === PLAN && name?.endsWith(' for the trace')) continue;
    use.time += span.duration[i];
    if (category === COMPILE && span.value[i] === 2) ++use.known;
    else ++use.count;
    if (span.value[i] === 1) ++use.hits;
  }
  return use;
}

/// "3 plans made, 20 found in their cache; 5 kernels compiled, 1 found in the disk cache, 2 in
/// memory".
export function cacheText(trace) {
  const plans = spanUse(trace, PLAN),
    kernels = spanUse(trace, COMPILE);
  return (
    `${plural(plans.count - plans.hits, 'plan')} made, ` +
    `${count(plans.hits)} found in their cache; ` +
    `${plural(kernels.count - kernels.hits, 'kernel')} compiled, ` +
    `${count(kernels.hits)} found in the disk cache, ${count(kernels.known)} in memory`
  );
}

/// Totals of a trace: [name, unit, value].
export function totalsOf(trace) {
  const { launch, copy, wait } = trace.events,
    plans = spanUse(trace, PLAN),
    kernels = spanUse(trace, COMPILE);
  return [
    ['first to last event', 'time', trace.last - trace.first],
    ['kernels', 'time', sum(launch.duration)],
    ['launches', 'count', launch.count],
    ['copies', 'time', sum(copy.duration)],
    ['copied', 'bytes', sum(copy.bytes)],
    ['copies beside kernels', 'time', sum(trace.use.map((use) => use.bothTime))],
    ['the host waits', 'time', sum(wait.duration) - trace.exchange.waitTime],
    ['the program waits for ranks', 'time', trace.exchange.waitTime],
    ['planning', 'time', plans.time],
    ['plans found in their cache', 'count', plans.hits],
    ['code generation', 'time', spanUse(trace, CODEGEN).time],
    ['compiling', 'time', kernels.time],
    ['kernels found in the disk cache', 'count', kernels.hits],
    ['kernels found in memory', 'count', kernels.known],
    ['most memory in use', 'bytes', Math.max(0, ...trace.memory.map((memory) => memory.peak))],
  ];
}
