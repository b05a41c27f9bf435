// (c) The rewriting: each stage of both pipelines as a graph, step by step, with the rule that
// fired.
import { colourOf } from '../colour.js';
import { button, code, facts, fill, h, link } from '../dom.js';
import { count, place, plural } from '../format.js';
import { emptyGraph, GraphCanvas, graphButtons } from '../graph/canvas.js';
import { integerOf } from '../state.js';
import { around, difference, joinEnds, Rewriting } from '../trace/rewriting.js';
import { SortedTable } from './table.js';

const WHOLE = 300,
  AROUND = 120; // nodes: shown whole at first; shown around a change

class Rewrites {
  constructor(element, context) {
    this.context = context;
    this.trace = context.trace;
    this.stage = null;
    this.opened = new WeakMap();
    if (this.trace.stages.length === 0) {
      emptyGraph(
        element,
        'The trace has no rewrites. PLUGRAD_TRACE_RULES=1 beside PLUGRAD_TRACE=file records them.',
      );
    } else this.build(element);
  }

  build(element) {
    this.runs = this.listRuns();
    this.runSelect = h(
      'select',
      { 'aria-label': 'Compilation', onchange: () => this.openRun(this.runSelect.selectedIndex) },
      this.runs.slice(0, 2000).map((run) => h('option', {}, run.title)),
    );
    this.stageList = h('ol', { class: 'stages' });
    this.slider = h('input', {
      type: 'range',
      min: 0,
      max: 0,
      value: 0,
      step: 1,
      'aria-label': 'Rewrites done',
      oninput: () => this.go(Number(this.slider.value)),
    });
    this.position = h('output', { class: 'muted' });
    this.rebuilt = h('input', { type: 'checkbox', onchange: () => this.changeSteps() });
    this.extent = h(
      'select',
      { 'aria-label': 'Extent', onchange: () => this.drawGraph() },
      ['Around the change', 'Whole graph'].map((text) => h('option', {}, text)),
    );
    this.canvas = new GraphCanvas({
      label: 'Graph of the stage; the left and right arrow keys go through the rewrites.',
      choose: (node) => this.chooseNode(node),
    });
    this.canvas.onArrow = (key) => key === 'ArrowLeft' || key === 'ArrowRight';
    this.detail = h('aside', {
      class: 'detail',
      'aria-label': 'The rewrite',
      'aria-live': 'polite',
    });
    this.nodeText = h('div', { class: 'node-text' });
    this.rules = this.makeTable();
    fill(
      element,
      h(
        'div',
        { class: 'tools' },
        this.runSelect,
        h('span', { class: 'grow' }),
        this.extent,
        graphButtons(this.canvas, button),
      ),
      this.stageList,
      h(
        'div',
        { class: 'tools' },
        button('Start', () => this.go(0)),
        button('Back', () => this.go(this.at - 1)),
        button('Forward', () => this.go(this.at + 1)),
        this.slider,
        this.position,
        h('label', {}, this.rebuilt, ' also rebuilt nodes'),
      ),
      h(
        'div',
        { class: 'columns' },
        h('div', { class: 'wide' }, this.canvas.element, this.nodeText),
        this.detail,
      ),
      h('h3', {}, 'Rules of this stage'),
      this.rules.element,
    );
  }

  listRuns() {
    const runs = new Map(),
      names = new Map();
    for (const plan of this.trace.plans) names.set(plan.run, `plan ${plan.id}`);
    for (const kernel of this.trace.kernels) names.set(kernel.run, kernel.name);
    const nameOf = (run) => (run !== 0 && names.get(run)) || `run ${run}`;
    for (const stage of this.trace.stages) {
      if (!runs.has(stage.run)) runs.set(stage.run, []);
      runs.get(stage.run).push(stage);
    }
    return [...runs.values()].map((stages) => ({
      stages,
      title:
        `${stages[0].pipeline}: ${nameOf(stages[0].run)}, ` +
        plural(
          stages.reduce((sum, stage) => sum + stage.uses, 0),
          'rewrite',
        ),
    }));
  }

  makeTable() {
    return new SortedTable({
      label: 'Rules of this stage',
      word: 'rule',
      sort: 1,
      columns: [
        {
          title: 'Rule',
          text: true,
          value: (r) => r.name,
          cell: (r) =>
            button(r.name, () => this.nextOf(r.id), { 'aria-label': `Next use of ${r.name}` }),
        },
        { title: 'Uses', value: (r) => r.uses, cell: (r) => count(r.uses) },
        { title: 'File', text: true, value: (r) => r.place },
        { title: 'Before', text: true, value: (r) => r.before },
        { title: 'After', text: true, value: (r) => r.after },
      ],
    });
  }

  openRun(index) {
    const { stages } = this.runs[index];
    const first = stages.find((stage) => stage.uses > 0) ?? stages[0];
    this.context.go('rewrites', { stage: first.id });
  }

