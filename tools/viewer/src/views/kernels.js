// (b) The kernels: a table, the roofline, and what is known of one kernel.
import { colourOf, theme } from '../colour.js';
import { afterPause, fill, h } from '../dom.js';
import { count, duration, percent, plural, rate } from '../format.js';
import { Scatter } from '../plot/scatter.js';
import { integerOf } from '../state.js';
import { cacheText } from '../trace/compare.js';
import { findingsOf } from '../trace/findings.js';
import { rates, roofLine } from '../trace/roofline.js';
import { kernelDetail } from './kernel_detail.js';
import { SortedTable } from './table.js';

/// A word for what layers reported of a kernel; empty: nothing.
function reportOf(findings) {
  if (findings.length === 0) return '';
  return findings.some(({ difference }) => difference) ? 'differs' : 'reported';
}

function rateText(value) {
  return value > 0 ? value.toFixed(1) : '–';
}

class Kernels {
  constructor(element, context) {
    this.context = context;
    this.trace = context.trace;
    this.chosen = null;
    this.total = this.trace.kernels.reduce((sum, kernel) => sum + kernel.total, 0);
    this.rows = this.trace.kernels.map((kernel, row) => ({
      kernel,
      row,
      report: reportOf(findingsOf(this.trace, row)),
      ...rates(kernel, this.trace.devices.get(kernel.device)),
      files: kernel.operations
        .map((id) => this.trace.operations.get(id))
        .filter(Boolean)
        .map((operation) => `${operation.name} ${operation.file}`)
        .join(' '),
    }));
    this.build(element);
  }

  build(element) {
    this.filter = h('input', {
      type: 'search',
      placeholder: 'Filter by kernel, operation or file (/)',
      'aria-label': 'Filter the kernels',
      oninput: afterPause(() => this.table.setFilter(this.filter.value), 100),
    });
    this.table = this.makeTable();
    this.plotBox = h('div', { class: 'plot', role: 'img', 'aria-label': this.plotLabel() });
    this.detail = h('div', { class: 'kernel-detail' });
    fill(
      element,
      h(
        'div',
        { class: 'tools' },
        this.filter,
        h(
          'span',
          { class: 'muted' },
          `${plural(this.rows.length, 'kernel')}, ${duration(this.total)} in launches; ` +
            cacheText(this.trace),
        ),
      ),
      h(
        'div',
        { class: 'columns table-and-plot' },
        this.table.element,
        h('figure', {}, this.plotBox, h('figcaption', { class: 'muted' }, this.plotLabel())),
      ),
      this.detail,
    );
    this.scatter = new Scatter(this.plotBox, {
      x: 'FLOP / byte',
      y: 'GFLOP/s',
      choose: (id) => this.context.go('kernels', { kernel: id }),
    });
    this.table.setRows(this.rows);
    this.drawPlot();
  }

  plotLabel() {
    const known = [...this.trace.devices.values()].filter(
      (d) => d.peakGflops > 0 && d.peakGbps > 0,
    );
    if (known.length === 0)
      return 'Roofline: kernels by intensity and rate; the peaks of the device are not known.';
    return (
      `Roofline: ${known
        .map((d) => `${d.name} ${rate(d.peakGflops, 'GFLOP/s')}, ${rate(d.peakGbps, 'GB/s')}`)
        .join('; ')}. ` + 'Larger points took more than a tenth of the time.'
    );
  }

  makeTable() {
    const { trace, context } = this;
    return new SortedTable({
      label: 'Kernels',
      word: 'kernel',
      sort: 2,
      mark: (row) => row.kernel.id === this.chosen,
      columns: [
        {
          title: 'Kernel',
          text: true,
          value: (r) => r.kernel.name,
          search: (r) => `${r.kernel.name} ${r.files} ${r.report}`,
          cell: (r) =>
            h(
              'a',
              { href: context.href('kernels', { kernel: r.kernel.id }) },
              h('span', { class: 'dot', style: { background: colourOf(r.row) } }),
              r.kernel.name,
              r.report && h('span', { class: 'wrong' }, r.report),
            ),
        },
        {
          title: 'Launches',
          value: (r) => r.kernel.launches,
          cell: (r) => count(r.kernel.launches),
        },
        { title: 'Time', value: (r) => r.kernel.total, cell: (r) => duration(r.kernel.total) },
        {
          title: 'Share',
          value: (r) => r.kernel.total / this.total,
          cell: (r) => percent(r.kernel.total / this.total),
        },
        { title: 'Mean', value: (r) => r.time, cell: (r) => duration(r.time) },
        {
          title: 'Work',
          value: (r) => r.kernel.work,
          cell: (r) => (r.kernel.work > 0 ? count(r.kernel.work) : '–'),
          hint: 'Operations that a launch executes; a plan shows their share of the graph’s',
        },
        { title: 'GFLOP/s', value: (r) => r.gflops, cell: (r) => rateText(r.gflops) },
        { title: 'GB/s', value: (r) => r.gbps, cell: (r) => rateText(r.gbps) },
        {
          title: 'Of peak',
          value: (r) => r.share,
          cell: (r) => (r.share > 0 ? percent(r.share) : '–'),
          hint: 'The larger of the shares of the peak arithmetic and the peak memory rate',
        },
        {
          title: 'Bound by',
          text: true,
          value: (r) => r.bound,
          cell: (r) => r.bound || '–',
          hint: 'launch: more than half of the time is the launch itself',
        },
        {
          title: 'Device',
          text: true,
          value: (r) => trace.devices.get(r.kernel.device)?.name ?? '',
        },
      ],
    });
  }

  drawPlot() {
    const points = this.rows
      .filter((row) => row.gflops > 0 && row.intensity > 0)
      .map((row) => ({
        x: row.intensity,
        y: row.gflops,
        colour: colourOf(row.row),
        value: row.kernel.id,
        strong: row.kernel.id === this.chosen || row.kernel.total > this.total / 10,
        label: `${row.kernel.name}: ${rate(row.gflops, 'GFLOP/s')}`,
      }));
    const low = Math.min(0.01, ...points.map((p) => p.x / 2)),
      high = Math.max(100, ...points.map((p) => p.x * 2));
    const lines = [...this.trace.devices.values()]
      .map((device) => roofLine(device, low, high))
      .filter((line) => line.length > 1)
      .map((line) => ({ points: line, colour: theme().warn }));
    this.scatter.set(points, lines);
  }

  show(parameters) {
    const id = integerOf(parameters, 'kernel');
    const row = this.rows.find((item) => item.kernel.id === id) ?? null;
    const changed = this.chosen !== (row ? id : null);
    this.chosen = row ? id : null;
    if (!changed && this.detail.firstChild) return;
    this.table.draw();
    this.drawPlot();
    fill(
      this.detail,
      row
        ? kernelDetail(this.context, row)
        : h('p', { class: 'muted' }, 'Choose a kernel in the table or the plot.'),
    );
    if (row) this.detail.scrollIntoView?.({ block: 'nearest' });
  }

  redraw() {
    this.table.draw();
    this.drawPlot();
  }

  onKey({ key }) {
    if (key !== '/') return false;
    this.filter.focus();
    return true;
  }
}

export const kernelsView = {
  id: 'kernels',
  title: 'Kernels',
  mount: (element, context) => new Kernels(element, context),
};
