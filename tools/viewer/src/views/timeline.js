// (a) The timeline of queues, memory and threads.
import { afterPause, button, eachFrame, fill, h, link } from '../dom.js';
import { bytes, count, duration, percent } from '../format.js';
import { integerOf } from '../state.js';
import { eventDetail } from '../timeline/detail.js';
import { AXIS, drawTimeline } from '../timeline/draw.js';
import { prepareCanvas, watchPointers } from '../timeline/input.js';
import { countMatches, EventNames, findMatch, makeRows } from '../timeline/rows.js';
import { kindOf, rowOf, upperBound } from '../trace/lanes.js';

const LEFT = 8,
  SHORTEST = 20; // pixels; the shortest visible stretch in ns

class Timeline {
  constructor(element, context) {
    this.context = context;
    this.trace = context.trace;
    this.names = new EventNames(this.trace);
    Object.assign(this, makeRows(this.trace));
    this.marks = this.trace.findings
      .filter(({ launch }) => launch >= 0)
      .map(({ launch }) => this.trace.events.launch.start[launch]);
    const margin = (this.trace.last - this.trace.first) * 0.01;
    this.limits = { begin: this.trace.first - margin, end: this.trace.last + margin };
    this.begin = this.limits.begin;
    this.end = this.limits.end;
    this.selected = null;
    this.draw = eachFrame(() => this.drawNow());
    this.sumWindow = afterPause(() => this.showWindow(), 150);
    this.build(element);
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  build(element) {
    this.search = h('input', {
      type: 'search',
      placeholder: 'Search kernels, operations, files, spans (/)',
      'aria-label': 'Search the timeline',
      oninput: afterPause(() => this.find(), 120),
      onkeydown: (event) => event.key === 'Enter' && this.step(event.shiftKey ? -1 : 1),
    });
    this.found = h('output', { class: 'muted', 'aria-live': 'polite' });
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.space = h(
      'div',
      { class: 'space', style: { height: `${this.height + AXIS}px` } },
      this.canvas,
    );
    this.scroller = h(
      'div',
      {
        class: 'canvas timeline-canvas',
        tabindex: 0,
        role: 'application',
        'aria-label': 'Timeline; keys are in the help. What is selected is told beside it.',
        onscroll: () => this.draw(),
      },
      this.space,
    );
    this.detail = h(
      'aside',
      { class: 'detail', 'aria-label': 'Selected event', 'aria-live': 'polite' },
      h('p', { class: 'muted' }, 'Choose an event: click it, or press n.'),
    );
    this.window = h('section', { class: 'window', 'aria-label': 'Kernels in the visible time' });
    fill(
      element,
      h(
        'div',
        { class: 'tools' },
        this.search,
        button('Previous', () => this.step(-1)),
        button('Next', () => this.step(1)),
        this.found,
        h('span', { class: 'grow' }),
        button('−', () => this.zoom(1 / 1.6), { 'aria-label': 'Zoom out' }),
        button('+', () => this.zoom(1.6), { 'aria-label': 'Zoom in' }),
        button('All', () => this.fit(), { 'aria-label': 'Show all of the trace' }),
      ),
      h('p', { class: 'use' }, this.useText()),
      h(
        'div',
        { class: 'columns' },
        h('div', { class: 'wide' }, this.scroller, this.window),
        this.detail,
      ),
    );
    watchPointers(this.scroller, {
      pan: (dx, dy) => {
        this.move(-dx / this.scale());
        this.scroller.scrollTop -= dy;
      },
      zoom: (factor, x) => this.zoom(factor, x),
      tap: (x, y) => this.select(this.hit(x, y)),
      hover: (x, y) => this.hover(x, y),
    });
  }

  useText() {
    return [...this.deviceTexts(), this.exchangeText()];
  }

  exchangeText() {
    const { exchange, recorded } = this.trace;
    if (exchange.count === 0) return null;
    return h(
      'span',
      {},
      `Collectives: ${bytes(exchange.bytes)} in ${duration(exchange.time)}; the program waited ` +
        `${duration(exchange.waitTime)} for them (${percent(exchange.waitTime / recorded)}). `,
    );
  }

  deviceTexts() {
    const { trace } = this;
    return trace.use
      .filter((use) => use.kernelTime > 0 || use.copyTime > 0)
      .map((use) => {
        const name = trace.devices.get(use.device)?.name ?? `device ${use.device}`;
        const clock = trace.devices.get(use.device)?.clock === 'host' ? ', times of the host' : '';
        return h(
          'span',
          {},
          `${name}: busy ${percent(use.busyTime / trace.recorded)} ` +
            `(kernels ${duration(use.kernelTime)}); ` +
            `copies ${bytes(use.copyBytes)} in ${duration(use.copyTime)}, ` +
            `of which ${duration(use.bothTime)} beside kernels${clock}. `,
        );
      });
  }

  width() {
    return Math.max(50, this.scroller.clientWidth - LEFT * 2);
  }

  scale() {
    return this.width() / (this.end - this.begin);
  }

  drawNow() {
    if (this.scroller.clientWidth === 0) return;
    const height = this.scroller.clientHeight,
      width = this.scroller.clientWidth;
    const context = prepareCanvas(this.canvas, width, height);
    drawTimeline(
      context,
      this.rows,
      {
        begin: this.begin,
        scale: this.scale(),
        left: LEFT,
        width: this.width(),
        height,
        first: this.trace.first,
        scroll: this.scroller.scrollTop,
        marks: this.marks,
      },
      this.names,
      this.selected,
    );
    this.sumWindow();
  }

  setRange(begin, end) {
    const span = Math.min(Math.max(end - begin, SHORTEST), this.limits.end - this.limits.begin);
    const middle = (begin + end) / 2;
    this.begin = Math.min(Math.max(middle - span / 2, this.limits.begin), this.limits.end - span);
    this.end = this.begin + span;
    this.draw();
  }

  move(time) {
    this.setRange(this.begin + time, this.end + time);
  }

  zoom(factor, x = LEFT + this.width() / 2) {
    const time = this.begin + (x - LEFT) / this.scale();
    this.setRange(time - (time - this.begin) / factor, time + (this.end - time) / factor);
  }

  fit() {
    this.setRange(this.limits.begin, this.limits.end);
  }

  hit(x, y) {
    const at = y - AXIS + this.scroller.scrollTop;
    const row = this.rows.find((item) => at >= item.top && at < item.top + item.height);
    if (!row || row.type !== 'lane' || y < AXIS) return null;
    const time = this.begin + (x - LEFT) / this.scale(),
      slack = 3 / this.scale();
    const { lane } = row,
      next = upperBound(lane.start, time);
    let best = null;
    for (let i = Math.max(0, next - 1); i <= Math.min(next, lane.count - 1); ++i) {
      const away = Math.max(lane.start[i] - time, time - lane.end[i], 0);
      if (away <= slack && (best === null || away < best.away)) best = { away, at: i };
    }
    return best && { row, lane, at: best.at };
  }

  hover(x, y) {
    const hit = this.hit(x, y);
    this.scroller.style.cursor = hit ? 'pointer' : 'grab';
    this.scroller.title = hit
      ? `${this.names.name(hit.lane.reference[hit.at])}, ` +
        duration(hit.lane.end[hit.at] - hit.lane.start[hit.at])
      : '';
  }

  select(hit, keepRange = true) {
    this.selected = hit && this.completed(hit);
    fill(
      this.detail,
      hit
        ? eventDetail(this.context, this.names, this.selected)
        : h('p', { class: 'muted' }, 'Nothing is selected.'),
    );
    if (hit) {
      if (!keepRange) this.bringIntoView();
      const reference = hit.lane.reference[hit.at];
      if (kindOf(reference) === 0) this.context.keep('timeline', { launch: rowOf(reference) });
    }
    this.draw();
  }

  completed(hit) {
    const start = hit.lane.start[hit.at],
      reference = hit.lane.reference[hit.at];
    const submit = kindOf(reference) === 0 ? this.trace.events.launch.submit[rowOf(reference)] : 0;
    return { ...hit, start, end: hit.lane.end[hit.at], submitted: start - submit };
  }

  bringIntoView() {
    const { start, end, row } = this.selected,
      span = this.end - this.begin;
    if (start < this.begin || end > this.end || (end - start) * this.scale() < 3) {
      const wanted = Math.min(span, Math.max((end - start) * 20, SHORTEST));
      this.setRange((start + end) / 2 - wanted / 2, (start + end) / 2 + wanted / 2);
    }
    const visible = this.scroller.clientHeight - AXIS;
    if (
      row.top < this.scroller.scrollTop ||
      row.top + row.height > this.scroller.scrollTop + visible
    ) {
      this.scroller.scrollTop = row.top - visible / 2;
    }
  }

  find() {
    const text = this.search.value.trim();
    const matches = text ? this.names.matcher(text) : null;
    let sum = 0;
    for (const { lane } of this.rows) {
      if (!lane) continue;
      lane.matches = matches ? countMatches(lane, matches) : null;
      if (matches) sum += lane.matches[lane.count];
    }
    this.found.textContent = matches ? `${count(sum)} found` : '';
    this.draw();
  }

  /// The next or previous match; without a search the next event of the same name, or of any.
  step(direction) {
    const name = this.selected && this.names.name(this.selected.lane.reference[this.selected.at]);
    const searching = this.search.value.trim() !== '';
    if (!searching) {
      const matches = (reference) => name === null || this.names.name(reference) === name;
      for (const { lane } of this.rows) if (lane) lane.matches = countMatches(lane, matches);
    }
    const from = this.selected ? this.selected.start : this.begin - 1;
    const hit = findMatch(this.rows, from, direction);
    if (!searching) for (const { lane } of this.rows) if (lane) lane.matches = null;
    if (hit) this.select(hit, false);
    else this.context.announce('There is no further event.');
  }

  neighbour(direction) {
    if (!this.selected) {
      this.step(direction);
      return;
    }
    const at = this.selected.at + direction;
    if (at >= 0 && at < this.selected.lane.count) this.select({ ...this.selected, at }, false);
  }

  /// Sums of the kernels in the visible stretch, as a table.
  showWindow() {
    const sums = new Map();
    for (const { type, lane, track } of this.rows) {
      if (type !== 'lane' || track.kind === 'thread') continue;
      const to = upperBound(lane.start, this.end);
      for (let i = upperBound(lane.end, this.begin); i < to; ++i) {
        if (kindOf(lane.reference[i]) !== 0) continue;
        const kernel = this.trace.rowOfLaunch[rowOf(lane.reference[i])];
        const sum = sums.get(kernel) ?? { time: 0, launches: 0 };
        sum.time += lane.end[i] - lane.start[i];
        ++sum.launches;
        sums.set(kernel, sum);
      }
    }
    const rows = [...sums].sort((a, b) => b[1].time - a[1].time).slice(0, 8);
    fill(
      this.window,
      h(
        'h3',
        {},
        `Visible: ${duration(this.end - this.begin)} from ` +
          duration(this.begin - this.trace.first),
      ),
      rows.length > 0 &&
        h(
          'table',
          {},
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              ['Kernel', 'Launches', 'Time'].map((text) => h('th', { scope: 'col' }, text)),
            ),
          ),
          h(
            'tbody',
            {},
            rows.map(([row, sum]) =>
              h(
                'tr',
                {},
                h(
                  'th',
                  { scope: 'row' },
                  link(
                    this.trace.kernels[row].name,
                    this.context.href('kernels', { kernel: this.trace.kernels[row].id }),
                  ),
                ),
                h('td', {}, count(sum.launches)),
                h('td', {}, duration(sum.time)),
              ),
            ),
          ),
        ),
    );
  }

  show(parameters) {
    const launch = integerOf(parameters, 'launch');
    if (launch !== null) this.selectLaunch(launch);
    if (parameters.search && parameters.search !== this.search.value) {
      this.search.value = parameters.search;
      this.find();
    }
    this.draw();
  }

  selectLaunch(launch) {
    const { selected } = this;
    if (selected && selected.lane.reference[selected.at] === launch) return;
    for (const row of this.rows) {
      const at =
        row.track?.kind === 'thread' || !row.lane ? -1 : row.lane.reference.indexOf(launch);
      if (at >= 0) {
        requestAnimationFrame(() => this.select({ row, lane: row.lane, at }, false));
        return;
      }
    }
  }

  redraw() {
    this.names.recolour();
    this.draw();
  }

  onKey({ key }) {
    const part = (this.end - this.begin) / 6;
    const actions = {
      '+': () => this.zoom(1.6),
      '=': () => this.zoom(1.6),
      w: () => this.zoom(1.6),
      '-': () => this.zoom(1 / 1.6),
      s: () => this.zoom(1 / 1.6),
      ArrowLeft: () => this.move(-part),
      a: () => this.move(-part),
      ArrowRight: () => this.move(part),
      d: () => this.move(part),
      ArrowUp: () => {
        this.scroller.scrollTop -= 40;
      },
      ArrowDown: () => {
        this.scroller.scrollTop += 40;
      },
      0: () => this.fit(),
      n: () => this.step(1),
      p: () => this.step(-1),
      '.': () => this.neighbour(1),
      ',': () => this.neighbour(-1),
      '/': () => this.search.focus(),
      z: () => this.zoomToSelected(),
      Enter: () => this.open(),
    };
    const action = Object.hasOwn(actions, key) ? actions[key] : null;
    const focused = document.activeElement === this.scroller;
    if (!focused && ['Enter', 'ArrowUp', 'ArrowDown'].includes(key)) return false;
    action?.();
    return Boolean(action);
  }

  zoomToSelected() {
    if (!this.selected) return;
    const { start, end } = this.selected,
      span = Math.max(end - start, SHORTEST);
    this.setRange(start - span / 4, end + span / 4);
  }

  open() {
    if (!this.selected) return;
    const first = this.detail.querySelector('.links a');
    if (first) location.hash = first.getAttribute('href');
  }
}

export const timelineView = {
  id: 'timeline',
  title: 'Timeline',
  mount: (element, context) => new Timeline(element, context),
};
