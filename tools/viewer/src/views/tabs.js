// Tabs as in the ARIA practices: arrow keys move between them.
import { button, fill, h } from '../dom.js';

let made = 0;

/// Tabs [title, () => content]; those without a title are left out.
export function tabs(label, items) {
  const kept = items.filter(Boolean),
    prefix = `tabs-${++made}`;
  const panel = h('div', { role: 'tabpanel', id: `${prefix}-panel`, tabindex: 0 });
  const choose = (index, focus) => {
    list.forEach((tab, i) => {
      tab.setAttribute('aria-selected', i === index ? 'true' : 'false');
      tab.tabIndex = i === index ? 0 : -1;
    });
    panel.setAttribute('aria-labelledby', `${prefix}-${index}`);
    fill(panel, kept[index][1]());
    if (focus) list[index].focus();
  };
  const list = kept.map(([title], index) =>
    button(title, () => choose(index, false), {
      role: 'tab',
      id: `${prefix}-${index}`,
      'aria-controls': `${prefix}-panel`,
    }),
  );
  const onkeydown = (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const at = list.indexOf(document.activeElement);
    choose((at + move + list.length) % list.length, true);
    event.preventDefault();
    event.stopPropagation();
  };
  const element = h(
    'div',
    { class: 'tabs' },
    h('div', { role: 'tablist', 'aria-label': label, onkeydown }, list),
    panel,
  );
  choose(0, false);
  return element;
}
