// One kernel: numbers, source beside disassembly, IR after each stage, launches, operations.
import { code, facts, fill, h, link } from '../dom.js';
import { bytes, count, duration, percent, plural, rate } from '../format.js';
import { operationList } from '../timeline/detail.js';
import { findingsOf } from '../trace/findings.js';
import { findingDetail } from './findings.js';
import { tabs } from './tabs.js';

const SHOWN_LAUNCHES = 100;

function numbers(row, device) {
  const { kernel } = row;
  return facts([
    ['device', device?.name ?? ''],
    ['launches', count(kernel.launches)],
    [
      'time',
      kernel.launches > 0
        ? `${duration(kernel.total)}: mean ${duration(row.time)}, ` +
          `shortest ${duration(kernel.shortest)}, longest ${duration(kernel.longest)}`
        : '',
    ],
    [
      'in the queue',
      kernel.delay > 0 ? `${duration(kernel.delay / kernel.launches)} on average` : '',
    ],
    [
      'work',
      kernel.flops > 0 || kernel.bytes > 0
        ? `${count(kernel.flops)} FLOP, ${bytes(kernel.bytes)} a launch at least` +
          (kernel.work > 0 ? `; ${count(kernel.work)} operations executed` : '')
        : '',
    ],
    [
      'rate',
      row.gflops > 0
        ? `${rate(row.gflops, 'GFLOP/s')} (${percent(row.gflops / device?.peakGflops)} of peak)`
        : '',
    ],
    [
      'memory rate',
      row.gbps > 0
        ? `${rate(row.gbps, 'GB/s')} (${percent(row.gbps / device?.peakGbps)} of peak)`
        : '',
    ],
    ['roof here', row.roof > 0 ? rate(row.roof, 'GFLOP/s') : ''],
    ['bound by', row.bound],
    [
      'predicted',
      kernel.predicted > 0 ? `${duration(kernel.predicted)} (measured ${duration(row.time)})` : '',
    ],
    [
      'grid',
      kernel.global.length
        ? `${kernel.global.join(' × ')} in groups of ${kernel.local.join(' × ')}`
        : '',
    ],
    [
      'compiled',
      kernel.fromCache ? 'found in the cache' : kernel.compile > 0 ? duration(kernel.compile) : '',
    ],
  ]);
}

function sourceTab(kernel) {
  return h(
    'div',
    { class: 'columns even' },
    h('div', {}, h('h4', {}, 'Source'), code(kernel.source || 'not recorded', 'Source')),
    h(
      'div',
      {},
      h('h4', {}, 'Disassembly'),
      kernel.disassembly
        ? code(kernel.disassembly, 'Disassembly')
        : h('p', { class: 'muted' }, 'The device gives none.'),
    ),
  );
}

function scheduleTab({ href }, kernel) {
  return [
    code(kernel.schedule || 'no step', 'Schedule'),
    kernel.why && [h('h4', {}, 'Why this schedule'), code(kernel.why, 'Why this schedule')],
    kernel.candidates.length > 0 &&
      h(
        'p',
        {},
        link(
          `${plural(kernel.candidates.length, 'candidate')}, predicted and measured`,
          href('schedules', { kernel: kernel.id }),
        ),
      ),
  ];
}

function stagesTab(stages) {
  const box = h('div', {});
  const show = (index) => fill(box, code(stages[index].text, `IR after ${stages[index].name}`));
  const select = h(
    'select',
    { 'aria-label': 'Stage', onchange: () => show(select.selectedIndex) },
    stages.map((stage, i) => h('option', { value: i }, `${i + 1}. ${stage.name}`)),
  );
  select.selectedIndex = stages.length - 1;
  show(stages.length - 1);
  return [h('label', {}, 'IR after ', select), box];
}

function launchesTab({ trace, href }, row) {
  const { begin, list } = trace.launchesOf,
    { launch } = trace.events;
  const all = Array.from(list.subarray(begin[row.row], begin[row.row + 1]));
  const longest = all
    .sort((a, b) => launch.duration[b] - launch.duration[a])
    .slice(0, SHOWN_LAUNCHES);
  return h(
    'div',
    { class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Launches' },
    h(
      'table',
      {},
      h(
        'caption',
        {},
        all.length > SHOWN_LAUNCHES
          ? `The ${SHOWN_LAUNCHES} longest of ${count(all.length)}`
          : 'From the longest',
      ),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['Begin', 'Duration', 'In the queue', 'Step'].map((text) =>
            h('th', { scope: 'col' }, text),
          ),
        ),
      ),
      h(
        'tbody',
        {},
        longest.map((i) =>
          h(
            'tr',
            {},
            h(
              'th',
              { scope: 'row' },
              link(duration(launch.start[i] - trace.first), href('timeline', { launch: i })),
            ),
            h('td', {}, duration(launch.duration[i])),
            h('td', {}, duration(launch.submit[i])),
            h(
              'td',
              {},
              launch.step[i] >= 0
                ? link(
                    `${launch.step[i]} of plan ${launch.plan[i]}`,
                    href('graph', { plan: launch.plan[i], step: launch.step[i] }),
                  )
                : '–',
            ),
          ),
        ),
      ),
    ),
  );
}

function linksOf({ trace, href }, kernel) {
  const plan = trace.plans.find((item) => item.steps.some((step) => step.kernel === kernel.id));
  const step = plan ? plan.steps.findIndex((item) => item.kernel === kernel.id) : -1;
  return h(
    'p',
    { class: 'links' },
    kernel.launches > 0 && link('Timeline', href('timeline', { search: kernel.name })),
    kernel.stagesRecorded && link('Rewrites', href('rewrites', { kernel: kernel.id })),
    plan && link('Tensor graph', href('graph', { plan: plan.id, step })),
    plan && link('Memory plan', href('memory', { plan: plan.id, step })),
    kernel.candidates.length > 0 && link('Schedules', href('schedules', { kernel: kernel.id })),
  );
}

/// The panel of a row of the kernels' table.
export function kernelDetail(context, row) {
  const { kernel } = row,
    device = context.trace.devices.get(kernel.device);
  const stages = context.trace.stages.filter(
    (stage) => kernel.run !== 0 && stage.run === kernel.run && stage.text !== '',
  );
  return h(
    'article',
    { 'aria-label': `Kernel ${kernel.name}` },
    h('h2', { class: 'name' }, kernel.name),
    linksOf(context, kernel),
    findingsOf(context.trace, row.row).map((finding) => findingDetail(context, finding)),
    numbers(row, device),
    tabs('About the kernel', [
      ['Source', () => sourceTab(kernel)],
      ['Schedule', () => scheduleTab(context, kernel)],
      stages.length > 0 && ['IR by stage', () => stagesTab(stages)],
      ['Launches', () => launchesTab(context, row)],
      ['Operations', () => operationList(context.trace, kernel.operations)],
    ]),
  );
}
