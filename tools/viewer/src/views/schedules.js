// (f) Why this schedule: the candidates of the search, predicted and measured.
import { colourOf, theme } from '../colour.js';
import { code, facts, fill, h, link } from '../dom.js';
import { count, duration, ratio } from '../format.js';
import { Scatter } from '../plot/scatter.js';
import { integerOf } from '../state.js';
import { SortedTable } from './table.js';

/// How a kernel's choice compares: best measured, the chosen one, and the error of the prediction.
function choiceOf(kernel) {
  const measured = kernel.candidates.filter((candidate) => candidate.measured > 0);
  const chosen = kernel.candidates.find((candidate) => candidate.chosen) ?? null;
  const best = measured.reduce(
    (least, item) => (!least || item.measured < least.measured ? item : least),
    null,
  );
  const errors = measured
    .filter((item) => item.predicted > 0)
    .map((item) => Math.abs(Math.log(item.predicted / item.measured)))
    .sort((a, b) => a - b);
  return {
    measured: measured.length,
    chosen,
    best,
    error: errors.length ? Math.exp(errors[errors.length >> 1]) : 0,
    loss: chosen?.measured > 0 && best ? chosen.measured / best.measured : 0,
  };
}

function meanOf({ kernel }) {
  return kernel.launches > 0 ? kernel.total / kernel.launches : 0;
}

function noteOf({ byLaunches }) {
  return byLaunches ? ' (chosen, measured by its launches)' : ' (chosen)';
}

class Schedules {
  constructor(element, context) {
    this.context = context;
    this.trace = context.trace;
    this.chosen = null;
    this.rows = this.trace.kernels
      .map((kernel, row) => ({ kernel, row, ...choiceOf(kernel) }))
      .filter(({ kernel }) => kernel.candidates.length > 0 || kernel.predicted > 0 || kernel.why);
    if (this.rows.length === 0) {
      fill(
        element,
        h(
          'p',
          { class: 'muted empty' },
          'The trace has no candidates of a search and no predictions.',
        ),
      );
    } else this.build(element);
  }

  build(element) {
    this.table = new SortedTable({
      label: 'Kernels and their candidates',
      word: 'kernel',
      sort: 1,
      mark: (row) => row.kernel.id === this.chosen,
      columns: [
        {
          title: 'Kernel',
          text: true,
          value: (r) => r.kernel.name,
          cell: (r) => link(r.kernel.name, this.context.href('schedules', { kernel: r.kernel.id })),
        },
        { title: 'Time', value: (r) => r.kernel.total, cell: (r) => duration(r.kernel.total) },
        {
          title: 'Predicted',
          value: (r) => r.kernel.predicted,
          cell: (r) => (r.kernel.predicted > 0 ? duration(r.kernel.predicted) : '–'),
        },
        { title: 'Mean', value: meanOf, cell: (r) => duration(meanOf(r)) },
        {
          title: 'Mean / predicted',
          value: (r) => (r.kernel.predicted > 0 ? meanOf(r) / r.kernel.predicted : 0),
          cell: (r) => ratio(r.kernel.predicted > 0 ? meanOf(r) / r.kernel.predicted : 0),
        },
        {
          title: 'Candidates',
          value: (r) => r.kernel.candidates.length,
          cell: (r) => count(r.kernel.candidates.length),
        },
        { title: 'Measured', value: (r) => r.measured, cell: (r) => count(r.measured) },
        {
          title: 'Prediction off by',
          value: (r) => r.error,
          cell: (r) => ratio(r.error),
          hint: 'The median over the measured candidates',
        },
        { title: 'Chosen / best', value: (r) => r.loss, cell: (r) => ratio(r.loss) },
      ],
    });
    this.plotBox = h('div', {
      class: 'plot',
      role: 'img',
      'aria-label': 'Candidates, predicted and measured',
    });
    this.detail = h('div', { class: 'schedule-detail' });
    fill(element, this.table.element, this.detail);
    this.scatter = new Scatter(this.plotBox, {
      x: 'predicted (µs)',
      y: 'measured (µs)',
      choose: (index) => this.showCandidate(index),
    });
    this.table.setRows(this.rows);
  }