  openStage(stage) {
    this.stage = stage;
    if (!this.opened.has(stage)) this.opened.set(stage, new Rewriting(stage));
    this.rewriting = this.opened.get(stage);
    this.run = this.runs.findIndex((run) => run.stages.includes(stage));
    this.runSelect.selectedIndex = this.run;
    fill(
      this.stageList,
      this.runs[this.run].stages.map((item) =>
        h(
          'li',
          {},
          link(
            `${item.name} (${count(item.uses)})`,
            this.context.href('rewrites', { stage: item.id }),
            { 'aria-current': item === stage ? 'true' : null, title: item.meaning },
          ),
        ),
      ),
    );
    const uses = new Map();
    for (const index of this.rewriting.fired) {
      const { rule } = this.rewriting.rewrite(index);
      uses.set(rule, (uses.get(rule) ?? 0) + 1);
    }
    this.rules.setRows(
      [...uses].map(([id, number]) => {
        const rule = this.ruleOf(id);
        return {
          id,
          uses: number,
          name: rule.name,
          place: place(rule.file, rule.line),
          before: rule.before,
          after: rule.after,
        };
      }),
    );
    this.extent.selectedIndex = stage.graph.count <= WHOLE ? 1 : 0;
    this.changeSteps();
  }

  ruleOf(id) {
    if (id === 0)
      return {
        name: 'rebuilt with new sources',
        file: '',
        line: 0,
        before: '',
        after: '',
        condition: '',
      };
    return (
      this.trace.rules.get(id) ?? {
        name: `rule ${id}`,
        file: '',
        line: 0,
        before: '',
        after: '',
        condition: '',
      }
    );
  }

  /// The positions to step through: after each rule, or after each rewrite.
  changeSteps() {
    const { rewriting } = this;
    this.steps = this.rebuilt.checked
      ? Array.from({ length: rewriting.count }, (_, i) => i)
      : rewriting.fired;
    /// One position more where the stage did what no rule says.
    this.last = this.steps.length + (rewriting.isComplete() ? 0 : 1);
    this.slider.max = this.last;
    this.at = -1;
    this.go(0);
  }

  go(at) {
    const next = Math.min(Math.max(at, 0), this.last);
    if (next === this.at) return;
    this.at = next;
    this.slider.value = next;
    this.position.textContent = `${count(next)} of ${count(this.last)}`;
    this.context.keep('rewrites', { stage: this.stage.id, step: next || null });
    this.showRewrite();
    this.drawGraph();
  }

  /// The next use of a rule behind this position, or from the start.
  nextOf(rule) {
    const is = (index) => this.rewriting.rewrite(index).rule === rule;
    let found = this.steps.findIndex((index, i) => i >= this.at && is(index));
    if (found < 0) found = this.steps.findIndex(is);
    if (found >= 0) this.go(found + 1);
  }

  nodeName(id, depth = 0) {
    const { graph } = this.stage,
      row = this.rewriting.rows.get(id),
      text = (column) => this.trace.strings[graph[column][row]];
    if (row === undefined) return `%${id}`;
    const own = [text('op'), text('dtype') && `.${text('dtype')}`].filter(Boolean).join('');
    const parts = text('arg') ? [text('arg')] : [];
    const begin = graph.sourceStart[row],
      end = graph.sourceStart[row + 1];
    for (let e = begin; e < Math.min(end, begin + 6); ++e) {
      parts.push(depth > 0 ? this.nodeName(graph.sources[e], depth - 1) : `%${graph.sources[e]}`);
    }
    if (end - begin > 6) parts.push('…');
    return parts.length ? `${own}(${parts.join(', ')})` : own;
  }

  showRewrite() {
    const { stage } = this;
    const links = h('p', { class: 'links' }, this.kernelLinks());
    if (this.at === 0) {
      fill(
        this.detail,
        h('h3', {}, stage.name),
        h('p', {}, stage.meaning),
        links,
        h(
          'p',
          { class: 'muted' },
          this.steps.length > 0
            ? 'Before the first rewrite. → goes forward.'
            : 'This stage rewrote nothing.',
        ),
      );
      return;
    }
    if (this.at > this.steps.length) {
      fill(
        this.detail,
        h('h3', {}, `After ${stage.name}`),
        h('p', {}, stage.meaning),
        h('p', { class: 'muted' }, 'This part of the stage is no rewrite rule.'),
        links,
        stage.text && [h('h4', {}, 'IR after the stage'), code(stage.text, 'IR after the stage')],
      );
      return;
    }
    const { rule, from, to } = this.rewriting.rewrite(this.steps[this.at - 1]),
      known = this.ruleOf(rule);
    fill(
      this.detail,
      h('h3', { class: 'name' }, known.name),
      facts([
        ['file', place(known.file, known.line)],
        ['if', known.condition],
        ['stage', stage.name],
      ]),
      (known.before || known.after) && [
        h('h4', {}, 'Pattern'),
        code(
          `${known.before}\n→ ${known.after || 'a function gives the result'}`,
          'Pattern of the rule',
        ),
      ],
      h('h4', {}, h('span', { class: 'slower' }, 'Before'), ` %${from}`),
      code(this.nodeName(from, 2), 'Before'),
      h('h4', {}, h('span', { class: 'faster' }, 'After'), ` %${to}`),
      code(this.nodeName(to, 2), 'After'),
      links,
    );
  }

