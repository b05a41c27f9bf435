// (e) The memory plan over the steps, and measured memory over time: who holds what.
import { colourOf } from '../colour.js';
import { facts, fill, h, link } from '../dom.js';
import { bytes, count, duration, plural } from '../format.js';
import { MemoryPlot } from '../plot/curve.js';
import { KINDS, MemoryPlan } from '../plot/memory_plan.js';
import { integerOf } from '../state.js';
import { MemoryCurve } from '../timeline/memory_curve.js';
import { heldAt, liveBytes, livesOf } from '../trace/memory.js';
import { choosePlan, planFacts, planTitle } from '../trace/plan.js';
import { SortedTable } from './table.js';

const SHOWN = 50;

class Memory {
  constructor(element, context) {
    this.context = context;
    this.trace = context.trace;
    this.plan = null;
    this.buffer = this.step = null;
    this.plots = [];
    this.build(element);
  }

  build(element) {
    const { trace } = this;
    fill(
      element,
      trace.plans.length > 0
        ? this.buildPlan()
        : h('p', { class: 'muted' }, 'The trace has no memory plan.'),
      h('h2', {}, 'Measured over time'),
      trace.memory.length > 0
        ? trace.memory.map((memory) => this.buildMeasured(memory))
        : h('p', { class: 'muted' }, 'The trace has no memory events.'),
    );
  }

  buildPlan() {
    const { plans } = this.trace;
    this.select = h(
      'select',
      {
        'aria-label': 'Plan',
        onchange: () => this.context.go('memory', { plan: plans[this.select.selectedIndex].id }),
      },
      plans.slice(0, 1000).map((plan) => h('option', {}, planTitle(plan))),
    );
    this.summary = h('p', { class: 'plan-summary' });
    this.chart = new MemoryPlan({
      name: (index) => this.nameOf(index),
      choose: ({ buffer, step }) => this.context.go('memory', { plan: this.plan.id, buffer, step }),
    });
    this.detail = h('aside', {
      class: 'detail',
      'aria-label': 'Chosen buffer and step',
      'aria-live': 'polite',
    });
    this.table = this.makeTable();
    return [
      h(
        'div',
        { class: 'tools' },
        this.select,
        h(
          'span',
          { class: 'legend' },
          KINDS.map((kind, i) => [
            h('span', { class: 'dot', style: { background: colourOf(i) } }),
            `${kind} `,
          ]),
        ),
      ),
      this.summary,
      h(
        'p',
        { class: 'muted' },
        'Steps to the right, addresses downwards: boxes at one height share memory.',
      ),
      h('div', { class: 'columns' }, h('div', { class: 'wide' }, this.chart.element), this.detail),
      h('h3', {}, 'Buffers'),
      this.table.element,
    ];
  }

  makeTable() {
    const { context, trace } = this;
    return new SortedTable({
      label: 'Buffers of the plan',
      word: 'buffer',
      sort: 2,
      mark: (row) => row.index === this.buffer,
      columns: [
        {
          title: 'Buffer',
          text: true,
          value: (r) => this.nameOf(r.index),
          cell: (r) =>
            link(
              this.nameOf(r.index),
              context.href('memory', { plan: this.plan.id, buffer: r.index }),
            ),
        },
        { title: 'Kind', text: true, value: (r) => r.buffer.kind },
        { title: 'Bytes', value: (r) => r.buffer.bytes, cell: (r) => bytes(r.buffer.bytes) },
        {
          title: 'Steps',
          value: (r) => r.life.first,
          cell: (r) => `${r.life.first} – ${r.life.last}`,
        },
        { title: 'Storage', value: (r) => r.buffer.storage },
        { title: 'Offset', value: (r) => r.buffer.offset, cell: (r) => bytes(r.buffer.offset) },
        {
          title: 'Device',
          text: true,
          value: (r) => trace.devices.get(r.buffer.device)?.name ?? '',
        },
      ],
    });
  }

  nameOf(index) {
    const buffer = this.plan.buffers[index],
      row = this.facts.rows.get(buffer.node);
    if (row === undefined) return `buffer ${index}`;
    const words = [this.facts.text('op', row), this.facts.text('arg', row)].filter(Boolean);
    return `%${buffer.node} ${words.join(' ')}`;
  }

  showPlan(plan) {
    this.plan = plan;
    this.facts = planFacts(this.trace, plan);
    this.select.selectedIndex = this.trace.plans.indexOf(plan);
    this.chart.setPlan(plan);
    const live = liveBytes(plan.buffers, plan.steps.length),
      { size } = this.chart.places;
    const most = live.reduce((best, value, step) => (value > live[best] ? step : best), 0);
    const sum = plan.buffers.reduce((all, buffer) => all + buffer.bytes, 0);
    this.summary.textContent =
      `${plural(plan.buffers.length, 'buffer')} of ${bytes(sum)} together need ${bytes(size)}; ` +
      (live.length
        ? `most are alive in step ${most} (${this.facts.stepName(most)}): ${bytes(live[most])}.`
        : 'the plan has no step.');
    this.table.setRows(
      plan.buffers.map((buffer, index) => ({
        buffer,
        index,
        life: livesOf(buffer, plan.steps.length),
      })),
    );
  }

  showChosen() {
    const { buffer, step } = this;
    this.chart.mark(buffer, step);
    this.table.draw();
    fill(
      this.detail,
      buffer === null &&
        step === null &&
        h('p', { class: 'muted' }, 'Choose a buffer or a step: click the plan.'),
      buffer !== null && this.bufferDetail(buffer),
      step !== null && this.stepDetail(step),
    );
  }

