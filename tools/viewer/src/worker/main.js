// Work that would stop the page: reading a trace and laying out a graph.
import { layOut } from '../graph/layout.js';
import { UnreadableTrace } from '../trace/records.js';
import { readTrace } from './read.js';

/// The buffers of all typed arrays in a value: they move to the page without a copy.
function buffersOf(value, found = new Set(), depth = 0) {
  if (ArrayBuffer.isView(value)) found.add(value.buffer);
  else if (value && typeof value === 'object' && depth < 8) {
    const items = value instanceof Map ? value.values() : Object.values(value);
    for (const item of items)
      if (item && typeof item === 'object') buffersOf(item, found, depth + 1);
  }
  return found;
}

const TASKS = {
  async read({ base64 }, tell) {
    let last = 0;
    return readTrace(base64, (characters, lines) => {
      if (performance.now() - last < 100) return;
      last = performance.now();
      tell({ characters, lines });
    });
  },
  layOut: ({ graph }) => layOut(graph),
};

self.onmessage = async ({ data }) => {
  const answer = (message, transfer = []) =>
    self.postMessage({ id: data.id, ...message }, transfer);
  try {
    const result = await TASKS[data.task](data, (progress) => answer({ progress }));
    answer({ result }, [...buffersOf(result)]);
  } catch (error) {
    const readable = error instanceof UnreadableTrace;
    answer({ error: readable ? error.message : `Reading failed: ${error.message}`, readable });
  }
};
