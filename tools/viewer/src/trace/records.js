// Turns the lines of a trace into definitions by id and tables of events.
import { KINDS, Table } from './columns.js';
import { findingOf } from './findings.js';
import { GraphBuilder, Strings } from './graphs.js';
import {
  array,
  integer,
  integers,
  isObject,
  number,
  numbers,
  objects,
  text,
  texts,
} from './values.js';

const VERSION = 1;
const KEPT_PROBLEMS = 20;

function kernelOf(line) {
  return {
    id: integer(line.id),
    device: integer(line.device),
    name: text(line.name) || `kernel ${integer(line.id)}`,
    source: text(line.source),
    disassembly: text(line.disassembly),
    schedule: text(line.schedule),
    why: text(line.why),
    global: numbers(line.global),
    local: numbers(line.local),
    flops: number(line.flops),
    bytes: number(line.bytes),
    work: number(line.work),
    predicted: number(line.predicted_ns),
    compile: number(line.compile_ns),
    fromCache: line.from_cache === true,
    operations: integers(line.operations),
    run: integer(line.run),
    candidates: objects(line.candidates).map((candidate) => ({
      schedule: text(candidate.schedule),
      predicted: number(candidate.predicted_ns),
      measured: number(candidate.measured_ns),
      chosen: candidate.chosen === true,
    })),
  };
}

function shapeText(value) {
  return array(value).length ? `(${value.map(text).join(', ')})` : '()';
}

/// A number of bytes.
function size(value) {
  return Math.min(Math.max(0, number(value)), 2 ** 50);
}

function bufferOf(line) {
  return {
    kind: text(line.kind),
    bytes: size(line.bytes),
    dtype: text(line.dtype),
    device: integer(line.device),
    storage: integer(line.storage),
    offset: size(line.offset),
    first: integer(line.first_step, -1),
    last: integer(line.last_step, -1),
    node: integer(line.node, -1),
  };
}

/// What moves, as a sharded value or a step has it.
function movementOf(line) {
  return {
    kind: text(line.kind),
    value: integer(line.value, -1),
    along: text(line.along),
    bytes: size(line.bytes),
  };
}

function shardedOf(line) {
  return {
    id: integer(line.id),
    op: text(line.op),
    dtype: text(line.dtype),
    shape: shapeText(line.shape),
    operation: integer(line.operation),
    mesh: integer(line.mesh),
    spec: text(line.spec),
    before: objects(line.before).map(movementOf),
    after: objects(line.after).map(movementOf),
  };
}

function meshOf(line) {
  return { axes: text(line.axes), ranks: integers(line.ranks), devices: texts(line.devices) };
}

function collectiveOf(line) {
  if (!isObject(line)) return null;
  return {
    kind: text(line.kind),
    reduction: text(line.reduction),
    dtype: text(line.dtype),
    ranks: integers(line.ranks),
    bytes: size(line.bytes),
    values: objects(line.values).map((value) => ({
      shape: shapeText(value.shape),
      bytes: size(value.bytes),
    })),
  };
}

function stepOf(line) {
  return {
    kind: text(line.kind),
    kernel: integer(line.kernel),
    buffers: integers(line.buffers),
    collective: collectiveOf(line.collective),
    start: integer(line.start, -1), // of the collective that it waits for
  };
}

const PLAIN = {
  device: (line) => ({
    id: integer(line.id),
    name: text(line.name),
    arch: text(line.arch),
    clock: text(line.clock),
    hardware: text(line.hardware),
    clockError: number(line.clock_error_ns),
    memory: number(line.memory_bytes),
  }),
  machine: (line) => ({
    id: integer(line.device),
    peakGflops: Math.max(0, number(line.peak_gflops)),
    peakGbps: Math.max(0, number(line.peak_gbps)),
    launch: Math.max(0, number(line.launch_ns)),
  }),
  track: (line) => ({
    id: integer(line.id),
    kind: text(line.kind),
    device: integer(line.device),
    name: text(line.name),
  }),
  operation: (line) => ({
    id: integer(line.id),
    name: text(line.name),
    file: text(line.file),
    line: integer(line.line),
    function: text(line.function),
    stack: texts(line.stack),
  }),
  kernel: kernelOf,
  rule: (line) => ({
    id: integer(line.id),
    name: text(line.name),
    file: text(line.file),
    line: integer(line.line),
    before: text(line.before),
    after: text(line.after),
    condition: text(line.condition),
  }),
  name: (line) => ({ id: integer(line.id), text: text(line.text) }),
  work: (line) => ({
    id: integer(line.plan),
    executed: number(line.executed),
    graph: number(line.graph),
  }),
};

const PLURAL = {
  device: 'devices',
  machine: 'machines',
  track: 'tracks',
  operation: 'operations',
  kernel: 'kernels',
  rule: 'rules',
  name: 'names',
  work: 'works',
};

/// A trace that cannot be shown; its message is for people.
export class UnreadableTrace extends Error {}

export class TraceRecords {
  constructor() {
    this.strings = new Strings();
    this.header = null;
    this.end = null;
    this.plans = [];
    this.stages = [];
    this.findings = [];
    this.lines = 0;
    this.problemCount = 0;
    this.problems = [];
    this.defined = {};
    for (const type of Object.keys(PLAIN)) this.defined[PLURAL[type]] = new Map();
    this.tables = {};
    for (const kind of Object.keys(KINDS)) this.tables[kind] = new Table(kind);
  }

