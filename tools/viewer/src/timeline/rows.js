// Turns the tracks of a trace into the rows of the timeline.
import { CATEGORIES, COLLECTIVES, colourOf, DIRECTIONS } from '../colour.js';
import { kindOf, rowOf, upperBound } from '../trace/lanes.js';
import { MemoryCurve } from './memory_curve.js';

const LANE = 17,
  HEADING = 19,
  MEMORY = 46;

function deviceName(trace, id) {
  return trace.devices.get(id)?.name || `device ${id}`;
}

function headingOf(trace, track) {
  if (track.kind === 'thread') return track.name || `thread ${track.id}`;
  if (track.kind === 'collectives') return track.name || 'collectives';
  const device = deviceName(trace, track.device);
  return track.name.includes(device) ? track.name : `${device} ${track.name || track.kind}`;
}

/// Rows from top to bottom: queues and transfers, memory, threads. Each has top and height.
export function makeRows(trace) {
  const rows = [];
  let top = 0;
  const add = (row, height) => {
    rows.push({ ...row, top, height });
    top += height;
  };
  const addTrack = (track) => {
    if (track.count === 0) return;
    add({ type: 'heading', text: headingOf(trace, track) }, HEADING);
    for (const lane of track.lanes) add({ type: 'lane', track, lane }, LANE);
  };
  for (const track of trace.tracks) if (track.kind !== 'thread') addTrack(track);
  for (const memory of trace.memory) {
    add({ type: 'heading', text: `${deviceName(trace, memory.device)} memory` }, HEADING);
    add({ type: 'memory', memory, curve: new MemoryCurve(memory) }, MEMORY);
  }
  for (const track of trace.tracks) if (track.kind === 'thread') addTrack(track);
  return { rows, height: top };
}

/// Name, colour and search text of the events behind references.
export class EventNames {
  constructor(trace) {
    this.trace = trace;
    this.recolour();
  }

  recolour() {
    this.kernelColours = this.trace.kernels.map((_, row) => colourOf(row));
    this.copyColours = DIRECTIONS.map((_, i) => colourOf(i + 24));
    this.spanColours = CATEGORIES.map((_, i) => colourOf(i + 12));
    this.waitColour = colourOf(35);
    this.collectiveColours = COLLECTIVES.map((_, i) => colourOf(i + 28));
  }

  name(reference) {
    const row = rowOf(reference),
      { events, kernels, rowOfLaunch, names } = this.trace;
    switch (kindOf(reference)) {
      case 0:
        return kernels[rowOfLaunch[row]].name;
      case 1:
        return `copy ${DIRECTIONS[events.copy.direction[row]] ?? ''}`;
      case 2:
        return events.wait.device[row] === 0 ? 'wait for a collective' : 'wait';
      case 4:
        return COLLECTIVES[events.collective.collective[row]] ?? 'collective';
      default:
        return (
          names.get(events.span.name[row])?.text || CATEGORIES[events.span.category[row]] || 'span'
        );
    }
  }

  colour(reference) {
    const row = rowOf(reference),
      { events, rowOfLaunch } = this.trace;
    switch (kindOf(reference)) {
      case 0:
        return this.kernelColours[rowOfLaunch[row]];
      case 1:
        return this.copyColours[events.copy.direction[row] & 3];
      case 2:
        return this.waitColour;
      case 4:
        return this.collectiveColours[events.collective.collective[row]] ?? this.waitColour;
      default:
        return this.spanColours[events.span.category[row] & 7];
    }
  }

  /// A function from reference to whether the event has the text in its name, or in the name or
  /// file of an operation behind its kernel.
  matcher(search) {
    const wanted = search.toLowerCase(),
      { trace } = this;
    const has = (...texts) => texts.some((text) => text.toLowerCase().includes(wanted));
    const kernels = trace.kernels.map((kernel) =>
      has(
        kernel.name,
        ...kernel.operations
          .map((id) => trace.operations.get(id))
          .filter(Boolean)
          .flatMap((operation) => [operation.name, operation.file]),
      ),
    );
    const names = new Map([...trace.names].map(([id, { text }]) => [id, has(text)]));
    const copies = DIRECTIONS.map((direction) => has(`copy ${direction}`));
    const categories = CATEGORIES.map((category) => has(category));
    const collectives = COLLECTIVES.map((kind) => has(kind, 'collective'));
    const waits = { device: has('wait'), collective: has('wait for a collective') };
    const { collective, copy, span, wait } = trace.events;
    return (reference) => {
      const row = rowOf(reference);
      switch (kindOf(reference)) {
        case 0:
          return kernels[trace.rowOfLaunch[row]];
        case 1:
          return copies[copy.direction[row]] ?? false;
        case 2:
          return wait.device[row] === 0 ? waits.collective : waits.device;
        case 4:
          return collectives[collective.collective[row]] ?? false;
        default:
          return (names.get(span.name[row]) || categories[span.category[row]]) ?? false;
      }
    };
  }
}

/// For each lane: how many of its first i events match. Null without a search.
export function countMatches(lane, matches) {
  const counts = new Uint32Array(lane.count + 1);
  for (let i = 0; i < lane.count; ++i) {
    counts[i + 1] = counts[i] + (matches(lane.reference[i]) ? 1 : 0);
  }
  return counts;
}

/// The next event that matches, from a time on: { lane, at, start }, or null.
export function findMatch(rows, time, direction) {
  let best = null;
  for (const row of rows) {
    const counts = row.lane?.matches;
    if (!counts) continue;
    const at = direction > 0 ? nextIn(row.lane, counts, time) : previousIn(row.lane, counts, time);
    if (at < 0) continue;
    const start = row.lane.start[at];
    if (!best || (direction > 0 ? start < best.start : start > best.start)) {
      best = { row, lane: row.lane, at, start };
    }
  }
  return best;
}

function nextIn(lane, counts, time) {
  const from = upperBound(lane.start, time);
  const at = upperBound(counts, counts[from]) - 1;
  return at >= from && at < lane.count ? at : -1;
}

function previousIn(lane, counts, time) {
  let to = upperBound(lane.start, time);
  while (to > 0 && lane.start[to - 1] >= time) --to;
  const wanted = counts[to];
  if (wanted === 0) return -1;
  return upperBound(counts, wanted - 1) - 1;
}
