// (d) The tensor graph of a plan: values in the colour of the step that computes them, and memory.
import { colourOf } from '../colour.js';
import { afterPause, button, facts, fill, h, link } from '../dom.js';
import { bytes, count, duration, plural } from '../format.js';
import { emptyGraph, GraphCanvas, graphButtons } from '../graph/canvas.js';
import { integerOf } from '../state.js';
import { operationItem } from '../timeline/detail.js';
import { choosePlan, movementsOf, planFacts, planTitle } from '../trace/plan.js';
import { SortedTable } from './table.js';

const NEUTRAL = '#c3ccd8';

class TensorGraph {
  constructor(element, context) {
    this.context = context;
    this.trace = context.trace;
    this.plan = null;
    this.step = null;
    this.node = null;
    if (this.trace.plans.length === 0)
      emptyGraph(element, 'The trace has no plan of a tensor graph.');
    else this.build(element);
  }

  build(element) {
    const { plans } = this.trace;
    this.select = h(
      'select',
      {
        'aria-label': 'Plan',
        onchange: () => this.context.go('graph', { plan: plans[this.select.selectedIndex].id }),
      },
      plans.slice(0, 1000).map((plan) => h('option', {}, planTitle(plan))),
    );
    this.search = h('input', {
      type: 'search',
      placeholder: 'Find a node: op, shape, argument (/)',
      'aria-label': 'Find a node',
      onkeydown: (event) => event.key === 'Enter' && this.find(event.shiftKey ? -1 : 1),
      oninput: afterPause(() => this.find(0), 150),
    });
    this.found = h('output', { class: 'muted', 'aria-live': 'polite' });
    this.canvas = new GraphCanvas({
      label: 'Tensor graph; arrow keys follow the edges. The chosen node is told beside it.',
      choose: (row) => this.chooseNode(row),
    });
    this.detail = h('aside', {
      class: 'detail',
      'aria-label': 'Chosen node',
      'aria-live': 'polite',
    });
    this.table = this.makeTable();
    this.moves = this.makeMoves();
    this.sharding = h('section', { 'aria-label': 'Sharding' });
    fill(
      element,
      h(
        'div',
        { class: 'tools' },
        this.select,
        this.search,
        button('Next', () => this.find(1)),
        this.found,
        h('span', { class: 'grow' }),
        graphButtons(this.canvas, button),
      ),
      h(
        'p',
        { class: 'muted' },
        'One colour is one step: what a kernel computes together. ' +
          'Grey: inputs. A frame: the value is stored in memory.',
      ),
      h('div', { class: 'columns' }, h('div', { class: 'wide' }, this.canvas.element), this.detail),
      h('h3', {}, 'Steps'),
      this.table.element,
      this.sharding,
    );
  }

  makeTable() {
    const { context } = this;
    return new SortedTable({
      label: 'Steps of the plan',
      word: 'step',
      descending: false,
      mark: (row) => row.step === this.step,
      columns: [
        {
          title: 'Step',
          value: (r) => r.step,
          cell: (r) =>
            h(
              'span',
              {},
              h('span', { class: 'dot', style: { background: colourOf(r.step) } }),
              link(`${r.step}`, context.href('graph', { plan: this.plan.id, step: r.step })),
            ),
        },
        {
          title: 'Kernel',
          text: true,
          value: (r) => r.name,
          cell: (r) =>
            r.kernel ? link(r.name, context.href('kernels', { kernel: r.kernel.id })) : r.name,
        },
        { title: 'Nodes', value: (r) => r.nodes, cell: (r) => count(r.nodes) },
        { title: 'Writes', value: (r) => r.bytes, cell: (r) => bytes(r.bytes) },
        {
          title: 'Mean time',
          value: (r) => r.time,
          cell: (r) => (r.time > 0 ? duration(r.time) : '–'),
        },
      ],
    });
  }

