// A graph on a canvas: places from the worker, drawing, pointer and keys.
import { eachFrame, fill, h } from '../dom.js';
import { prepareCanvas, watchPointers } from '../timeline/input.js';
import { Worker } from '../worker/client.js';
import { drawGraph } from './draw.js';
import { neighbours } from './layers.js';

const LARGEST = 2.5,
  READABLE = 0.75;

let worker = null;

function layoutWorker() {
  worker ??= new Worker();
  return worker;
}

export class GraphCanvas {
  /// choose(index) is called with the node that the user chose, or with null.
  constructor({ label, choose }) {
    this.choose = choose;
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.status = h('p', { class: 'graph-status muted', role: 'status' });
    this.element = h(
      'div',
      {
        class: 'canvas graph-canvas',
        tabindex: 0,
        role: 'application',
        'aria-label': label,
        onkeydown: (event) => this.onKey(event),
      },
      this.canvas,
      this.status,
    );
    this.graph = null;
    this.selected = null;
    this.view = { x: 0, y: 0, scale: 1 };
    this.turn = 0;
    this.draw = eachFrame(() => this.drawNow());
    new ResizeObserver(() => this.resized()).observe(this.element);
    watchPointers(this.element, {
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      tap: (x, y) => this.choose(this.hit(x, y)),
      hover: (x, y) => this.hover(x, y),
    });
  }

  /// Shows a graph { count, from, to, label(i), detail(i), colour(i), mark(i) } when its places are
  /// known; `focus` is the node to look at, null for the whole graph.
  async setGraph(graph, focus = null) {
    const turn = ++this.turn,
      width = new Float32Array(graph.count),
      height = new Float32Array(graph.count);
    for (let i = 0; i < graph.count; ++i) {
      const letters = Math.max(graph.label(i).length, graph.detail(i).length);
      width[i] = Math.min(240, Math.max(34, letters * 6.4 + 14));
      height[i] = graph.detail(i) ? 36 : 22;
    }
    const { count, from, to } = graph;
    if (count > 2000) this.status.textContent = 'Placing the graph …';
    const places = await layoutWorker().run('layOut', {
      graph: { count, from, to, width, height },
    });
    if (turn !== this.turn) return;
    this.status.textContent = '';
    this.graph = { ...graph, ...places, width, height };
    this.sources = neighbours(count, to, from);
    this.users = neighbours(count, from, to);
    this.selected = null;
    this.bounds();
    this.lookAt(focus);
  }

  bounds() {
    const { count, x, y, width, height } = this.graph;
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (let i = 0; i < count; ++i) {
      box.left = Math.min(box.left, x[i] - width[i] / 2);
      box.right = Math.max(box.right, x[i] + width[i] / 2);
      box.top = Math.min(box.top, y[i] - height[i] / 2);
      box.bottom = Math.max(box.bottom, y[i] + height[i] / 2);
    }
    this.box = count ? box : { left: 0, right: 1, top: 0, bottom: 1 };
  }

  fitScale() {
    const { box } = this,
      { clientWidth, clientHeight } = this.element;
    return Math.min(
      (clientWidth - 24) / (box.right - box.left),
      (clientHeight - 24) / (box.bottom - box.top),
      1.2,
    );
  }

  /// The whole graph, or a node at a scale at which its text can be read.
  lookAt(node) {
    this.pending = node;
    if (!this.graph || this.element.clientWidth === 0) return;
    this.pending = undefined;
    const fit = Math.max(1e-4, this.fitScale());
    if (node === null || fit >= READABLE) {
      this.view = {
        x: (this.box.left + this.box.right) / 2,
        y: (this.box.top + this.box.bottom) / 2,
        scale: fit,
      };
    } else {
      const scale = Math.max(fit, READABLE, Math.min(this.view.scale, LARGEST));
      this.view = { x: this.graph.x[node], y: this.graph.y[node], scale };
    }
    this.draw();
  }

  resized() {
    if (this.pending !== undefined) this.lookAt(this.pending);
    this.draw();
  }

  select(node, follow = false) {
    this.selected = node;
    if (node !== null && follow && this.graph && !this.isVisible(node)) this.lookAt(node);
    this.draw();
  }

