// Reads the traces of this page and shows them.
import { App } from './app.js';
import { fill, h } from './dom.js';
import { bytes, count } from './format.js';
import { Worker } from './worker/client.js';

const PLACES = 2;

/// Titles are paths; what their ends tell apart is enough.
function shortenTitles(traces) {
  const ends = traces.map(({ title }) => title.split('/').at(-1) || title);
  if (new Set(ends).size < traces.length) return;
  traces.forEach((trace, index) => {
    trace.title = ends[index];
  });
}

/// Takes the base64 out of a place of the page, which frees its memory.
function takePlace(index) {
  const element = document.getElementById(`trace-${index}`);
  const base64 = element ? element.textContent.trim() : '';
  if (element) element.remove();
  return base64;
}

function titleOf(index) {
  return document.querySelector(`meta[name="trace-${index}-title"]`)?.content || '';
}

function showMessage(root, title, text) {
  fill(root, h('main', { class: 'message', role: 'alert' }, h('h1', {}, title), h('p', {}, text)));
}

async function readPlace(worker, index, status) {
  const base64 = takePlace(index);
  if (!base64) return null;
  const trace = await worker.run('read', { base64 }, ({ characters, lines }) => {
    status.textContent = `Reading the trace: ${count(lines)} lines, ${bytes(characters)} …`;
  });
  trace.title = titleOf(index) || trace.header.program || `trace ${index + 1}`;
  return trace;
}

async function start() {
  const root = document.getElementById('page');
  const status = h('p', { class: 'reading', role: 'status' }, 'Reading the trace …');
  fill(root, status);
  const traces = [];
  const begin = performance.now();
  try {
    const worker = new Worker();
    for (let index = 0; index < PLACES; ++index) {
      const trace = await readPlace(worker, index, status);
      if (trace) traces.push(trace);
    }
    worker.stop();
  } catch (error) {
    showMessage(root, 'This trace cannot be shown', error.message);
    return;
  }
  if (traces.length === 0) {
    showMessage(
      root,
      'This page has no trace',
      'Record one with PLUGRAD_TRACE=file, then make a page: plugrad view TRACE -o page.html',
    );
    return;
  }
  performance.measure('plugrad: read', { start: begin });
  shortenTitles(traces);
  new App(root, traces).start();
  performance.measure('plugrad: first view', { start: begin });
}

start();