  makeMoves() {
    return new SortedTable({
      label: 'What moves between devices',
      word: 'movement',
      descending: false,
      columns: [
        { title: 'Value', value: (r) => r.value, cell: (r) => this.shardedText(r.value) },
        { title: 'Moves', text: true, value: (r) => `${r.kind} along ${r.along}` },
        { title: 'Bytes', value: (r) => r.bytes, cell: (r) => count(r.bytes) },
        {
          title: 'When',
          text: true,
          value: (r) => `${r.when} %${r.reader.id} ${r.reader.op} ${r.reader.spec}`,
        },
        { title: 'Mesh', text: true, value: (r) => r.mesh },
      ],
    });
  }

  /// "%12 Reduce (8, 1) [data, -]".
  shardedText(id) {
    const value = this.facts.sharded.get(id);
    return value ? `%${id} ${value.op} ${value.shape} ${value.spec}` : `%${id}`;
  }

  showSharding(plan) {
    this.moves.setRows(movementsOf(plan));
    fill(
      this.sharding,
      plan.sharded.length > 0 && [
        h('h3', {}, 'What moves between devices'),
        plan.meshes.map(({ axes, ranks, devices }) =>
          h(
            'p',
            { class: 'muted' },
            `Mesh ${axes}: `,
            ranks.map((rank, i) => `${devices[i] || '–'} of rank ${rank}`).join(', '),
          ),
        ),
        this.moves.element,
      ],
    );
  }

  showPlan(plan) {
    this.plan = plan;
    this.facts = planFacts(this.trace, plan);
    this.select.selectedIndex = this.trace.plans.indexOf(plan);
    const written = new Float64Array(plan.steps.length);
    for (const [row, index] of this.facts.bufferOfRow) {
      const step = plan.graph.step[row];
      if (step >= 0 && step < written.length) written[step] += plan.buffers[index].bytes;
    }
    this.table.setRows(
      plan.steps.map((item, step) => {
        const kernel = this.facts.kernel(step);
        return {
          step,
          name: this.facts.stepName(step),
          kernel,
          nodes: this.facts.nodesOfStep[step],
          bytes: written[step],
          time: kernel?.launches ? kernel.total / kernel.launches : 0,
        };
      }),
    );
    this.showSharding(plan);
    performance.mark('plugrad: graph asked');
    return this.canvas.setGraph(this.drawable(), this.firstOf(this.step)).then(() => {
      performance.measure('plugrad: graph placed', 'plugrad: graph asked');
    });
  }

  drawable() {
    const { graph } = this.plan,
      { text, bufferOfRow } = this.facts;
    return {
      count: graph.count,
      from: this.facts.from,
      to: this.facts.to,
      label: (row) => [text('op', row), text('arg', row)].filter(Boolean).join(' '),
      detail: (row) =>
        [text('dtype', row), text('shape', row), text('spec', row)].filter(Boolean).join(' '),
      colour: (row) => (graph.step[row] < 0 ? NEUTRAL : colourOf(graph.step[row])),
      mark: (row) =>
        this.step !== null && graph.step[row] === this.step
          ? 'accent'
          : bufferOfRow.has(row)
            ? 'ink'
            : null,
    };
  }

  firstOf(step) {
    if (step === null) return null;
    const row = this.plan.graph.step.lastIndexOf(step);
    return row < 0 ? null : row;
  }

  chooseNode(row) {
    const id = row === null ? null : this.plan.graph.ids[row];
    this.context.keep('graph', { plan: this.plan.id, step: this.step, node: id });
    this.showNode(row);
  }

  showNode(row) {
    this.node = row;
    this.canvas.select(row, true);
    fill(
      this.detail,
      row === null
        ? h('p', { class: 'muted' }, 'Choose a node: click it, or use the arrow keys in the graph.')
        : this.nodeDetail(row),
    );
  }