  isVisible(node) {
    const at = this.toScreen(this.graph.x[node], this.graph.y[node]);
    return (
      this.view.scale > 0.3 &&
      at.x > 0 &&
      at.y > 0 &&
      at.x < this.element.clientWidth &&
      at.y < this.element.clientHeight
    );
  }

  toScreen(x, y) {
    const { view, element } = this;
    return {
      x: (x - view.x) * view.scale + element.clientWidth / 2,
      y: (y - view.y) * view.scale + element.clientHeight / 2,
    };
  }

  drawNow() {
    const { clientWidth, clientHeight } = this.element;
    if (!this.graph || clientWidth === 0) return;
    const context = prepareCanvas(this.canvas, clientWidth, clientHeight);
    drawGraph(
      context,
      this.graph,
      this.view,
      { width: clientWidth, height: clientHeight },
      this.selected,
    );
  }

  pan(dx, dy) {
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.draw();
  }

  zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    if (!this.graph) return;
    const { view } = this,
      dx = x - this.element.clientWidth / 2,
      dy = y - this.element.clientHeight / 2;
    const least = Math.min(this.fitScale() / 2, 0.05);
    const scale = Math.min(LARGEST, Math.max(least, view.scale * factor));
    view.x += dx / view.scale - dx / scale;
    view.y += dy / view.scale - dy / scale;
    view.scale = scale;
    this.draw();
  }

  hit(x, y) {
    if (!this.graph) return null;
    const { view, element, graph } = this;
    const wantedX = (x - element.clientWidth / 2) / view.scale + view.x;
    const wantedY = (y - element.clientHeight / 2) / view.scale + view.y;
    const slack = 4 / view.scale;
    let best = null,
      least = slack;
    for (let i = 0; i < graph.count; ++i) {
      const away = Math.max(
        Math.abs(graph.x[i] - wantedX) - graph.width[i] / 2,
        Math.abs(graph.y[i] - wantedY) - graph.height[i] / 2,
        0,
      );
      if (away < least) [best, least] = [i, away];
    }
    return best;
  }

  hover(x, y) {
    const node = this.graph && this.graph.count < 20000 ? this.hit(x, y) : null;
    this.element.style.cursor = node === null ? 'grab' : 'pointer';
    this.element.title =
      node === null ? '' : `${this.graph.label(node)} ${this.graph.detail(node)}`;
  }

  /// The first neighbour of the selected node, or the next one beside it in its row.
  neighbour(key) {
    const { graph, selected } = this;
    if (selected === null) return graph.count ? graph.count - 1 : null;
    if (key === 'ArrowUp' || key === 'ArrowDown') {
      const links = key === 'ArrowUp' ? this.sources : this.users;
      return links.start[selected + 1] > links.start[selected]
        ? links.list[links.start[selected]]
        : null;
    }
    const sign = key === 'ArrowRight' ? 1 : -1;
    let best = null,
      least = Infinity;
    for (let i = 0; i < graph.count; ++i) {
      const away = (graph.x[i] - graph.x[selected]) * sign;
      if (away > 0 && away < least && Math.abs(graph.y[i] - graph.y[selected]) < 12)
        [best, least] = [i, away];
    }
    return best;
  }

  onKey(event) {
    if (!this.graph || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith('Arrow')) {
      if (this.onArrow?.(event.key)) return;
      const node = this.neighbour(event.key);
      if (node !== null) {
        this.choose(node);
        this.select(node, true);
      }
    } else if (event.key === '+' || event.key === '=') this.zoom(1.5);
    else if (event.key === '-') this.zoom(1 / 1.5);
    else if (event.key === '0') this.lookAt(null);
    else return;
    event.preventDefault();
  }
}

/// Buttons for what the keys + - 0 do.
export function graphButtons(canvas, button) {
  return [
    button('−', () => canvas.zoom(1 / 1.5), { 'aria-label': 'Zoom out' }),
    button('+', () => canvas.zoom(1.5), { 'aria-label': 'Zoom in' }),
    button('All', () => canvas.lookAt(null), { 'aria-label': 'Show all of the graph' }),
  ];
}

/// A graph without nodes shows a sentence.
export function emptyGraph(element, text) {
  fill(element, h('p', { class: 'muted empty' }, text));
}
