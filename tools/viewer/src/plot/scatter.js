// Points on two logarithmic axes, drawn by uPlot; a click or the pointer finds the nearest.
import UPlot from 'uplot';
import { theme } from '../colour.js';
import { fill } from '../dom.js';

const NEAR = 18; // pixels

function shortNumber(value) {
  if (value === null) return '';
  const exponent = Math.floor(Math.log10(value));
  if (Math.abs(value / 10 ** exponent - 1) > 1e-6) return '';
  return exponent >= -3 && exponent <= 4 ? String(Number(value.toPrecision(3))) : `1e${exponent}`;
}

function axis(label) {
  const colours = theme();
  return {
    label,
    stroke: colours.ink,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.grid, width: 1 },
    values: (_, splits) => splits.map(shortNumber),
    size: 52,
    labelSize: 18,
    font: '12px system-ui',
    labelFont: '12px system-ui',
  };
}

function range(values, lines) {
  const all = [...values, ...lines].filter((value) => value > 0 && Number.isFinite(value));
  if (all.length === 0) return [0.1, 10];
  const low = Math.min(...all),
    high = Math.max(...all);
  return [10 ** Math.floor(Math.log10(low) - 0.05), 10 ** Math.ceil(Math.log10(high) + 0.05)];
}

/// Shows points { x, y, colour, label, strong, value }; lines are lists of [x, y] with a label.
export class Scatter {
  constructor(element, { x, y, choose }) {
    Object.assign(this, { element, titles: { x, y }, choose, points: [], lines: [] });
    new ResizeObserver(() => this.resize()).observe(element);
  }

  set(points, lines = []) {
    this.points = points.filter((p) => p.x > 0 && p.y > 0).sort((a, b) => a.x - b.x);
    this.lines = lines;
    this.draw();
  }

  size() {
    return {
      width: Math.max(240, this.element.clientWidth),
      height: Math.max(180, this.element.clientHeight),
    };
  }

  resize() {
    if (this.element.clientWidth === 0) return;
    if (this.plot) this.plot.setSize(this.size());
    else this.draw();
  }

  draw() {
    this.plot?.destroy();
    this.plot = null;
    fill(this.element);
    if (this.element.clientWidth === 0) return;
    const flat = this.lines.flatMap((line) => line.points);
    const xs = range(
      this.points.map((p) => p.x),
      flat.map((p) => p[0]),
    );
    const ys = range(
      this.points.map((p) => p.y),
      flat.map((p) => p[1]),
    );
    const inside = this.points.length ? this.points : [{ x: xs[0], y: null }];
    this.plot = new UPlot(
      {
        ...this.size(),
        legend: { show: false },
        cursor: { x: false, y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: {
          x: { time: false, distr: 3, range: () => xs },
          y: { distr: 3, range: () => ys },
        },
        axes: [axis(this.titles.x), axis(this.titles.y)],
        series: [{}, { stroke: 'transparent', points: { show: false }, paths: () => null }],
        hooks: { draw: [(plot) => this.drawPoints(plot)] },
      },
      [inside.map((p) => p.x), inside.map((p) => p.y)],
      this.element,
    );
    this.plot.over.addEventListener('click', (event) => {
      const near = this.nearest(event);
      if (near) this.choose(near.value);
    });
    this.plot.over.addEventListener('pointermove', (event) => this.onMove(event));
  }

  onMove(event) {
    const near = this.nearest(event);
    this.plot.over.style.cursor = near ? 'pointer' : 'default';
    this.plot.over.title = near ? near.label : '';
  }

  nearest(event) {
    const box = this.plot.over.getBoundingClientRect();
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    let best = null;
    for (const point of this.points) {
      const away = Math.hypot(
        this.plot.valToPos(point.x, 'x') - x,
        this.plot.valToPos(point.y, 'y') - y,
      );
      if (away < NEAR && (!best || away < best.away)) best = { away, point };
    }
    return best?.point ?? null;
  }

  drawPoints(plot) {
    const { ctx: context } = plot,
      colours = theme(),
      density = window.devicePixelRatio || 1;
    const at = (x, y) => [plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true)];
    context.save();
    context.lineWidth = 1.5 * density;
    for (const line of this.lines) {
      context.strokeStyle = line.colour ?? colours.muted;
      context.setLineDash(line.dashed ? [4 * density, 4 * density] : []);
      context.beginPath();
      line.points.forEach(([x, y]) => context.lineTo(...at(x, y)));
      context.stroke();
    }
    context.setLineDash([]);
    for (const point of this.points) {
      const [x, y] = at(point.x, point.y);
      context.beginPath();
      context.arc(x, y, (point.strong ? 7 : 4.5) * density, 0, 2 * Math.PI);
      context.fillStyle = point.colour;
      context.fill();
      context.strokeStyle = point.strong ? colours.ink : colours.paper;
      context.stroke();
    }
    context.restore();
  }
}
