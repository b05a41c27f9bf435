// Adds to a trace what every view asks for: lanes of the tracks, sums of the kernels, memory and
// use of the devices.
import { addFindings } from './findings.js';
import { length, makeLanes, orderByStart, overlap, referenceOf, union } from './lanes.js';

// With a track, in the order of their numbers in references.
const EVENTS = ['launch', 'copy', 'wait', 'span', 'collective'];

const EMPTY_KERNEL = {
  device: -1,
  run: 0,
  source: '',
  disassembly: '',
  schedule: '',
  why: '',
  global: [],
  local: [],
  flops: 0,
  bytes: 0,
  predicted: 0,
  compile: 0,
  fromCache: false,
  operations: [],
  candidates: [],
};

/// Tracks in the order of the trace, then those that only events name.
function allTracks(trace) {
  const tracks = new Map(trace.tracks);
  for (const kind of EVENTS) {
    const ids = trace.events[kind].track;
    for (let i = 0; i < ids.length; ++i) {
      if (tracks.has(ids[i])) continue;
      const isThread = kind === 'wait' || kind === 'span';
      tracks.set(ids[i], {
        id: ids[i],
        kind: isThread ? 'thread' : kind === 'collective' ? 'collectives' : 'queue',
        device: 0,
        name: `track ${ids[i]}`,
      });
    }
  }
  return [...tracks.values()];
}

/// How many events of any kind each track has.
function countByTrack(trace, rows, size) {
  const counts = new Uint32Array(size);
  for (const kind of EVENTS) {
    const ids = trace.events[kind].track;
    for (let i = 0; i < ids.length; ++i) ++counts[rows.get(ids[i])];
  }
  return counts;
}

function addLanes(trace) {
  const tracks = allTracks(trace);
  const rows = new Map(tracks.map((track, row) => [track.id, row]));
  const counts = countByTrack(trace, rows, tracks.length);
  const parts = tracks.map((_, row) => ({
    at: 0,
    start: new Float64Array(counts[row]),
    end: new Float64Array(counts[row]),
    reference: new Uint32Array(counts[row]),
  }));
  EVENTS.forEach((kind, number) => {
    const { track, start, duration } = trace.events[kind];
    for (let i = 0; i < track.length; ++i) {
      const part = parts[rows.get(track[i])],
        at = part.at++;
      part.start[at] = start[i];
      part.end[at] = start[i] + duration[i];
      part.reference[at] = referenceOf(number, i);
    }
  });
  trace.tracks = tracks.map((track, row) => {
    const { start, end, reference } = parts[row];
    return { ...track, count: counts[row], lanes: makeLanes(start, end, reference) };
  });
}

function extent(tables) {
  let first = Infinity,
    last = -Infinity;
  for (const { count, start, duration } of tables) {
    for (let i = 0; i < count; ++i) {
      const end = start[i] + (duration ? duration[i] : 0);
      if (start[i] < first) first = start[i];
      if (end > last) last = end;
    }
  }
  return first <= last ? [first, last] : [0, 0];
}

/// First and last time of any event; and the length of the recording, of which devices are busy:
/// from the start of the trace, if no event was dropped, to its end.
function addSpan(trace) {
  const { events, end } = trace;
  const [first, last] = extent(Object.values(events));
  trace.first = first;
  trace.last = Math.max(last, first + 1);
  let [begin, finish] = extent(EVENTS.map((kind) => events[kind]));
  if (end && end.dropped === 0) begin = Math.min(begin, 0);
  if (end) finish = Math.max(finish, end.time_ns);
  trace.recorded = finish - begin;
}

/// Kernels as rows with the sums of their launches; launchesOf.list holds each kernel's launches.
function addKernels(trace) {
  const { kernel, duration, submit, count } = trace.events.launch;
  const kernels = [...trace.kernels.values()];
  const rows = new Map(kernels.map((item, row) => [item.id, row]));
  const rowOfLaunch = new Int32Array(count);
  for (let i = 0; i < count; ++i) {
    let row = rows.get(kernel[i]);
    if (row === undefined) {
      row = kernels.push({ ...EMPTY_KERNEL, id: kernel[i], name: `kernel ${kernel[i]}` }) - 1;
      rows.set(kernel[i], row);
    }
    rowOfLaunch[i] = row;
  }
  const rewritten = new Set(trace.stages.map((stage) => stage.run));
  for (const item of kernels) {
    item.stagesRecorded = item.run !== 0 && rewritten.has(item.run);
    Object.assign(item, { launches: 0, total: 0, shortest: Infinity, longest: 0, delay: 0 });
  }
  for (let i = 0; i < count; ++i) {
    const item = kernels[rowOfLaunch[i]],
      time = duration[i];
    ++item.launches;
    item.total += time;
    item.delay += submit[i];
    if (time < item.shortest) item.shortest = time;
    if (time > item.longest) item.longest = time;
  }
  const begin = new Int32Array(kernels.length + 1),
    list = new Int32Array(count);
  kernels.forEach((item, row) => {
    begin[row + 1] = begin[row] + item.launches;
  });
  const next = begin.slice();
  for (let i = 0; i < count; ++i) list[next[rowOfLaunch[i]]++] = i;
  Object.assign(trace, { kernels, kernelRows: rows, rowOfLaunch, launchesOf: { begin, list } });
}

