// Facts of a memory plan, and who held memory at a time.

/// Places every buffer at an address: storages one behind the other, each as large as what it
/// holds. Returns tops (address of each buffer), the size of all, and storages [{ id, top, size }].
export function placeBuffers(buffers) {
  const storages = new Map();
  buffers.forEach((buffer, index) => {
    // Constants and inputs may have no storage of their own: a negative number stands for none.
    const key = buffer.storage < 0 ? `own ${index}` : buffer.storage;
    const storage = storages.get(key) ?? { id: buffer.storage, size: 0, top: 0, buffers: [] };
    storage.size = Math.max(storage.size, buffer.offset + buffer.bytes);
    storage.buffers.push(index);
    storages.set(key, storage);
  });
  const tops = new Float64Array(buffers.length),
    list = [...storages.values()];
  list.sort((a, b) => b.size - a.size);
  let top = 0;
  for (const storage of list) {
    storage.top = top;
    for (const index of storage.buffers) tops[index] = top + buffers[index].offset;
    top += storage.size;
  }
  return { tops, size: Math.max(1, top), storages: list };
}

/// First and last step in which a buffer is alive, within the plan.
export function livesOf(buffer, steps) {
  const first = Math.max(0, buffer.first),
    last = buffer.last < 0 ? steps - 1 : Math.min(steps - 1, buffer.last);
  return { first: Math.min(first, Math.max(0, steps - 1)), last: Math.max(first, last) };
}

/// Bytes alive in each step.
export function liveBytes(buffers, steps) {
  const change = new Float64Array(steps + 1);
  for (const buffer of buffers) {
    const { first, last } = livesOf(buffer, steps);
    if (first >= steps) continue;
    change[first] += buffer.bytes;
    change[Math.min(steps, last + 1)] -= buffer.bytes;
  }
  const live = new Float64Array(steps);
  let sum = 0;
  for (let step = 0; step < steps; ++step) live[step] = sum += change[step];
  return live;
}

/// What was taken and not given back until a time: { buffer, bytes, start }, largest first.
export function heldAt(memory, time) {
  const held = new Map();
  for (let i = 0; i < memory.start.length && memory.start[i] <= time; ++i) {
    if (memory.change[i] > 0) {
      held.set(memory.buffer[i], {
        buffer: memory.buffer[i],
        bytes: memory.change[i],
        start: memory.start[i],
      });
    } else held.delete(memory.buffer[i]);
  }
  return [...held.values()].sort((a, b) => b.bytes - a.bytes);
}

/// `most` points of a curve from one time to another: the largest value of each stretch.
export function thinned(memory, curve, begin, end, most) {
  const x = [],
    used = [],
    total = [],
    step = (end - begin) / most;
  for (let i = 0; i < most; ++i) {
    const from = begin + i * step;
    x.push(from);
    used.push(curve.mostBetween('used', from, from + step));
    total.push(curve.mostBetween('total', from, from + step));
  }
  return [x, used, total];
}
