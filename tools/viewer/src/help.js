// The keys of the page, in a dialog.
import { button, h } from './dom.js';

const KEYS = [
  [
    'Everywhere',
    [
      ['1 … 7', 'the views from left to right'],
      ['/', 'search or filter'],
      ['?', 'this help'],
      ['Tab, Enter', 'go through links and tables'],
    ],
  ],
  [
    'Timeline',
    [
      ['+ − or W S, wheel', 'zoom'],
      ['← → or A D, drag', 'move in time'],
      ['n p', 'next and previous event of the search, or of the same kernel'],
      [', .', 'previous and next event of the lane'],
      ['z', 'zoom to the event'],
      ['0', 'all of the trace'],
      ['Enter', 'the kernel of the event'],
    ],
  ],
  [
    'Rewrites',
    [
      ['→ ←', 'one rewrite forwards, backwards'],
      ['Page Down, Page Up', '100 rewrites'],
      ['Home End', 'before the first, after the last rewrite'],
      ['[ ]', 'previous, next stage'],
    ],
  ],
  [
    'Graphs',
    [
      ['↑ ↓', 'to a user, to a source of the node'],
      ['← →', 'to the neighbour in the row (tensor graph)'],
      ['+ − 0', 'zoom, all of the graph'],
      ['drag, wheel', 'move, zoom'],
    ],
  ],
];

export function helpDialog() {
  const dialog = h(
    'dialog',
    { 'aria-labelledby': 'help-title' },
    h('h2', { id: 'help-title' }, 'Keys'),
    KEYS.map(([title, rows]) => [
      h('h3', {}, title),
      h(
        'dl',
        { class: 'facts' },
        rows.map(([keys, what]) => [h('dt', {}, h('kbd', {}, keys)), h('dd', {}, what)]),
      ),
    ]),
  );
  dialog.append(button('Close', () => dialog.close()));
  return dialog;
}