  nodeDetail(row) {
    const { plan, trace } = this,
      { href } = this.context,
      { text, bufferOfRow } = this.facts;
    const step = plan.graph.step[row],
      index = bufferOfRow.get(row),
      buffer = plan.buffers[index];
    const kernel = step >= 0 ? this.facts.kernel(step) : null,
      size = this.facts.bytes(row);
    const operation = trace.operations.get(plan.graph.operation[row]),
      partOf = plan.graph.partOf[row];
    return [
      h('h3', { class: 'name' }, `%${plan.graph.ids[row]} ${text('op', row)}`),
      h(
        'p',
        { class: 'links' },
        kernel && link('Kernel', href('kernels', { kernel: kernel.id })),
        kernel?.launches > 0 &&
          link('Timeline', href('timeline', { launch: this.firstLaunch(kernel) })),
        kernel?.stagesRecorded && link('Rewrites', href('rewrites', { kernel: kernel.id })),
        buffer && link('Memory plan', href('memory', { plan: plan.id, buffer: index })),
      ),
      facts([
        ['shape', text('shape', row)],
        ['dtype', text('dtype', row)],
        ['argument', text('arg', row)],
        ['part of', partOf >= 0 ? this.shardedText(partOf) : ''],
        ['spec', partOf >= 0 ? `${text('spec', row)}, position ${plan.graph.position[row]}` : ''],
        [
          'computed by',
          step < 0 ? 'nothing: it is an input' : `step ${step}, ${this.facts.stepName(step)}`,
        ],
        ['fused with', step >= 0 ? plural(this.facts.nodesOfStep[step] - 1, 'other node') : ''],
        [
          'memory',
          buffer
            ? `${bytes(buffer.bytes)}, ${buffer.kind}`
            : `${size === null ? '' : `${bytes(size)}, `}not stored: it lives within its kernel`,
        ],
      ]),
      operation && [
        h('h4', {}, 'Operation'),
        h('ul', { class: 'operations' }, operationItem(operation)),
      ],
    ];
  }

  firstLaunch(kernel) {
    const row = this.trace.kernelRows.get(kernel.id),
      { begin, list } = this.trace.launchesOf;
    return list[begin[row]];
  }

  find(direction) {
    const wanted = this.search.value.trim().toLowerCase();
    this.found.textContent = '';
    if (!wanted || !this.plan) return;
    const { text } = this.facts,
      rows = [];
    for (let row = 0; row < this.plan.graph.count; ++row) {
      const own = ['op', 'arg', 'shape', 'spec'].map((column) => text(column, row)).join(' ');
      const all = `%${this.plan.graph.ids[row]} ${own}`;
      if (all.toLowerCase().includes(wanted)) rows.push(row);
    }
    this.found.textContent = `${count(rows.length)} found`;
    if (rows.length === 0 || direction === 0) return;
    const at = rows.indexOf(this.node);
    this.chooseNode(rows[(at + direction + rows.length) % rows.length]);
    this.canvas.lookAt(this.node);
  }

  async show(parameters) {
    if (this.trace.plans.length === 0) return;
    const plan = choosePlan(
      this.trace,
      integerOf(parameters, 'plan'),
      integerOf(parameters, 'kernel'),
    );
    const step = integerOf(parameters, 'step'),
      id = integerOf(parameters, 'node');
    const stepChanged = step !== this.step;
    this.step = step;
    if (plan !== this.plan) await this.showPlan(plan);
    else if (stepChanged) {
      this.table.draw();
      this.canvas.lookAt(this.firstOf(step));
    }
    const row = id === null ? this.firstOf(step) : (this.facts.rows.get(id) ?? null);
    this.showNode(row);
  }

  redraw() {
    this.table?.draw();
    this.canvas?.draw();
  }

  onKey({ key }) {
    if (key !== '/' || !this.search) return false;
    this.search.focus();
    return true;
  }
}

export const graphView = {
  id: 'graph',
  title: 'Tensor graph',
  mount: (element, context) => new TensorGraph(element, context),
};
