// The frame around the views: title, navigation, what is wrong with the trace, the help.
import { onThemeChange } from './colour.js';
import { button, fill, h, link } from './dom.js';
import { count, duration, plural } from './format.js';
import { helpDialog } from './help.js';
import { hashOf, parseHash } from './state.js';
import { findingsNote } from './views/findings.js';
import { VIEWS } from './views/all.js';

export class App {
  constructor(root, traces) {
    this.root = root;
    this.traces = traces;
    this.mounted = new Map();
    this.shown = null;
    this.index = 0;
  }

  start() {
    this.live = h('div', { class: 'hidden-text', role: 'status', 'aria-live': 'polite' });
    this.header = h('header');
    this.notes = h('div', { class: 'notes' });
    this.place = h('main', { id: 'view', tabindex: -1 });
    this.help = helpDialog();
    fill(
      this.root,
      link('Skip to the view', '#', {
        class: 'skip',
        onclick: (event) => {
          event.preventDefault();
          this.place.focus();
        },
      }),
      this.header,
      this.notes,
      this.place,
      this.help,
      this.live,
    );
    window.addEventListener('hashchange', () => this.route());
    window.addEventListener('keydown', (event) => this.onKey(event));
    onThemeChange(() => this.shown?.view.redraw?.());
    this.route();
  }

  /// What a view gets: its trace, and the ways to the other views.
  context(index) {
    const href = (view, parameters = {}) =>
      hashOf(view, { ...parameters, trace: index > 0 ? index : null });
    return {
      trace: this.traces[index],
      traces: this.traces,
      index,
      href,
      go: (view, parameters) => {
        location.hash = href(view, parameters);
      },
      /// Keeps parameters in the address without a new entry in the history.
      keep: (view, parameters) => history.replaceState(null, '', href(view, parameters)),
      announce: (text) => {
        this.live.textContent = text;
      },
    };
  }

  route() {
    const parameters = parseHash(location.hash);
    const chosen = VIEWS.find((view) => view.id === parameters.view) ?? VIEWS[0];
    this.index = parameters.trace === '1' && this.traces.length > 1 ? 1 : 0;
    const key = `${chosen.id} ${chosen.both ? 0 : this.index}`;
    if (!this.mounted.has(key)) {
      const element = h('div', { class: `view ${chosen.id}` });
      this.place.append(element);
      this.mounted.set(key, { element, view: chosen.mount(element, this.context(this.index)) });
    }
    const next = this.mounted.get(key);
    if (this.shown && this.shown !== next) this.shown.element.hidden = true;
    next.element.hidden = false;
    this.shown = next;
    this.drawHeader(chosen);
    this.drawNotes();
    document.title = `${chosen.title} – ${this.traces[this.index].title}`;
    next.view.show(parameters);
  }

  drawHeader(chosen) {
    const trace = this.traces[this.index],
      { header, events } = trace;
    const other = this.index > 0 ? this.index : null;
    fill(
      this.header,
      h(
        'div',
        { class: 'title' },
        h('h1', {}, trace.title),
        h(
          'p',
          { class: 'muted' },
          [
            header.ranks === 1 ? '' : `rank ${header.rank} of ${header.ranks || '?'}`,
            header.cpu,
            plural(events.launch.count, 'launch'),
            duration(trace.last - trace.first),
          ]
            .filter(Boolean)
            .join(' · '),
        ),
        this.traces.length > 1 && this.traceSwitch(chosen),
        button('Help (?)', () => this.help.showModal(), { class: 'help' }),
      ),
      h(
        'nav',
        { 'aria-label': 'Views' },
        VIEWS.map((view) =>
          link(view.title, hashOf(view.id, { trace: other }), {
            'aria-current': view.id === chosen.id ? 'page' : null,
          }),
        ),
      ),
    );
  }

  traceSwitch(chosen) {
    return h(
      'div',
      { class: 'switch', role: 'group', 'aria-label': 'Trace' },
      this.traces.map((trace, index) =>
        link(`${'AB'[index]}: ${trace.title}`, hashOf(chosen.id, { trace: index || null }), {
          'aria-current': index === this.index ? 'true' : null,
        }),
      ),
    );
  }

  drawNotes() {
    const trace = this.traces[this.index],
      notes = [];
    if (!trace.end) {
      notes.push('The trace has no last line: its program was stopped, or is still running.');
    }
    if (trace.end?.dropped > 0) {
      notes.push(
        `The ${count(trace.end.dropped)} oldest events did not fit the limit and are not here.`,
      );
    }
    fill(
      this.notes,
      findingsNote(this.context(this.index)),
      notes.map((note) => h('p', { class: 'note' }, note)),
      trace.problemCount > 0 &&
        h(
          'details',
          { class: 'note' },
          h('summary', {}, `${plural(trace.problemCount, 'part')} of the trace could not be read.`),
          h(
            'ul',
            {},
            trace.problems.map((problem) => h('li', {}, problem)),
          ),
        ),
    );
  }

  onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing =
      /^(INPUT|SELECT)$/.test(event.target.tagName ?? '') &&
      !['range', 'checkbox'].includes(event.target.type);
    if (typing) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (this.help.open) return;
    const number = '1234567'.indexOf(event.key);
    if (event.key === '?') this.help.showModal();
    else if (event.key.length === 1 && number >= 0 && VIEWS[number]) {
      location.hash = hashOf(VIEWS[number].id, { trace: this.index || null });
    } else if (!this.shown.view.onKey?.(event)) return;
    event.preventDefault();
  }
}
