// Pointer, wheel and touch on a canvas that shows a stretch of something: drag, zoom, tap.

/// Calls pan(dx, dy), zoom(factor, x, y), tap(x, y) and hover(x, y, event); coordinates are pixels
/// within the element.
export function watchPointers(element, { pan, zoom, tap, hover }) {
  const pointers = new Map();
  let moved = 0;
  const at = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, at(event));
    element.setPointerCapture(event.pointerId);
    moved = 0;
  });
  element.addEventListener('pointermove', (event) => {
    const now = at(event),
      before = pointers.get(event.pointerId);
    if (!before) {
      hover?.(now.x, now.y, event);
      return;
    }
    const old = pointers.size === 2 ? spread() : null;
    pointers.set(event.pointerId, now);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (old) {
      const next = spread();
      pan(next.x - old.x, next.y - old.y);
      if (old.distance > 0) zoom(next.distance / old.distance, next.x, next.y);
    } else if (pointers.size === 1) pan(now.x - before.x, now.y - before.y);
  });
  const up = (event) => {
    const known = pointers.delete(event.pointerId);
    if (known && event.type === 'pointerup' && moved < 5) tap(at(event).x, at(event).y);
  };
  element.addEventListener('pointerup', up);
  element.addEventListener('pointercancel', up);
  element.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const { x, y } = at(event),
        unit = event.deltaMode === 1 ? 30 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        pan(-(event.deltaX || event.deltaY) * unit, 0);
      } else zoom(Math.exp((-event.deltaY * unit) / 400), x, y);
    },
    { passive: false },
  );
}

/// Gives a canvas the size of its box in the screen's pixels; returns its context and size.
export function prepareCanvas(canvas, width, height) {
  const density = Math.min(3, window.devicePixelRatio || 1);
  const wide = Math.max(1, Math.round(width * density)),
    tall = Math.max(1, Math.round(height * density));
  if (canvas.width !== wide || canvas.height !== tall) {
    canvas.width = wide;
    canvas.height = tall;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d', { alpha: false });
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}
