// (g) Two traces beside each other: totals, and what got slower.
import { code, fill, h, link } from '../dom.js';
import { bytes, count, duration, ratio } from '../format.js';
import { hashOf } from '../state.js';
import { matchKernels, totalsOf } from '../trace/compare.js';
import { SortedTable } from './table.js';

const FORMAT = { time: duration, bytes, count };

function signed(value, format) {
  return `${value > 0 ? '+' : value < 0 ? '−' : ''}${format(Math.abs(value))}`;
}

function changeClass(value, scale) {
  if (Math.abs(value) <= 0.01 * scale) return null;
  return value > 0 ? 'slower' : 'faster';
}

class Compare {
  constructor(element, { traces }) {
    this.traces = traces;
    if (traces.length < 2) {
      fill(
        element,
        h(
          'div',
          { class: 'empty' },
          h('p', {}, 'This page has one trace. To see what changed, make a page of two:'),
          code('plugrad view BEFORE AFTER -o page.html', 'Command'),
        ),
      );
      return;
    }
    this.rows = matchKernels(...traces);
    this.build(element);
  }

  build(element) {
    const [a, b] = this.traces;
    this.filter = h('input', {
      type: 'search',
      placeholder: 'Filter by kernel (/)',
      'aria-label': 'Filter the kernels',
      oninput: () => this.table.setFilter(this.filter.value),
    });
    this.table = this.makeTable();
    fill(
      element,
      h(
        'p',
        {},
        h('strong', {}, 'A'),
        ` ${a.title} (${a.header.cpu || 'unknown machine'}), `,
        h('strong', {}, 'B'),
        ` ${b.title} (${b.header.cpu || 'unknown machine'})`,
      ),
      h('p', { class: 'verdict' }, this.verdict()),
      h('div', { class: 'tools' }, this.filter),
      this.table.element,
      h('h3', {}, 'Totals'),
      this.totals(),
    );
    this.table.setRows(this.rows);
  }

  verdict() {
    const slower = this.rows.filter((row) => row.change > 0).sort((x, y) => y.change - x.change);
    const change = this.rows.reduce((all, row) => all + row.change, 0);
    const total = this.rows.reduce((all, row) => all + (row.a?.total ?? 0), 0);
    const how =
      Math.abs(change) <= 0.01 * total
        ? 'as long in B as in A (within 1 %)'
        : `${duration(Math.abs(change))} ${change > 0 ? 'longer' : 'shorter'} in B`;
    const most =
      slower[0]?.change > 0.01 * total
        ? ` Most of what got slower: ${slower
            .slice(0, 3)
            .map((row) => `${row.name} (${signed(row.change, duration)})`)
            .join(', ')}.`
        : '';
    return `Kernels take ${how}.${most}`;
  }

  linkTo(index, kernels, text) {
    if (kernels.length === 0) return '–';
    return link(text, hashOf('kernels', { kernel: kernels[0].id, trace: index || '' }));
  }

  makeTable() {
    const time = (sum) => (sum ? duration(sum.total) : '–');
    return new SortedTable({
      label: 'Kernels of both traces',
      word: 'kernel',
      sort: 3,
      columns: [
        {
          title: 'Kernel',
          text: true,
          value: (r) => r.name,
          search: (r) => [...r.kernelsA, ...r.kernelsB].map((kernel) => kernel.name).join(' '),
        },
        {
          title: 'A',
          value: (r) => r.a?.total ?? 0,
          cell: (r) => this.linkTo(0, r.kernelsA, time(r.a)),
        },
        {
          title: 'B',
          value: (r) => r.b?.total ?? 0,
          cell: (r) => this.linkTo(1, r.kernelsB, time(r.b)),
        },
        {
          title: 'B − A',
          value: (r) => r.change,
          cell: (r) =>
            h(
              'span',
              { class: changeClass(r.change, r.a?.total ?? 0) },
              signed(r.change, duration),
            ),
        },
        {
          title: 'A launch in B / in A',
          value: (r) => r.ratio,
          cell: (r) =>
            h('span', { class: r.ratio > 0 ? changeClass(r.ratio - 1, 1) : null }, ratio(r.ratio)),
        },
        {
          title: 'Launches A',
          value: (r) => r.a?.launches ?? 0,
          cell: (r) => count(r.a?.launches ?? 0),
        },
        {
          title: 'Launches B',
          value: (r) => r.b?.launches ?? 0,
          cell: (r) => count(r.b?.launches ?? 0),
        },
        { title: 'Matched by', text: true, value: (r) => r.how },
      ],
    });
  }

  totals() {
    const [a, b] = this.traces.map(totalsOf);
    return h(
      'div',
      { class: 'table', role: 'region', 'aria-label': 'Totals', tabindex: 0 },
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['', 'A', 'B', 'B − A'].map((title) => h('th', { scope: 'col' }, title)),
          ),
        ),
        h(
          'tbody',
          {},
          a.map(([name, unit, value], i) => {
            const other = b[i][2],
              better = name === 'copies beside kernels' ? -1 : 1;
            return h(
              'tr',
              {},
              h('th', { scope: 'row' }, name),
              h('td', {}, FORMAT[unit](value)),
              h('td', {}, FORMAT[unit](other)),
              h(
                'td',
                { class: changeClass((other - value) * better, value) },
                signed(other - value, FORMAT[unit]),
              ),
            );
          }),
        ),
      ),
    );
  }

  show() {}

  onKey({ key }) {
    if (key !== '/' || !this.filter) return false;
    this.filter.focus();
    return true;
  }
}

export const compareView = {
  id: 'compare',
  title: 'Compare',
  both: true,
  mount: (element, context) => new Compare(element, context),
};