  makeCandidates(kernel) {
    const table = new SortedTable({
      label: `Candidates of ${kernel.name}`,
      word: 'candidate',
      sort: 1,
      descending: false,
      mark: (row) => row.chosen,
      columns: [
        {
          title: 'Schedule',
          text: true,
          value: (r) => r.schedule,
          cell: (r) => `${r.schedule || 'no step'}${r.chosen ? noteOf(r) : ''}`,
        },
        {
          title: 'Predicted',
          value: (r) => r.predicted || Infinity,
          cell: (r) => (r.predicted > 0 ? duration(r.predicted) : '–'),
        },
        {
          title: 'Measured',
          value: (r) => r.measured || Infinity,
          cell: (r) => (r.measured > 0 ? duration(r.measured) : '–'),
        },
        {
          title: 'Off by',
          value: (r) => (r.measured > 0 ? r.predicted / r.measured : 0),
          cell: (r) => (r.measured > 0 ? ratio(r.predicted / r.measured) : '–'),
        },
      ],
    });
    table.setRows(kernel.candidates.slice());
    return table;
  }

  showCandidate(index) {
    const candidate = this.kernel.candidates[index];
    this.context.announce(
      `${candidate.schedule}: predicted ${duration(candidate.predicted)}, ` +
        `measured ${duration(candidate.measured)}`,
    );
    fill(this.picked, code(candidate.schedule || 'no step', 'Schedule of the candidate'));
  }

  showKernel({ kernel, chosen, best, error }) {
    this.kernel = kernel;
    this.picked = h('div', { 'aria-live': 'polite' });
    const mean = kernel.launches > 0 ? kernel.total / kernel.launches : 0;
    fill(
      this.detail,
      h('h2', { class: 'name' }, kernel.name),
      h(
        'p',
        { class: 'links' },
        link('Kernel', this.context.href('kernels', { kernel: kernel.id })),
      ),
      facts([
        ['chosen', kernel.schedule || 'no step'],
        ['predicted', kernel.predicted > 0 ? duration(kernel.predicted) : ''],
        ['mean of its launches', mean > 0 ? duration(mean) : ''],
        [
          'best measured',
          best
            ? `${duration(best.measured)}${best === chosen ? ', which is the chosen one' : ''}`
            : '',
        ],
        ['prediction off by', error > 0 ? `${ratio(error)} (median)` : ''],
      ]),
      kernel.why && [h('h3', {}, 'Why'), code(kernel.why, 'Why this schedule')],
      h(
        'div',
        { class: 'columns even' },
        h('div', {}, this.makeCandidates(kernel).element, this.picked),
        h(
          'figure',
          {},
          this.plotBox,
          h(
            'figcaption',
            { class: 'muted' },
            'On the line the prediction is right; above it the kernel is slower than predicted. ' +
              'The large point is chosen.',
          ),
        ),
      ),
    );
    this.drawPlot();
  }

  drawPlot() {
    if (!this.kernel) return;
    const points = this.kernel.candidates.map((candidate, index) => ({
      x: candidate.predicted / 1e3,
      y: candidate.measured / 1e3,
      value: index,
      strong: candidate.chosen,
      colour: colourOf(candidate.chosen ? 1 : 0),
      label: candidate.schedule || 'no step',
    }));
    const values = points.filter((p) => p.x > 0 && p.y > 0).flatMap((p) => [p.x, p.y]);
    const low = Math.min(...values, 1),
      high = Math.max(...values, 10);
    this.scatter.set(
      points,
      values.length
        ? [
            {
              points: [
                [low, low],
                [high, high],
              ],
              colour: theme().muted,
              dashed: true,
            },
          ]
        : [],
    );
  }

  show(parameters) {
    if (this.rows.length === 0) return;
    const id = integerOf(parameters, 'kernel');
    const row =
      this.rows.find((item) => item.kernel.id === id) ??
      this.rows.reduce((most, item) => (item.kernel.total > most.kernel.total ? item : most));
    if (row.kernel.id === this.chosen) return;
    this.chosen = row.kernel.id;
    this.table.draw();
    this.showKernel(row);
  }

  redraw() {
    this.table?.draw();
    if (this.scatter) this.drawPlot();
  }
}

export const schedulesView = {
  id: 'schedules',
  title: 'Schedules',
  mount: (element, context) => new Schedules(element, context),
};
