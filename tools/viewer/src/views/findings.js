// Shows what layers such as `compare` reported.
import { code, facts, h, link } from '../dom.js';
import { count, duration, plural, shorten } from '../format.js';

const LISTED = 100;

/// One finding in full.
export function findingDetail({ trace, href }, finding) {
  const { difference, launch } = finding;
  return h(
    'section',
    { class: 'finding', 'aria-label': `Report of ${finding.layer}` },
    h('h3', {}, difference ? `Differs from ${difference.reference}` : finding.layer),
    launch >= 0 &&
      h(
        'p',
        { class: 'links' },
        link(
          `Launch at ${duration(trace.events.launch.start[launch] - trace.first)}`,
          href('timeline', { launch }),
        ),
      ),
    difference &&
      facts([
        ['argument', `buffer ${difference.buffer}, element ${count(difference.index)}`],
        ['is', difference.got],
        ['should be', difference.expected],
        ['apart', difference.ulp >= 0 ? `${count(difference.ulp)} ulp` : ''],
        [
          'differing',
          `${count(difference.differing)} of ${plural(difference.elements, 'element')}`,
        ],
      ]),
    [finding.text, ...finding.more].map((text) => code(text, `Report of ${finding.layer}`)),
  );
}

/// The finding in one line, which leads to its kernel.
function lineOf({ trace, href }, { text, row }) {
  const line = shorten(text.split('\n', 1)[0], 200),
    kernel = trace.kernels[row];
  return kernel ? link(line, href('kernels', { kernel: kernel.id })) : line;
}

/// The line above the views; false where there is nothing to tell.
export function findingsNote(context) {
  const { findings } = context.trace;
  if (findings.length === 0) return false;
  const differing = findings.filter(({ difference }) => difference),
    kernels = new Set(differing.map(({ row }) => row)).size;
  const what =
    kernels > 0
      ? `${plural(kernels, 'kernel')} gave other results than ${differing[0].difference.reference}`
      : plural(findings.length, 'report of a layer', 'reports of layers');
  return h(
    'details',
    { class: 'note wrong' },
    h('summary', {}, `${what}. The first: `, lineOf(context, findings[0])),
    h(
      'ul',
      {},
      findings
        .slice(0, LISTED)
        .map((finding) =>
          h('li', {}, `${finding.layer}: ${finding.device}: `, lineOf(context, finding)),
        ),
      findings.length > LISTED && h('li', {}, `${count(findings.length - LISTED)} more`),
    ),
  );
}