/// Launches measure the chosen candidate of a kernel where the search did not.
function measureChosen(trace) {
  for (const kernel of trace.kernels) {
    const chosen = kernel.candidates.find((candidate) => candidate.chosen);
    if (chosen && chosen.measured <= 0 && kernel.launches > 0) {
      chosen.measured = kernel.total / kernel.launches;
      chosen.byLaunches = true;
    }
  }
}

/// Memory over time of each device, in order of time.
function addMemory(trace) {
  const table = trace.events.memory;
  const byDevice = new Map();
  for (let i = 0; i < table.count; ++i) {
    if (!byDevice.has(table.device[i])) byDevice.set(table.device[i], []);
    byDevice.get(table.device[i]).push(i);
  }
  trace.memory = [...byDevice].map(([device, events]) => {
    const pick = (name) => Float64Array.from(events, (i) => table[name][i]);
    const start = pick('start'),
      order = orderByStart(start, start);
    const sorted = (values) => Float64Array.from(order, (i) => values[i]);
    const used = sorted(pick('used'));
    return {
      device,
      start: sorted(start),
      used,
      cached: sorted(pick('cached')),
      change: sorted(pick('change')),
      buffer: sorted(pick('buffer')),
      peak: used.reduce((most, value) => Math.max(most, value), 0),
    };
  });
}

/// The times of the events that are chosen, without overlaps.
function intervals({ count, start, duration }, isChosen) {
  const starts = [],
    ends = [];
  for (let i = 0; i < count; ++i) {
    if (!isChosen(i)) continue;
    starts.push(start[i]);
    ends.push(start[i] + duration[i]);
  }
  return union(Float64Array.from(starts), Float64Array.from(ends));
}

/// For each device: time with a kernel, with a copy, with both, and bytes copied. Like the
/// recorded time, as tools/trace/summary.cpp has them.
function addUse(trace) {
  const { copy, launch } = trace.events;
  const deviceOf = new Map(trace.tracks.map(({ id, device }) => [id, device]));
  const deviceOfLaunch = (i) => {
    const device = deviceOf.get(launch.track[i]);
    return trace.devices.has(device) ? device : trace.kernels[trace.rowOfLaunch[i]].device;
  };
  trace.use = [...trace.devices.keys()].map((device) => {
    const isCopy = (i) => deviceOf.get(copy.track[i]) === device;
    const kernels = intervals(launch, (i) => deviceOfLaunch(i) === device),
      copies = intervals(copy, isCopy);
    let bytes = 0;
    for (let i = 0; i < copy.count; ++i) if (isCopy(i)) bytes += copy.bytes[i];
    const kernelTime = length(kernels),
      copyTime = length(copies),
      bothTime = overlap(kernels, copies);
    const busyTime = kernelTime + copyTime - bothTime;
    return { device, kernelTime, copyTime, copyBytes: bytes, bothTime, busyTime };
  });
}

/// Collectives between processes, and for how long the program waited for them.
function addExchange(trace) {
  const { collective, wait } = trace.events;
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  trace.exchange = {
    count: collective.count,
    bytes: sum(collective.bytes),
    time: length(intervals(collective, () => true)),
    waitTime: length(intervals(wait, (i) => wait.device[i] === 0)),
  };
}

/// What the machine descriptions say of the devices.
function addPeaks(trace) {
  for (const device of trace.devices.values()) {
    const machine = trace.machines.get(device.id);
    device.peakGflops = machine?.peakGflops ?? 0;
    device.peakGbps = machine?.peakGbps ?? 0;
    device.launch = machine?.launch ?? 0;
  }
}

/// The trace, with tracks and kernels as lists.
export function summarise(trace) {
  addPeaks(trace);
  addLanes(trace);
  addSpan(trace);
  addKernels(trace);
  addFindings(trace);
  measureChosen(trace);
  addMemory(trace);
  addUse(trace);
  addExchange(trace);
  return trace;
}
