// Finds the launches and kernels that reports of layers are about.
import { number, text } from './values.js';

const KEPT = 1000;

function differenceOf({ reference, buffer, index, got, expected, ulp, differing, elements }) {
  return {
    reference: text(reference),
    buffer: number(buffer),
    index: number(index),
    got: text(got),
    expected: text(expected),
    ulp: number(ulp, -1), // -1: none
    differing: number(differing),
    elements: number(elements),
  };
}

export function findingOf(line) {
  return {
    id: number(line.id),
    time: number(line.time_ns),
    layer: text(line.layer) || 'layer',
    device: text(line.device),
    kernel: text(line.kernel),
    text: text(line.text),
    difference: line.difference ? differenceOf(line.difference) : null,
  };
}

/// What a layer adds to a difference, such as the smallest kernel, joins the finding in `more`.
function grouped(findings) {
  const groups = [],
    last = new Map();
  for (const finding of findings) {
    const key = JSON.stringify([finding.layer, finding.device, finding.kernel]);
    const group = finding.kernel && !finding.difference ? last.get(key) : null;
    if (group) group.more.push(finding.text);
    else {
      groups.push({ ...finding, more: [] });
      last.set(key, groups.at(-1));
    }
  }
  return groups;
}

/// The kernel's last launch that began before the report, or -1.
function launchOf({ time }, rows, { launchesOf: { begin, list }, events: { launch } }) {
  let found = -1;
  for (const row of rows) {
    for (let at = begin[row]; at < begin[row + 1]; ++at) {
      const i = list[at];
      if (launch.start[i] <= time && (found < 0 || launch.start[i] > launch.start[found])) {
        found = i;
      }
    }
  }
  return found;
}

/// Gives the trace its findings: grouped, each with `launch` (its row, or -1) and `row` (that of
/// its kernel, or -1). A layer knows names only; several kernels may have one.
export function addFindings(trace) {
  trace.findings = grouped(trace.findings).slice(0, KEPT);
  for (const finding of trace.findings) {
    const rows = [...trace.kernels.keys()].filter((row) => {
      const { name, device } = trace.kernels[row];
      return name === finding.kernel && trace.devices.get(device)?.name === finding.device;
    });
    finding.launch = launchOf(finding, rows, trace);
    finding.row = finding.launch >= 0 ? trace.rowOfLaunch[finding.launch] : (rows[0] ?? -1);
  }
}

export function findingsOf(trace, row) {
  return trace.findings.filter((finding) => finding.row === row);
}
