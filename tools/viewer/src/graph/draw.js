// Draws a graph. Nodes that are smaller than letters become coloured squares, at most one a pixel;
// of many visible edges an even part is drawn.
import { theme } from '../colour.js';
import { shorten } from '../format.js';

const MOST_EDGES = 6000,
  TEXT_SCALE = 0.42;

function visibleBox(view, size) {
  const halfWidth = size.width / 2 / view.scale,
    halfHeight = size.height / 2 / view.scale;
  return {
    left: view.x - halfWidth,
    right: view.x + halfWidth,
    top: view.y - halfHeight,
    bottom: view.y + halfHeight,
  };
}

/// Edges whose box touches the visible one.
function visibleEdges({ from, to, x, y }, box) {
  const found = [];
  for (let e = 0; e < from.length; ++e) {
    const a = from[e],
      b = to[e];
    if (Math.max(y[a], y[b]) < box.top || Math.min(y[a], y[b]) > box.bottom) continue;
    if (Math.max(x[a], x[b]) < box.left || Math.min(x[a], x[b]) > box.right) continue;
    found.push(e);
  }
  return found;
}

function traceEdge(context, graph, e) {
  const { from, to, x, y, height, bendStart, bends } = graph;
  if (bendStart) {
    context.moveTo(bends[bendStart[e]], bends[bendStart[e] + 1]);
    for (let i = bendStart[e] + 2; i < bendStart[e + 1]; i += 2)
      context.lineTo(bends[i], bends[i + 1]);
    return;
  }
  context.moveTo(x[from[e]], y[from[e]] + height[from[e]] / 2);
  context.lineTo(x[to[e]], y[to[e]] - height[to[e]] / 2);
}

function drawEdges(context, graph, view, box, selected) {
  const edges = visibleEdges(graph, box),
    step = Math.max(1, Math.ceil(edges.length / MOST_EDGES));
  const colours = theme();
  context.beginPath();
  for (let i = 0; i < edges.length; i += step) {
    if (edges[i] !== graph.joined) traceEdge(context, graph, edges[i]);
  }
  context.lineWidth = Math.max(0.6, Math.min(1.2, view.scale)) / view.scale;
  context.strokeStyle = colours.muted;
  context.globalAlpha = view.scale < 0.2 ? 0.25 : 0.6;
  context.stroke();
  context.globalAlpha = 1;
  if (graph.joined !== undefined) {
    context.beginPath();
    traceEdge(context, { ...graph, bendStart: null }, graph.joined);
    context.lineWidth = 2 / view.scale;
    context.strokeStyle = colours.good;
    context.setLineDash([7, 5]);
    context.stroke();
    context.setLineDash([]);
  }
  if (selected === null) return;
  context.beginPath();
  for (const e of edges) {
    if (graph.from[e] === selected || graph.to[e] === selected) traceEdge(context, graph, e);
  }
  context.lineWidth = 2 / view.scale;
  context.strokeStyle = colours.accent;
  context.stroke();
}

function drawBox(context, graph, i, colours) {
  const { x, y, width, height } = graph,
    left = x[i] - width[i] / 2,
    top = y[i] - height[i] / 2;
  const mark = graph.mark(i);
  context.fillStyle = graph.colour(i);
  context.fillRect(left, top, width[i], height[i]);
  if (mark) {
    context.strokeStyle = colours[mark] ?? colours.ink;
    context.lineWidth = mark === 'ink' ? 1.5 : 4;
    context.setLineDash(mark === 'bad' ? [6, 4] : []);
    context.strokeRect(left, top, width[i], height[i]);
    context.setLineDash([]);
  }
  context.fillStyle = '#101418';
  const detail = graph.detail(i),
    letters = Math.floor((width[i] - 8) / 6.1);
  context.fillText(shorten(graph.label(i), letters), x[i], detail ? y[i] - 8 : y[i] + 1);
  if (detail) {
    context.globalAlpha = 0.8;
    context.fillText(shorten(detail, letters), x[i], y[i] + 9);
    context.globalAlpha = 1;
  }
}

/// Squares for nodes, in screen pixels; no two on one pixel.
function drawSquares(context, graph, view, size, box) {
  const { count, x, y, width, height } = graph,
    taken = new Uint8Array(((size.width + 1) * (size.height + 1)) | 0);
  const colours = theme();
  let last = '';
  for (let i = 0; i < count; ++i) {
    if (y[i] < box.top || y[i] > box.bottom || x[i] < box.left || x[i] > box.right) continue;
    const px = ((x[i] - box.left) * view.scale) | 0,
      py = ((y[i] - box.top) * view.scale) | 0;
    const mark = graph.mark(i),
      strong = mark && mark !== 'ink';
    const pixel = py * (size.width | 0) + px;
    if (taken[pixel] && !strong) continue;
    taken[pixel] = 1;
    const colour = strong ? colours[mark] : graph.colour(i);
    if (colour !== last) context.fillStyle = last = colour;
    const wide = Math.max(strong ? 5 : 1.5, width[i] * view.scale),
      tall = Math.max(strong ? 5 : 1.5, height[i] * view.scale);
    context.fillRect(px - wide / 2, py - tall / 2, wide, tall);
  }
}

/// Draws what is visible of the graph; `selected` is a node or null.
export function drawGraph(context, graph, view, size, selected) {
  const colours = theme(),
    box = visibleBox(view, size);
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, size.width, size.height);
  context.save();
  context.translate(size.width / 2 - view.x * view.scale, size.height / 2 - view.y * view.scale);
  context.scale(view.scale, view.scale);
  drawEdges(context, graph, view, box, selected);
  if (view.scale >= TEXT_SCALE) {
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const { x, y, width, height } = graph;
    for (let i = 0; i < graph.count; ++i) {
      if (y[i] + height[i] < box.top || y[i] - height[i] > box.bottom) continue;
      if (x[i] + width[i] < box.left || x[i] - width[i] > box.right) continue;
      drawBox(context, graph, i, colours);
    }
  }
  context.restore();
  if (view.scale < TEXT_SCALE) drawSquares(context, graph, view, size, box);
  if (selected === null) return;
  const left = (graph.x[selected] - graph.width[selected] / 2 - box.left) * view.scale;
  const top = (graph.y[selected] - graph.height[selected] / 2 - box.top) * view.scale;
  context.strokeStyle = colours.accent;
  context.lineWidth = 3;
  context.strokeRect(
    left - 2,
    top - 2,
    graph.width[selected] * view.scale + 4,
    graph.height[selected] * view.scale + 4,
  );
  context.lineWidth = 1;
}
