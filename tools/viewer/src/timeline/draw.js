// Draws the timeline. The work for a lane is bounded by the width in pixels, not by its events:
// what is narrower than a pixel is drawn as one column whose strength is the busy share of its
// time.
import { theme } from '../colour.js';
import { duration, shorten } from '../format.js';
import { upperBound } from '../trace/lanes.js';

export const AXIS = 24;
const FONT = '12px system-ui, sans-serif',
  CHARACTER = 6.6;

/// First position behind `from` whose value is over `bound`: near ones are found first.
function gallop(values, bound, from, count) {
  let step = 1,
    low = from;
  while (low + step < count && values[low + step] <= bound) {
    low += step;
    step *= 2;
  }
  return upperBound(values, bound, low, Math.min(count, low + step + 1));
}

function drawWide(context, lane, at, box, names) {
  const { x, y, width, height } = box;
  context.globalAlpha = 1;
  context.fillRect(x, y, width, height);
  if (width < 30) return;
  context.fillStyle = '#101418';
  const text = shorten(names.name(lane.reference[at]), Math.floor((width - 6) / CHARACTER));
  context.fillText(text, x + 3, y + height / 2 + 0.5);
}

function drawLane(context, lane, view, y, height, names) {
  const { begin, scale, left, width } = view,
    end = begin + width / scale;
  const { start, end: ends, reference, busy, matches, count } = lane;
  const faint = theme().line;
  let i = upperBound(ends, begin);
  while (i < count && start[i] < end) {
    const from = (start[i] - begin) * scale,
      to = (ends[i] - begin) * scale;
    if (to - from >= 1.5) {
      const matched = !matches || matches[i + 1] > matches[i];
      context.fillStyle = matched ? names.colour(reference[i]) : faint;
      const x = Math.max(0, from),
        right = Math.min(width, to);
      const box = {
        x: left + x,
        y,
        width: Math.max(1, right - x - (right - x > 4 ? 0.5 : 0)),
        height,
      };
      drawWide(context, lane, i, box, names);
      ++i;
      continue;
    }
    const pixel = Math.max(0, Math.floor(from)),
      bound = begin + (pixel + 1) / scale;
    let next = Math.max(i + 1, gallop(start, bound, i, count));
    if (next > i + 1 && ends[next - 1] - bound > 1 / scale) --next; // a wide one begins here
    const matched = !matches || matches[next] > matches[i];
    context.fillStyle = matched ? names.colour(reference[(i + next) >>> 1]) : faint;
    context.globalAlpha = Math.min(1, 0.4 + 0.6 * (busy[next] - busy[i]) * scale);
    context.fillRect(left + pixel, y, 1, height);
    i = next;
  }
  context.globalAlpha = 1;
}

function drawMemory(context, row, view, y, colours) {
  const { begin, scale, left, width } = view,
    { curve } = row,
    height = row.height - 6;
  for (const [name, colour] of [
    ['total', colours.line],
    ['used', colours.accent],
  ]) {
    context.fillStyle = colour;
    for (let x = 0; x < width; ++x) {
      const from = begin + x / scale;
      const tall = (height * curve.mostBetween(name, from, from + 1 / scale)) / curve.top;
      // Opaque columns overlap a little: a screen of 1.5 pixels a unit shows no seams.
      if (tall > 0) context.fillRect(left + x, y + 3 + height - tall, 1.5, Math.max(1, tall));
    }
  }
}

/// Distances between marks of the axis: 1, 2 or 5 times a power of ten.
function stepOf(span, marks) {
  const rough = Math.max(span / marks, 1),
    power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

function drawAxis(context, view, height, colours) {
  const { begin, scale, left, width, first } = view,
    span = width / scale;
  const step = stepOf(span, Math.max(2, width / 110));
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, left * 2 + width, AXIS);
  context.strokeStyle = colours.grid;
  context.beginPath();
  const from = Math.ceil((begin - first) / step);
  const marks = Math.min(100, Math.floor((begin + span - first) / step) - from + 1);
  for (let i = 0; i < marks; ++i) {
    const time = (from + i) * step,
      x = left + (time + first - begin) * scale;
    context.moveTo(x, AXIS - 5);
    context.lineTo(x, height);
    context.fillStyle = colours.muted;
    context.fillText(duration(time), x + 3, AXIS / 2);
  }
  context.stroke();
}

/// A mark on the axis for each launch that a layer reported.
function drawFindings(context, { begin, scale, left, width }, times, colours) {
  context.fillStyle = colours.bad;
  for (const time of times) {
    const x = (time - begin) * scale;
    if (x < 0 || x > width) continue;
    context.beginPath();
    context.moveTo(left + x, AXIS);
    context.lineTo(left + x - 5, AXIS - 9);
    context.lineTo(left + x + 5, AXIS - 9);
    context.fill();
  }
}

function drawSelection(context, view, y, selected, colours) {
  const { begin, scale, left, width } = view;
  const from = (selected.start - begin) * scale,
    to = (selected.end - begin) * scale;
  if (to < 0 || from > width) return;
  context.lineWidth = 2;
  context.strokeStyle = colours.ink;
  context.strokeRect(
    left + Math.max(-2, from - 1),
    y - 1,
    Math.min(width + 4, Math.max(3, to - from + 2)),
    selected.height + 2,
  );
  if (selected.submitted < selected.start) {
    const x = left + Math.max(0, (selected.submitted - begin) * scale);
    context.beginPath();
    context.moveTo(x, y + selected.height / 2);
    context.lineTo(left + Math.max(0, from), y + selected.height / 2);
    context.moveTo(x, y);
    context.lineTo(x, y + selected.height);
    context.stroke();
  }
  context.lineWidth = 1;
}

/// Draws all visible rows. `view`: begin (ns), scale (pixels per ns), left, width, first (ns that
/// the axis calls 0), scroll (pixels), height, marks (times on the axis).
export function drawTimeline(context, rows, view, names, selected) {
  const colours = theme();
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, view.left * 2 + view.width, view.height);
  context.font = FONT;
  context.textBaseline = 'middle';
  drawAxis(context, view, view.height, colours);
  drawFindings(context, view, view.marks, colours);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, view.left * 2 + view.width, view.height - AXIS);
  context.clip();
  for (const row of rows) {
    const y = AXIS + row.top - view.scroll;
    if (y + row.height < AXIS || y > view.height) continue;
    if (row.type === 'heading') {
      context.fillStyle = colours.panel;
      context.fillRect(0, y, view.left * 2 + view.width, row.height);
      context.fillStyle = colours.ink;
      context.fillText(row.text, 8, y + row.height / 2);
    } else if (row.type === 'lane') {
      drawLane(context, row.lane, view, y + 1, row.height - 2, names);
      if (selected?.lane === row.lane) {
        drawSelection(context, view, y + 1, { ...selected, height: row.height - 2 }, colours);
      }
    } else {
      drawMemory(context, row, view, y, colours);
    }
  }
  context.restore();
}
