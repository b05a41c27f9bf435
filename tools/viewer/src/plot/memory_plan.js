// Draws a memory plan: steps to the right, addresses downwards, a box for the life of each buffer.
import { colourOf, theme } from '../colour.js';
import { eachFrame, h } from '../dom.js';
import { bytes, shorten } from '../format.js';
import { prepareCanvas, watchPointers } from '../timeline/input.js';
import { livesOf, placeBuffers } from '../trace/memory.js';

const EDGE = { left: 8, right: 8, top: 20, bottom: 6 };
export const KINDS = ['input', 'output', 'temporary', 'constant'];

export class MemoryPlan {
  /// choose({ buffer, step }) is called with what was clicked.
  constructor({ choose, name }) {
    this.choose = choose;
    this.name = name;
    this.plan = null;
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.element = h(
      'div',
      {
        class: 'canvas plan-canvas',
        tabindex: 0,
        role: 'application',
        'aria-label':
          'Memory plan; the arrow keys go through the steps. The table below has its buffers.',
        onkeydown: (event) => this.onKey(event),
      },
      this.canvas,
    );
    this.draw = eachFrame(() => this.drawNow());
    new ResizeObserver(() => this.draw()).observe(this.element);
    watchPointers(this.element, {
      pan: (dx) => this.pan(dx),
      zoom: (factor, x) => this.zoom(factor, x),
      tap: (x, y) => this.choose(this.hit(x, y)),
      hover: (x, y) => this.hover(x, y),
    });
  }

  setPlan(plan) {
    this.plan = plan;
    this.steps = Math.max(1, plan.steps.length);
    this.places = placeBuffers(plan.buffers);
    this.lives = plan.buffers.map((buffer) => livesOf(buffer, this.steps));
    this.begin = 0;
    this.end = this.steps;
    this.draw();
  }

  mark(buffer, step) {
    this.buffer = buffer;
    this.step = step;
    if (step !== null && (step < this.begin || step >= this.end)) {
      const span = this.end - this.begin;
      this.setRange(step - span / 2, step + span / 2);
    }
    this.draw();
  }

  setRange(begin, end) {
    const span = Math.min(this.steps, Math.max(4, end - begin));
    this.begin = Math.min(Math.max(0, (begin + end - span) / 2), this.steps - span);
    this.end = this.begin + span;
    this.draw();
  }

  pan(dx) {
    if (this.plan) this.setRange(this.begin - dx / this.across(), this.end - dx / this.across());
  }

  zoom(factor, x) {
    if (!this.plan) return;
    const at = this.begin + (x - EDGE.left) / this.across();
    this.setRange(at - (at - this.begin) / factor, at + (this.end - at) / factor);
  }

  across() {
    return Math.max(1, this.element.clientWidth - EDGE.left - EDGE.right) / (this.end - this.begin);
  }

  down() {
    return Math.max(1, this.element.clientHeight - EDGE.top - EDGE.bottom) / this.places.size;
  }

  boxOf(index) {
    const { first, last } = this.lives[index],
      across = this.across(),
      down = this.down();
    return {
      x: EDGE.left + (first - this.begin) * across,
      width: Math.max(1, (last + 1 - first) * across - 1),
      y: EDGE.top + this.places.tops[index] * down,
      height: Math.max(
        1,
        this.plan.buffers[index].bytes * down - (this.plan.buffers[index].bytes * down > 4 ? 1 : 0),
      ),
    };
  }

  hit(x, y) {
    if (!this.plan) return { buffer: null, step: null };
    const step = Math.floor(this.begin + (x - EDGE.left) / this.across());
    let buffer = null,
      least = 4;
    for (let i = 0; i < this.lives.length; ++i) {
      const box = this.boxOf(i);
      if (x < box.x - 1 || x > box.x + box.width + 1) continue;
      const away = Math.max(box.y - y, y - box.y - box.height, 0);
      if (away < least) [buffer, least] = [i, away];
    }
    return { buffer, step: step >= 0 && step < this.steps ? step : null };
  }

  hover(x, y) {
    const { buffer } = this.hit(x, y);
    this.element.style.cursor = buffer === null ? 'default' : 'pointer';
    this.element.title =
      buffer === null ? '' : `${this.name(buffer)}, ${bytes(this.plan.buffers[buffer].bytes)}`;
  }

  onKey(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (move)
      this.choose({
        buffer: null,
        step: Math.min(this.steps - 1, Math.max(0, (this.step ?? -1) + move)),
      });
    else if (event.key === '+' || event.key === '=') this.zoom(1.5, this.element.clientWidth / 2);
    else if (event.key === '-') this.zoom(1 / 1.5, this.element.clientWidth / 2);
    else if (event.key === '0') this.setRange(0, this.steps);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  drawNow() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!this.plan || width === 0) return;
    const context = prepareCanvas(this.canvas, width, height),
      colours = theme();
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.drawAxis(context, width, height, colours);
    for (let i = 0; i < this.lives.length; ++i) {
      const { x, y, width: wide, height: tall } = this.boxOf(i);
      if (x + wide < 0 || x > width) continue;
      context.fillStyle = colourOf(Math.max(0, KINDS.indexOf(this.plan.buffers[i].kind)));
      context.fillRect(x, y, wide, tall);
      if (tall >= 13 && wide >= 50) {
        context.fillStyle = '#101418';
        const text = `${this.name(i)} ${bytes(this.plan.buffers[i].bytes)}`;
        context.fillText(
          shorten(text, Math.floor((wide - 8) / 6.8)),
          Math.max(x, 0) + 4,
          y + tall / 2,
        );
      }
    }
    if (this.buffer === null || this.buffer === undefined || !this.lives[this.buffer]) return;
    const box = this.boxOf(this.buffer);
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
  }

  drawAxis(context, width, height, colours) {
    const across = this.across(),
      every = Math.max(1, 10 ** Math.ceil(Math.log10(40 / across)));
    if (this.step !== null && this.step !== undefined) {
      context.fillStyle = colours.line;
      context.fillRect(
        EDGE.left + (this.step - this.begin) * across,
        0,
        Math.max(1, across),
        height,
      );
    }
    context.fillStyle = colours.muted;
    for (let step = Math.ceil(this.begin / every) * every; step < this.end; step += every) {
      context.fillText(`${step}`, EDGE.left + (step - this.begin) * across + 2, 10);
    }
  }
}