  bufferDetail(index) {
    const { href } = this.context,
      buffer = this.plan.buffers[index],
      life = livesOf(buffer, this.plan.steps.length);
    const users = this.plan.steps.flatMap((item, step) =>
      item.buffers.includes(index) ? [step] : [],
    );
    return [
      h('h3', { class: 'name' }, this.nameOf(index)),
      h(
        'p',
        { class: 'links' },
        this.facts.rows.has(buffer.node) &&
          link('Tensor graph', href('graph', { plan: this.plan.id, node: buffer.node })),
      ),
      facts([
        ['kind', buffer.kind],
        ['size', bytes(buffer.bytes)],
        ['dtype', buffer.dtype],
        ['alive', `steps ${life.first} to ${life.last}`],
        ['memory', `storage ${buffer.storage} from ${bytes(buffer.offset)}`],
      ]),
      users.length > 0 && [
        h('h4', {}, 'Used by'),
        h(
          'ul',
          {},
          users
            .slice(0, SHOWN)
            .map((step) =>
              h(
                'li',
                {},
                link(
                  `step ${step}, ${this.facts.stepName(step)}`,
                  href('memory', { plan: this.plan.id, step }),
                ),
              ),
            ),
        ),
      ],
    ];
  }

  stepDetail(step) {
    const { href } = this.context,
      { buffers, steps } = this.plan,
      kernel = this.facts.kernel(step);
    const alive = buffers
      .map((buffer, index) => ({ buffer, index, ...livesOf(buffer, steps.length) }))
      .filter(({ first, last }) => first <= step && last >= step)
      .sort((a, b) => b.buffer.bytes - a.buffer.bytes);
    const sum = alive.reduce((all, { buffer }) => all + buffer.bytes, 0);
    return [
      h('h3', { class: 'name' }, `Step ${step}: ${this.facts.stepName(step)}`),
      h(
        'p',
        { class: 'links' },
        kernel && link('Kernel', href('kernels', { kernel: kernel.id })),
        link('Tensor graph', href('graph', { plan: this.plan.id, step })),
      ),
      h('h4', {}, `${plural(alive.length, 'buffer')} alive, ${bytes(sum)}`),
      h(
        'ul',
        {},
        alive
          .slice(0, SHOWN)
          .map(({ buffer, index }) =>
            h(
              'li',
              {},
              link(this.nameOf(index), href('memory', { plan: this.plan.id, buffer: index, step })),
              ` ${bytes(buffer.bytes)}`,
            ),
          ),
      ),
    ];
  }

  buildMeasured(memory) {
    const { trace } = this,
      device = trace.devices.get(memory.device);
    const name = device?.name ?? `device ${memory.device}`;
    const whole = device?.memory > 0 ? ` of ${bytes(device.memory)}` : '';
    const text =
      `${name}: at most ${bytes(memory.peak)} in use${whole}, ` +
      `${count(memory.start.length)} changes. Filled: in use; line: with what is kept for reuse.`;
    const box = h('div', { class: 'plot small', role: 'img', 'aria-label': text });
    const held = h(
      'div',
      { class: 'held', 'aria-live': 'polite' },
      h(
        'p',
        { class: 'muted' },
        'Click a time to see who holds memory; drag to zoom, double click for all.',
      ),
    );
    this.plots.push(
      new MemoryPlot(box, {
        memory,
        curve: new MemoryCurve(memory),
        first: trace.first,
        begin: trace.first,
        end: trace.last,
        choose: (time) => fill(held, this.heldList(memory, time)),
      }),
    );
    return h('figure', {}, h('figcaption', {}, text), box, held);
  }

  heldList(memory, time) {
    const held = heldAt(memory, time),
      sum = held.reduce((all, item) => all + item.bytes, 0);
    return [
      h(
        'h4',
        {},
        `At ${duration(time - this.trace.first)}: ${plural(held.length, 'buffer')}, ${bytes(sum)}`,
      ),
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['Buffer', 'Bytes', 'Taken at'].map((title) => h('th', { scope: 'col' }, title)),
          ),
        ),
        h(
          'tbody',
          {},
          held
            .slice(0, SHOWN)
            .map((item) =>
              h(
                'tr',
                {},
                h('th', { scope: 'row' }, `buffer ${item.buffer}`),
                h('td', {}, bytes(item.bytes)),
                h('td', {}, duration(item.start - this.trace.first)),
              ),
            ),
        ),
      ),
    ];
  }

  show(parameters) {
    if (this.trace.plans.length === 0) return;
    const plan = choosePlan(
      this.trace,
      integerOf(parameters, 'plan'),
      integerOf(parameters, 'kernel'),
    );
    if (plan !== this.plan) this.showPlan(plan);
    const within = (value, size) => (value !== null && value >= 0 && value < size ? value : null);
    this.buffer = within(integerOf(parameters, 'buffer'), plan.buffers.length);
    this.step = within(integerOf(parameters, 'step'), plan.steps.length);
    this.showChosen();
  }

  redraw() {
    this.chart?.draw();
    this.table?.draw();
    for (const plot of this.plots) plot.draw();
  }
}

export const memoryView = {
  id: 'memory',
  title: 'Memory',
  mount: (element, context) => new Memory(element, context),
};
