// Builds elements from data. Data only ever becomes text nodes and attribute values: no string is
// parsed as markup anywhere in this page.

/// An element: h('button', { class: 'x', onclick: f, 'aria-label': 'y' }, 'text', child, …).
/// Attributes that are null or false are left out; style is an object of CSS properties.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') setStyle(element, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function setStyle(element, properties) {
  for (const [name, value] of Object.entries(properties)) element.style.setProperty(name, value);
}

function append(element, children) {
  for (const child of children.flat(4)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/// Replaces all children.
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

export function button(text, onclick, attributes = {}) {
  return h('button', { type: 'button', onclick, ...attributes }, text);
}

/// A link within the page; `hash` begins with "#".
export function link(text, hash, attributes = {}) {
  return h('a', { href: hash, ...attributes }, text);
}

/// Terms and descriptions; rows whose value is empty are left out.
export function facts(rows) {
  const kept = rows.filter(
    (row) => row && row[1] !== '' && row[1] !== null && row[1] !== undefined,
  );
  return h(
    'dl',
    { class: 'facts' },
    kept.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
  );
}

export function section(title, ...children) {
  return h('section', {}, h('h3', {}, title), ...children);
}

/// Code in a scrolling box that the keyboard reaches.
export function code(text, label) {
  return h('pre', { tabindex: 0, 'aria-label': label }, h('code', {}, text));
}

/// Calls `task` at most once a frame.
export function eachFrame(task) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      task();
    });
  };
}

/// Calls `task` when no call came for `delay` ms.
export function afterPause(task, delay) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(task, delay);
  };
}
