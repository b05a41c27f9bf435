// Places a large graph in layers, in time that grows with nodes and edges: longest paths give the
// layers, barycentres the order within a layer, and then each node moves towards its neighbours.

/// Neighbours in rows: those of node i are list[start[i]] to list[start[i + 1] - 1].
export function neighbours(count, ends, others) {
  const start = new Int32Array(count + 1),
    list = new Int32Array(ends.length);
  for (const end of ends) ++start[end + 1];
  for (let i = 0; i < count; ++i) start[i + 1] += start[i];
  const next = start.slice();
  for (let e = 0; e < ends.length; ++e) list[next[ends[e]]++] = others[e];
  return { start, list };
}

/// The layer of each node: behind all its sources; a node without sources is next to its first
/// user. Nodes on a cycle stay in the layer that they reached.
function layersOf(count, sources, users) {
  const layer = new Int32Array(count),
    open = new Int32Array(count),
    queue = [];
  for (let i = 0; i < count; ++i) {
    open[i] = sources.start[i + 1] - sources.start[i];
    if (open[i] === 0) queue.push(i);
  }
  for (let at = 0; at < queue.length; ++at) {
    const node = queue[at];
    for (let e = users.start[node]; e < users.start[node + 1]; ++e) {
      const user = users.list[e];
      layer[user] = Math.max(layer[user], layer[node] + 1);
      if (--open[user] === 0) queue.push(user);
    }
  }
  for (let i = 0; i < count; ++i) {
    if (sources.start[i + 1] > sources.start[i] || users.start[i + 1] === users.start[i]) continue;
    let first = Infinity;
    for (let e = users.start[i]; e < users.start[i + 1]; ++e)
      first = Math.min(first, layer[users.list[e]]);
    layer[i] = Math.max(0, first - 1);
  }
  return layer;
}

function rowsOf(layer) {
  const rows = [];
  for (let i = 0; i < layer.length; ++i) (rows[layer[i]] ??= []).push(i);
  return rows.filter(Boolean);
}

function meanOf(node, links, values) {
  let sum = 0;
  for (let e = links.start[node]; e < links.start[node + 1]; ++e) sum += values[links.list[e]];
  return sum / (links.start[node + 1] - links.start[node]);
}

function has(node, links) {
  return links.start[node + 1] > links.start[node];
}

/// Sorts each row by the mean place of its neighbours, downwards and upwards in turns.
function orderRows(rows, sources, users, place) {
  rows.forEach((row) =>
    row.forEach((node, i) => {
      place[node] = i / row.length;
    }),
  );
  const key = new Float64Array(place.length);
  for (let turn = 0; turn < 6; ++turn) {
    const links = turn % 2 === 0 ? sources : users;
    const inOrder = turn % 2 === 0 ? rows : rows.slice().reverse();
    for (const row of inOrder) {
      for (const node of row)
        key[node] = has(node, links) ? meanOf(node, links, place) : place[node];
      row.sort((a, b) => key[a] - key[b] || a - b);
      row.forEach((node, i) => {
        place[node] = (i + 0.5) / row.length;
      });
    }
  }
}

/// Breaks rows that are much wider than the graph is tall.
function foldRows(rows, count) {
  const most = Math.max(60, Math.ceil(2 * Math.sqrt(count)));
  return rows.flatMap((row) => {
    const parts = [];
    for (let at = 0; at < row.length; at += most) parts.push(row.slice(at, at + most));
    return parts;
  });
}

/// Moves the nodes of a row as near as possible to where they want to be, in order and without
/// overlap: blocks of touching nodes move to the mean of their wishes.
function settle(row, wish, width, gap, x) {
  const blocks = [];
  let offset = 0;
  for (const node of row) {
    const half = width[node] / 2;
    const block = { first: blocks.length, sum: wish[node] - offset - half, count: 1 };
    offset += width[node] + gap;
    block.at = block.sum;
    while (blocks.length && blocks.at(-1).at > block.at) {
      const before = blocks.pop();
      block.sum += before.sum;
      block.count += before.count;
      block.at = block.sum / block.count;
    }
    blocks.push(block);
  }
  offset = 0;
  let block = 0,
    inBlock = 0;
  for (const node of row) {
    if (inBlock === blocks[block].count) {
      ++block;
      inBlock = 0;
    }
    x[node] = blocks[block].at + offset + width[node] / 2;
    offset += width[node] + gap;
    ++inBlock;
  }
}

function placeRows(rows, sources, users, width, gap, x) {
  for (const row of rows) {
    let right = 0;
    for (const node of row) {
      x[node] = right + width[node] / 2;
      right += width[node] + gap;
    }
    for (const node of row) x[node] -= right / 2;
  }
  const wish = new Float64Array(x.length);
  for (let turn = 0; turn < 4; ++turn) {
    const links = turn % 2 === 0 ? sources : users;
    for (const row of turn % 2 === 0 ? rows : rows.slice().reverse()) {
      for (const node of row) wish[node] = has(node, links) ? meanOf(node, links, x) : x[node];
      settle(row, wish, width, gap, x);
    }
  }
}

/// x and y of the centres of all nodes.
export function layOutLayers({ count, from, to, width, height }, gap) {
  const sources = neighbours(count, to, from),
    users = neighbours(count, from, to);
  const layer = layersOf(count, sources, users);
  const place = new Float64Array(count),
    x = new Float64Array(count),
    y = new Float32Array(count);
  const ordered = rowsOf(layer);
  orderRows(ordered, sources, users, place);
  const rows = foldRows(ordered, count);
  placeRows(rows, sources, users, width, gap.across, x);
  let top = 0;
  for (const row of rows) {
    const tall = row.reduce((most, node) => Math.max(most, height[node]), 0);
    for (const node of row) y[node] = top + tall / 2;
    top += tall + gap.between;
  }
  return { x: Float32Array.from(x), y, bendStart: null, bends: null };
}
