// Memory over time, drawn by uPlot. The visible stretch is thinned to its largest values, so that a
// million events draw as fast as a thousand.
import UPlot from 'uplot';
import { theme } from '../colour.js';
import { fill } from '../dom.js';
import { bytes, duration } from '../format.js';
import { thinned } from '../trace/memory.js';

const POINTS = 1000;

export class MemoryPlot {
  constructor(element, { memory, curve, first, begin, end, choose }) {
    Object.assign(this, { element, memory, curve, first, choose, limits: { begin, end } });
    new ResizeObserver(() => this.resize()).observe(element);
  }

  size() {
    return {
      width: Math.max(240, this.element.clientWidth),
      height: Math.max(140, this.element.clientHeight),
    };
  }

  resize() {
    if (this.element.clientWidth === 0) return;
    if (this.plot) this.plot.setSize(this.size());
    else this.draw();
  }

  data(begin, end) {
    const data = thinned(this.memory, this.curve, begin, end, POINTS);
    data[0] = data[0].map((time) => time - this.first);
    return data;
  }

  axis(format, size, space) {
    const colours = theme();
    return {
      stroke: colours.ink,
      grid: { stroke: colours.grid, width: 1 },
      ticks: { stroke: colours.grid, width: 1 },
      values: (_, splits) => splits.map(format),
      size,
      space,
      font: '12px system-ui',
    };
  }

  draw() {
    this.plot?.destroy();
    this.plot = null;
    fill(this.element);
    if (this.element.clientWidth === 0) return;
    const colours = theme(),
      stepped = UPlot.paths.stepped({ align: 1 });
    this.plot = new UPlot(
      {
        ...this.size(),
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        scales: { x: { time: false }, y: { range: () => [0, this.curve.top * 1.05] } },
        axes: [this.axis(duration, 34, 84), this.axis(bytes, 78, 34)],
        series: [
          {},
          {
            stroke: colours.accent,
            fill: `${colours.accent}55`,
            paths: stepped,
            points: { show: false },
          },
          { stroke: colours.muted, paths: stepped, points: { show: false } },
        ],
        hooks: { setSelect: [(plot) => this.zoomTo(plot)] },
      },
      this.data(this.limits.begin, this.limits.end),
      this.element,
    );
    this.plot.over.addEventListener('click', () => {
      if (this.plot.cursor.left >= 0)
        this.choose(this.plot.posToVal(this.plot.cursor.left, 'x') + this.first);
    });
    this.plot.over.addEventListener('dblclick', () =>
      this.show(this.limits.begin, this.limits.end),
    );
  }

  zoomTo(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    this.show(plot.posToVal(left, 'x') + this.first, plot.posToVal(left + width, 'x') + this.first);
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  show(begin, end) {
    if (end - begin < 1) return;
    this.plot.setData(this.data(begin, end));
  }
}
