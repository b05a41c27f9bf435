// Puts the events of a track into lanes: within a lane no event begins before the one in front of
// it ends, so that a picture finds the event at any time by binary search.

const MOST_LANES = 24;
const SHIFT = 28; // an event's reference: its kind in the upper bits, its row below

export function referenceOf(kind, row) {
  return ((kind << SHIFT) | row) >>> 0;
}

export function kindOf(reference) {
  return reference >>> SHIFT;
}

export function rowOf(reference) {
  return reference & ((1 << SHIFT) - 1);
}

function isInOrder(start, end) {
  for (let i = 1; i < start.length; ++i) {
    if (start[i] < start[i - 1]) return false;
    if (start[i] === start[i - 1] && end[i] > end[i - 1]) return false;
  }
  return true;
}

/// Positions in order of start; of equal starts the longer event comes first.
export function orderByStart(start, end) {
  const order = new Uint32Array(start.length);
  for (let i = 0; i < order.length; ++i) order[i] = i;
  if (!isInOrder(start, end)) order.sort((a, b) => start[a] - start[b] || end[b] - end[a] || a - b);
  return order;
}

/// The lane of each event, in the given order; the deepest lane takes what finds no room.
function assignLanes(order, start, end) {
  const lanes = new Uint8Array(order.length),
    ends = [],
    counts = [];
  for (let i = 0; i < order.length; ++i) {
    const event = order[i];
    let lane = 0;
    while (lane < ends.length && ends[lane] > start[event] && lane < MOST_LANES - 1) ++lane;
    if (lane === ends.length) {
      ends.push(0);
      counts.push(0);
    }
    ends[lane] = Math.max(ends[lane], end[event]);
    lanes[i] = lane;
    ++counts[lane];
  }
  return { lanes, counts };
}

/// Lanes of events: start, end, reference, and busy[i] = time in the first i events.
export function makeLanes(start, end, reference) {
  const order = orderByStart(start, end);
  const { lanes, counts } = assignLanes(order, start, end);
  const made = counts.map((count) => ({
    count: 0,
    start: new Float64Array(count),
    end: new Float64Array(count),
    reference: new Uint32Array(count),
    busy: new Float64Array(count + 1),
  }));
  for (let i = 0; i < order.length; ++i) {
    const event = order[i],
      lane = made[lanes[i]],
      at = lane.count++;
    lane.start[at] = start[event];
    lane.end[at] = end[event];
    lane.reference[at] = reference[event];
    lane.busy[at + 1] = lane.busy[at] + end[event] - start[event];
  }
  return made;
}

/// The first position whose value is greater than `value`.
export function upperBound(values, value, from = 0, to = values.length) {
  let low = from,
    high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// Disjoint intervals, in order, that cover the same times.
export function union(start, end) {
  const order = orderByStart(start, end),
    starts = [],
    ends = [];
  for (const i of order) {
    const last = ends.length - 1;
    if (last >= 0 && start[i] <= ends[last]) ends[last] = Math.max(ends[last], end[i]);
    else {
      starts.push(start[i]);
      ends.push(end[i]);
    }
  }
  return { starts, ends };
}

export function length({ starts, ends }) {
  return starts.reduce((sum, start, i) => sum + ends[i] - start, 0);
}

/// The time that both cover.
export function overlap(a, b) {
  let sum = 0;
  for (let i = 0, j = 0; i < a.starts.length && j < b.starts.length;) {
    sum += Math.max(0, Math.min(a.ends[i], b.ends[j]) - Math.max(a.starts[i], b.starts[j]));
    if (a.ends[i] < b.ends[j]) ++i;
    else ++j;
  }
  return sum;
}
