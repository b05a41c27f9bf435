// What is known of one event, with links to the other views.
import { CATEGORIES, DIRECTIONS } from '../colour.js';
import { facts, h, link } from '../dom.js';
import { bytes, count, duration, place, rate } from '../format.js';
import { kindOf, rowOf } from '../trace/lanes.js';
import { findingDetail } from '../views/findings.js';

export function operationItem(operation) {
  return h(
    'li',
    {},
    operation.name,
    ' ',
    h(
      'span',
      { class: 'muted' },
      [place(operation.file, operation.line), operation.function].filter(Boolean).join(' in '),
    ),
    operation.stack.length > 0 &&
      h(
        'details',
        {},
        h('summary', {}, 'stack'),
        h(
          'ol',
          {},
          operation.stack.slice(0, 40).map((frame) => h('li', {}, frame)),
        ),
      ),
  );
}

/// The operations behind a kernel, as a list.
export function operationList(trace, ids) {
  const found = ids.map((id) => trace.operations.get(id)).filter(Boolean);
  if (found.length === 0) return h('p', { class: 'muted' }, 'The operations are not known.');
  return h('ul', { class: 'operations' }, found.slice(0, 200).map(operationItem));
}

function launchDetail(context, row) {
  const { trace, href } = context,
    { launch } = trace.events,
    kernel = trace.kernels[trace.rowOfLaunch[row]];
  const time = launch.duration[row],
    plan = trace.plans.find((item) => item.id === launch.plan[row]);
  return [
    h(
      'p',
      { class: 'links' },
      link('Kernel', href('kernels', { kernel: kernel.id })),
      kernel.stagesRecorded && link('Rewrites', href('rewrites', { kernel: kernel.id })),
      plan && link('Tensor graph', href('graph', { plan: plan.id, step: launch.step[row] })),
      plan && link('Memory plan', href('memory', { plan: plan.id, step: launch.step[row] })),
      kernel.candidates.length > 0 && link('Schedules', href('schedules', { kernel: kernel.id })),
    ),
    facts([
      ['rate', kernel.flops > 0 ? rate(kernel.flops / time, 'GFLOP/s') : ''],
      ['memory rate', kernel.bytes > 0 ? rate(kernel.bytes / time, 'GB/s') : ''],
      [
        'submitted',
        launch.submit[row] > 0
          ? `${duration(launch.submit[row])} before it began`
          : 'synchronously',
      ],
      ['predicted', kernel.predicted > 0 ? duration(kernel.predicted) : ''],
      ['mean of its launches', duration(kernel.total / Math.max(1, kernel.launches))],
      [
        'step of the plan',
        launch.step[row] >= 0 ? `${launch.step[row]} of plan ${launch.plan[row]}` : '',
      ],
    ]),
    trace.findings
      .filter((finding) => finding.launch === row)
      .map((finding) => findingDetail(context, finding)),
    h('h4', {}, 'Operations'),
    operationList(trace, kernel.operations),
  ];
}

function copyDetail({ trace }, row) {
  const { copy } = trace.events;
  return [
    facts([
      ['direction', DIRECTIONS[copy.direction[row]] ?? 'unknown'],
      ['size', bytes(copy.bytes[row])],
      ['rate', rate(copy.bytes[row] / copy.duration[row], 'GB/s')],
    ]),
  ];
}

function waitDetail({ trace }, row) {
  const device = trace.events.wait.device[row];
  const what = device === 0 ? 'a collective' : (trace.devices.get(device)?.name ?? 'a device');
  return [facts([['waits for', what]])];
}

function collectiveDetail({ trace, href }, row) {
  const { collective } = trace.events,
    step = collective.step[row],
    plan = trace.plans.find((item) => item.id === collective.plan[row]);
  const planned = plan?.steps[step]?.collective;
  return [
    h(
      'p',
      { class: 'links' },
      plan && link('Tensor graph', href('graph', { plan: plan.id, step })),
      plan && link('Memory plan', href('memory', { plan: plan.id, step })),
    ),
    facts([
      ['size', `${count(collective.bytes[row])} bytes, given by this process`],
      ['values', count(collective.values[row])],
      ['rate', rate(collective.bytes[row] / collective.duration[row], 'GB/s')],
      ['the program waited', duration(collective.waited[row])],
      ['ranks', planned ? planned.ranks.join(' ') : ''],
      ['step of the plan', step >= 0 ? `${step} of plan ${collective.plan[row]}` : ''],
    ]),
    planned && collectiveValues(planned),
  ];
}

/// The members of a bucket, as a list.
export function collectiveValues({ dtype, values }) {
  return [
    h('h4', {}, 'Values'),
    h(
      'ul',
      {},
      values
        .slice(0, 200)
        .map((value) => h('li', {}, `${dtype} ${value.shape}: ${count(value.bytes)} bytes`)),
    ),
  ];
}

function spanDetail({ trace, href }, row, name) {
  const { span } = trace.events,
    category = CATEGORIES[span.category[row]] ?? 'span';
  const kernel = trace.kernels.find((item) => item.name === name);
  const value = span.value[row];
  return [
    h(
      'p',
      { class: 'links' },
      kernel && link('Kernel', href('kernels', { kernel: kernel.id })),
      kernel?.stagesRecorded && link('Rewrites', href('rewrites', { kernel: kernel.id })),
      category === 'plan' && trace.plans.length > 0 && link('Tensor graph', href('graph')),
      category === 'search' &&
        kernel &&
        link('Schedules', href('schedules', { kernel: kernel.id })),
    ),
    facts([
      ['kind', category],
      ['from the disk cache', category === 'compile' ? (value === 1 ? 'yes' : 'no') : ''],
      ['from the cache of plans', category === 'plan' ? (value === 1 ? 'yes' : 'no') : ''],
      ['count', !['compile', 'plan'].includes(category) && value ? count(value) : ''],
    ]),
  ];
}

/// The panel for a selected event { row, lane, at }.
export function eventDetail(context, names, selected) {
  const { trace } = context,
    reference = selected.lane.reference[selected.at];
  const row = rowOf(reference),
    name = names.name(reference),
    { track } = selected.row;
  const kinds = [launchDetail, copyDetail, waitDetail, spanDetail, collectiveDetail],
    more = kinds[kindOf(reference)];
  return [
    h('h3', { class: 'name' }, name),
    facts([
      ['begin', duration(selected.start - trace.first)],
      ['duration', duration(selected.end - selected.start)],
      ['on', [trace.devices.get(track.device)?.name, track.name].filter(Boolean).join(', ')],
    ]),
    more(context, row, name),
  ];
}
