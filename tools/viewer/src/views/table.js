// A table whose columns sort, with a filter; long lists begin with their first rows.
import { button, fill, h } from '../dom.js';
import { plural } from '../format.js';

const FIRST_ROWS = 200;

/// Columns: { title, value(row) for sorting, cell(row) for showing, text: true for left-aligned }.
/// The first column heads its row. `mark(row)` tells the selected row.
export class SortedTable {
  constructor({ label, columns, sort = 0, descending = true, mark = () => false, word = 'row' }) {
    Object.assign(this, { label, columns, sort, descending, mark, word });
    this.rows = [];
    this.all = false;
    this.filter = '';
    this.element = h('div', { class: 'table', role: 'region', 'aria-label': label, tabindex: 0 });
  }

  setRows(rows) {
    this.rows = rows;
    this.draw();
  }

  setFilter(text) {
    this.filter = text.trim().toLowerCase();
    this.draw();
  }

  sorted() {
    const { value } = this.columns[this.sort],
      sign = this.descending ? -1 : 1;
    const kept = this.filter ? this.rows.filter((row) => this.matches(row)) : this.rows.slice();
    return kept.sort((a, b) => {
      const left = value(a),
        right = value(b);
      if (left === right) return 0;
      return typeof left === 'string' ? sign * left.localeCompare(right) : sign * (left - right);
    });
  }

  matches(row) {
    return this.columns.some(
      ({ text, value, search }) =>
        (text || search) &&
        String((search ?? value)(row))
          .toLowerCase()
          .includes(this.filter),
    );
  }

  sortBy(index) {
    this.descending = this.sort === index ? !this.descending : !this.columns[index].text;
    this.sort = index;
    this.draw();
    this.element.querySelectorAll('th button')[index]?.focus();
  }

  headCell({ title, text, hint }, index) {
    const active = index === this.sort;
    return h(
      'th',
      {
        scope: 'col',
        class: text ? 'text' : null,
        title: hint,
        'aria-sort': active ? (this.descending ? 'descending' : 'ascending') : null,
      },
      button(active ? `${title} ${this.descending ? '▾' : '▴'}` : title, () => this.sortBy(index)),
    );
  }

  bodyRow(row) {
    return h(
      'tr',
      { class: this.mark(row) ? 'marked' : null },
      this.columns.map(({ cell, value, text }, index) =>
        index === 0
          ? h('th', { scope: 'row' }, (cell ?? value)(row))
          : h('td', { class: text ? 'text' : null }, (cell ?? value)(row)),
      ),
    );
  }

  draw() {
    const rows = this.sorted(),
      shown = this.all ? rows : rows.slice(0, FIRST_ROWS);
    fill(
      this.element,
      h(
        'table',
        {},
        h('caption', { class: 'hidden-text' }, this.label),
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            this.columns.map((column, i) => this.headCell(column, i)),
          ),
        ),
        h(
          'tbody',
          {},
          shown.map((row) => this.bodyRow(row)),
        ),
      ),
      rows.length === 0 && h('p', { class: 'muted' }, `No ${this.word}.`),
      shown.length < rows.length &&
        button(`Show all ${plural(rows.length, this.word)}`, () => {
          this.all = true;
          this.draw();
        }),
    );
  }
}