  kernelLinks() {
    const { href } = this.context,
      { run } = this.stage;
    const kernel = run !== 0 && this.trace.kernels.find((item) => item.run === run);
    const plan = run !== 0 && this.trace.plans.find((item) => item.run === run);
    return [
      kernel && link(`Kernel ${kernel.name}`, href('kernels', { kernel: kernel.id })),
      plan && link('Tensor graph', href('graph', { plan: plan.id })),
    ];
  }

  /// The graph at this position; what the last rewrite removed and added is marked.
  drawGraph() {
    const { shown, ends, now } = this.graphHere();
    const index = (id) => shown.index.get(this.rewriting.rows.get(id));
    const near = ends
      ? [index(ends.to), index(ends.from)].filter((i) => i !== undefined)
      : now.roots.map((row) => shown.index.get(row));
    const row = (id) => this.rewriting.rows.get(id);
    let part = this.extent.selectedIndex === 0 ? around(shown, near, AROUND) : shown;
    if (ends && part.rows.length < 2000) part = joinEnds(part, row(ends.from), row(ends.to));
    part.ends = ends && { from: row(ends.from), to: row(ends.to) };
    this.shown = part;
    this.total = now.sources.size;
    this.chooseNode(null);
    return this.canvas.setGraph(
      this.drawable(part),
      part.ends ? (part.index.get(part.ends.to) ?? null) : null,
    );
  }

  /// The graph at this position with what the last rewrite removed; its ends; the graph alone.
  graphHere() {
    const { rewriting, at, steps } = this;
    if (at === 0 || at > steps.length) {
      const before = rewriting.after(at === 0 ? 0 : rewriting.count);
      const now = at === 0 ? before : rewriting.result();
      return { shown: difference(before, now), ends: null, now };
    }
    const done = steps[at - 1] + 1,
      ends = rewriting.rewrite(done - 1);
    const before = rewriting.after(done - 1, done - 1),
      now = rewriting.after(done);
    rewriting.add(before, ends.from);
    rewriting.add(now, ends.to);
    return { shown: difference(before, now), ends, now };
  }

  drawable({ rows, from, to, change, ends, joined }) {
    const { graph } = this.stage,
      text = (column, i) => this.trace.strings[graph[column][rows[i]]];
    return {
      count: rows.length,
      from,
      to,
      joined,
      label: (i) => [text('op', i), text('arg', i)].filter(Boolean).join(' '),
      detail: (i) => (text('dtype', i) ? `${text('dtype', i)} %${graph.ids[rows[i]]}` : ''),
      colour: (i) => colourOf(graph.op[rows[i]]),
      mark: (i) =>
        ends && rows[i] === ends.to ? 'good' : ends && rows[i] === ends.from ? 'bad' : change[i],
    };
  }

  chooseNode(node) {
    const id = this.stage.graph.ids[this.shown.rows[node]];
    this.canvas.select(node);
    fill(
      this.nodeText,
      h(
        'p',
        { class: 'muted' },
        node === null
          ? `${plural(this.total, 'node')} in the graph now, ` +
              `${count(this.shown.rows.length)} shown with what was removed.`
          : `%${id} ${this.nodeName(id, 1)}`,
      ),
    );
  }

  show(parameters) {
    if (this.trace.stages.length === 0) return;
    const id = integerOf(parameters, 'stage'),
      kernel = integerOf(parameters, 'kernel');
    const run = this.trace.kernels.find((item) => item.id === kernel)?.run ?? 0;
    const ofKernel = run === 0 ? [] : this.trace.stages.filter((stage) => stage.run === run);
    const stage =
      this.trace.stages.find((item) => item.id === id) ??
      ofKernel.find((item) => item.uses > 0) ??
      ofKernel[0] ??
      this.stage ??
      this.trace.stages.find((item) => item.uses > 0) ??
      this.trace.stages[0];
    if (stage !== this.stage) this.openStage(stage);
    const step = integerOf(parameters, 'step');
    if (step !== null) this.go(step);
  }

  otherStage(direction) {
    const { stages } = this.runs[this.run],
      next = stages[stages.indexOf(this.stage) + direction];
    if (next) this.context.go('rewrites', { stage: next.id });
  }

  redraw() {
    this.canvas?.draw();
  }

  onKey({ key }) {
    if (!this.stage) return false;
    const actions = {
      ArrowRight: () => this.go(this.at + 1),
      ArrowLeft: () => this.go(this.at - 1),
      PageDown: () => this.go(this.at + 100),
      PageUp: () => this.go(this.at - 100),
      Home: () => this.go(0),
      End: () => this.go(this.last),
      '[': () => this.otherStage(-1),
      ']': () => this.otherStage(1),
    };
    if (!Object.hasOwn(actions, key)) return false;
    actions[key]();
    return true;
  }
}

export const rewritesView = {
  id: 'rewrites',
  title: 'Rewrites',
  mount: (element, context) => new Rewrites(element, context),
};