  problem(message) {
    ++this.problemCount;
    if (this.problems.length < KEPT_PROBLEMS) this.problems.push(message);
  }

  /// Reads one line. Unknown types are skipped; a line that is no JSON object is a problem.
  read(string) {
    ++this.lines;
    if (string.trim() === '') return;
    let line;
    try {
      line = JSON.parse(string);
    } catch {
      this.problem(`Line ${this.lines} is not JSON and was left out.`);
      return;
    }
    if (!isObject(line)) {
      this.problem(`Line ${this.lines} is not a JSON object and was left out.`);
      return;
    }
    try {
      this.readObject(line);
    } catch (error) {
      if (error instanceof UnreadableTrace) throw error;
      this.problem(`Line ${this.lines} cannot be understood and was left out.`);
    }
  }

  readObject(line) {
    if (line.t === 'trace') this.readHeader(line);
    else if (line.t === 'events') this.readEvents(line);
    else if (line.t === 'plan') this.readPlan(line);
    else if (line.t === 'stage') this.readStage(line);
    else if (line.t === 'finding') this.findings.push(findingOf(line));
    else if (line.t === 'end') this.readEnd(line);
    else if (Object.hasOwn(PLAIN, line.t)) {
      const made = PLAIN[line.t](line);
      this.defined[PLURAL[line.t]].set(made.id, made);
    }
  }

  readHeader(line) {
    if (line.version !== VERSION) {
      throw new UnreadableTrace(
        `This trace has format version ${text(line.version) || 'unknown'}; ` +
          `this page reads version ${VERSION}. Use the plugrad that wrote the trace.`,
      );
    }
    this.header = {
      program: text(line.program),
      cpu: text(line.cpu),
      rank: integer(line.rank),
      ranks: integer(line.ranks, 1),
    };
  }

  readEnd(line) {
    this.end = {};
    for (const key of [
      'launches',
      'copies',
      'copied_bytes',
      'waits',
      'rewrites',
      'dropped',
      'time_ns',
    ]) {
      this.end[key] = number(line[key]);
    }
  }

  readEvents(line) {
    const table = Object.hasOwn(KINDS, line.kind) ? this.tables[line.kind] : null;
    if (!table) return;
    if (!isObject(line.columns)) {
      this.problem(`Line ${this.lines}: events of kind ${text(line.kind)} without columns.`);
      return;
    }
    const before = table.count;
    const odd = table.append(line.columns);
    if (odd > 0 || table.count - before !== line.count) {
      this.problem(`Line ${this.lines}: columns of ${text(line.kind)} have different lengths.`);
    }
  }

  readPlan(line) {
    const builder = new GraphBuilder(this.strings);
    const shape = [],
      operation = [],
      step = [],
      partOf = [],
      position = [],
      spec = [];
    for (const node of objects(line.nodes)) {
      builder.add(node.id, node.op, node.dtype, node.arg, node.sources);
      shape.push(this.strings.number(shapeText(node.shape)));
      partOf.push(integer(node.part_of, -1));
      position.push(integer(node.position));
      spec.push(this.strings.number(node.spec));
      operation.push(integer(node.operation));
      step.push(integer(node.step, -1));
    }
    this.plans.push({
      id: integer(line.id),
      run: integer(line.run),
      graph: {
        ...builder.finish(),
        shape: Int32Array.from(shape),
        operation: Int32Array.from(operation),
        step: Int32Array.from(step),
        partOf: Int32Array.from(partOf), // the sharded value, -1: none
        position: Int32Array.from(position),
        spec: Int32Array.from(spec),
      },
      steps: objects(line.steps).map(stepOf),
      meshes: objects(line.meshes).map(meshOf),
      sharded: objects(line.sharded).map(shardedOf),
      buffers: objects(line.buffers).map(bufferOf),
    });
  }

  readStage(line) {
    const builder = new GraphBuilder(this.strings);
    for (const node of array(line.nodes)) {
      if (Array.isArray(node)) builder.add(...node.slice(0, 5));
    }
    const rewrites = array(line.rewrites).filter((item) => Array.isArray(item) && item.length >= 3);
    const flat = new Int32Array(rewrites.length * 3);
    rewrites.forEach((item, at) => {
      for (let i = 0; i < 3; ++i) flat[at * 3 + i] = integer(item[i]);
    });
    this.stages.push({
      uses: rewrites.filter(([rule]) => integer(rule) !== 0).length, // of rules
      id: integer(line.id),
      pipeline: text(line.pipeline),
      name: text(line.name),
      meaning: text(line.meaning),
      run: integer(line.run),
      text: text(line.text),
      graph: builder.finish(),
      before: integers(line.before),
      after: integers(line.after),
      rewrites: flat,
      roots: Int32Array.from(
        array(line.roots)
          .filter(Array.isArray)
          .flatMap(([rewrite, root]) => [integer(rewrite), integer(root, -1)]),
      ),
    });
  }

  finish() {
    if (!this.header) {
      if (this.lines === 0) throw new UnreadableTrace('This page contains an empty trace.');
      this.problem('The trace has no header: its first line is missing.');
    }
    const events = {};
    for (const [kind, table] of Object.entries(this.tables)) events[kind] = table.finish();
    for (const plan of this.plans) plan.work = this.defined.works.get(plan.id) ?? null;
    return {
      header: this.header ?? { program: '', cpu: '', rank: 0, ranks: 1 },
      end: this.end,
      ...this.defined,
      plans: this.plans,
      stages: this.stages,
      findings: this.findings,
      strings: this.strings.list,
      events,
    };
  }
}
