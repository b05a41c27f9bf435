#include "engine/plan/trace_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/trace/json_line.h"
#include "base/trace/trace.h"
#include "engine/refine/choices.h"
#include "ir/text/printer.h"
#include "runtime/device/device_state.h"
#include "tuning/calibration/machines.h"
#include "tuning/kernel_schedule.h"

namespace plugrad::engine {
namespace {

using trace::JsonLine;
using ScheduledValue = schedule::ScheduledGraph::Value;

constexpr size_t kCandidates = 12;  // schedules that a kernel's definition compares with its own

// Objects as a JSON list.
class JsonList {
 public:
  void add(const JsonLine& object) {
    if (!text_.empty()) text_ += ',';
    text_ += object.str();
  }
  std::string str() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

const char* kind_name(schedule::PlannedBuffer::Kind kind) {
  constexpr const char* kNames[] = {"input", "output", "temporary", "constant"};
  return kNames[static_cast<size_t>(kind)];
}

const char* kind_name(schedule::Step::Kind kind) {
  constexpr const char* kNames[] = {"kernel", "copy", "kernel", "loop", "collective", "wait"};
  return kNames[static_cast<size_t>(kind)];
}

// The step or buffer of this plan that `whole` is in the plan with the graph; -1: none.
int32_t own_number(int32_t whole, const std::vector<uint32_t>& map, bool is_mapped) {
  if (whole < 0 || !is_mapped) return whole;
  const auto at = std::ranges::find(map, static_cast<uint32_t>(whole));
  return at == map.end() ? -1 : static_cast<int32_t>(at - map.begin());
}

// The operations of the values that each step computes; those of reductions, which take most time,
// first.
std::vector<std::vector<uint32_t>> operations_of_steps(const ReadyPlan& ready) {
  std::vector<std::vector<uint32_t>> found(ready.plan.steps.size());
  const PlanTrace& trace = ready.trace;
  if (!trace.graph) return found;
  const auto add_if = [&](bool is_reduction) {
    for (size_t i = 0; i < trace.operations.size(); ++i) {
      const ScheduledValue& value = trace.graph->values[i];
      const int32_t step = own_number(value.step, trace.steps, trace.is_part);
      if (step < 0 || trace.operations[i] == 0) continue;
      if ((trace.graph->graph[value.id].op == Op::Reduce) != is_reduction) continue;
      auto& of_step = found[static_cast<size_t>(step)];
      if (std::ranges::find(of_step, trace.operations[i]) == of_step.end())
        of_step.push_back(trace.operations[i]);
    }
  };
  add_if(true);
  add_if(false);
  return found;
}

std::string arg_text(const Graph& graph, Id id) {
  if (graph[id].op == Op::Collective)
    return std::string(name_of(sharding::CollectiveArg::of(graph.arg_list(id)).kind));
  return printed_arg(graph, id).substr(0, 200);
}

std::string nodes_text(const PlanTrace& trace) {
  JsonList nodes;
  for (size_t i = 0; trace.graph && i < trace.graph->values.size(); ++i) {
    const ScheduledValue& value = trace.graph->values[i];
    const Graph& graph = trace.graph->graph;
    const int32_t step = own_number(value.step, trace.steps, trace.is_part);
    if (trace.is_part && step < 0 && graph[value.id].op != Op::Buffer) continue;
    JsonLine line;
    line.add("id", value.id)
        .add("op", printed_name(graph[value.id].op))
        .add("dtype", plugrad::name_of(graph[value.id].dtype))
        .add_list("shape", value.shape)
        .add("arg", arg_text(graph, value.id))
        .add_list("sources", graph.sources(value.id))
        .add("operation", trace.operations[i])
        .add("step", step);
    if (trace.sharding && trace.sharding->parts[i].whole >= 0) {
      const PlanSharding::Part& part = trace.sharding->parts[i];
      line.add("part_of", part.whole).add("position", part.position).add("spec", part.spec);
    }
    nodes.add(line);
  }
  return nodes.str();
}

std::string collective_text(const schedule::Plan& plan, const schedule::Step& step) {
  const std::vector<sharding::CollectiveArg> args = sharding::args_of(step.scalars);
  JsonList values;
  int64_t bytes = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const schedule::PlannedBuffer& source = plan.buffers[step.buffers[2 * i + 1]];
    const int64_t own = source.elem_count * static_cast<int64_t>(size_of(source.dtype));
    bytes += own;
    values.add(JsonLine().add_list("shape", args[i].whole).add("bytes", own));
  }
  return JsonLine()
      .add("kind", name_of(args[0].kind))
      .add("reduction", printed_name(args[0].reduction))
      .add("dtype", plugrad::name_of(plan.buffers[step.buffers[0]].dtype))
      .add_list("ranks", args[0].ranks)
      .add("bytes", bytes)
      .add_raw("values", values.str())
      .str();
}

// The start of the collective that a step waits for.
size_t start_of(const schedule::Plan& plan, const schedule::Step& wait) {
  size_t i = 0;
  while (plan.steps[i].kind != schedule::Step::Kind::Collective ||
         plan.steps[i].buffers != wait.buffers)
    ++i;
  return i;
}

std::string steps_text(const ReadyPlan& ready) {
  JsonList steps;
  for (size_t i = 0; i < ready.plan.steps.size(); ++i) {
    const schedule::Step& step = ready.plan.steps[i];
    JsonLine line;
    line.add("kind", kind_name(step.kind))
        .add("kernel", ready.kernels[i] ? ready.kernels[i]->kernel->trace_id() : 0)
        .add_list("buffers", step.buffers);
    if (step.kind == schedule::Step::Kind::Collective)
      line.add_raw("collective", collective_text(ready.plan, step));
    if (step.kind == schedule::Step::Kind::Wait) line.add("start", start_of(ready.plan, step));
    steps.add(line);
  }
  return steps.str();
}

// The steps that use each buffer, first and last; -1 for none. Inputs, constants and outputs last
// as long as the plan.
struct Life {
  int32_t first = -1, last = -1;
};
std::vector<Life> lives_of_buffers(const schedule::Plan& plan) {
  std::vector<Life> lives(plan.buffers.size());
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (const uint32_t buffer : plan.steps[i].buffers) {
      Life& life = lives[buffer];
      if (life.first < 0) life.first = static_cast<int32_t>(i);
      life.last = static_cast<int32_t>(i);
    }
  return lives;
}

// By buffer: the node that it stores; -1: none.
std::vector<int64_t> nodes_of_buffers(const ReadyPlan& ready) {
  std::vector<int64_t> nodes(ready.plan.buffers.size(), -1);
  const PlanTrace& trace = ready.trace;
  if (!trace.graph) return nodes;
  for (const ScheduledValue& value : trace.graph->values) {
    const int32_t buffer =
        own_number(value.buffer, trace.buffers, trace.is_part && !trace.buffers.empty());
    if (buffer >= 0 && static_cast<size_t>(buffer) < nodes.size())
      nodes[static_cast<size_t>(buffer)] = value.id;
  }
  return nodes;
}

std::string buffers_text(const ReadyPlan& ready) {
  const std::vector<Life> lives = lives_of_buffers(ready.plan);
  const std::vector<int64_t> nodes = nodes_of_buffers(ready);
  const size_t arenas = ready.plan.arenas.size();
  JsonList buffers;
  for (size_t i = 0; i < ready.plan.buffers.size(); ++i) {
    const schedule::PlannedBuffer& buffer = ready.plan.buffers[i];
    const bool is_temporary = buffer.kind == schedule::PlannedBuffer::Kind::Temporary;
    buffers.add(JsonLine()
                    .add("kind", kind_name(buffer.kind))
                    .add("bytes", buffer.elem_count * static_cast<int64_t>(size_of(buffer.dtype)))
                    .add("dtype", plugrad::name_of(buffer.dtype))
                    .add("device", ready.buffer_devices[i]->state().trace.id())
                    .add("storage", is_temporary ? buffer.arena : arenas + i)
                    .add("offset", is_temporary ? buffer.offset_bytes : 0)
                    .add("first_step", lives[i].first)
                    .add("last_step", lives[i].last)
                    .add("node", nodes[i]));
  }
  return buffers.str();
}

// Defined once a device, before its first kernel.
void trace_machine(runtime::Device& device) {
  static auto* const defined = new std::vector<uint32_t>;  // the session's mutex guards it
  const uint32_t id = device.state().trace.id();
  if (std::ranges::find(*defined, id) != defined->end()) return;
  defined->push_back(id);
  const cost::Machine& m = *tuning::machine_of(device);
  const double per_thread = m.lanes * m.multiply_adds * 2 * m.cycles_a_second * 1e-9;
  const double gbps = m.memory().all * m.cycles_a_second * 1e-9;
  const double launch_ns = m.wake_cycles / m.cycles_a_second * 1e9;
  trace::define(JsonLine("machine")
                    .add("device", id)
                    .add_raw("peak_gflops", fmt::format("{:.1f}", per_thread * m.threads))
                    .add_raw("peak_gbps", fmt::format("{:.1f}", gbps))
                    .add_raw("launch_ns", fmt::format("{:.0f}", launch_ns))
                    .str());
}

double predicted_ns(const codegen::Candidate& candidate, const cost::Machine& machine) {
  if (!candidate.prediction.is_possible) return 0;
  return candidate.prediction.seconds(machine, machine.threads) * 1e9;
}

// The kernel's candidates as a JSON list.
class Candidates {
 public:
  explicit Candidates(const ReadyKernel& ready)
      : machine_(*tuning::machine_of(ready.kernel->device())) {
    for (const auto& [list, seconds] :
         tuning::measured_schedules(*ready.ast, ready.kernel->device())) {
      double& best = seconds_.try_emplace(codegen::to_string(list), seconds).first->second;
      best = std::min(best, seconds);
      measured_.push_back(list);
    }
  }
  const std::vector<codegen::KernelSchedule>& measured() const { return measured_; }

  // Each schedule once.
  void add(const codegen::Candidate& each, bool is_chosen) {
    const std::string schedule = codegen::to_string(each.list);
    if (!added_.insert(schedule).second) return;
    const auto measured = seconds_.find(schedule);
    const double seconds = measured == seconds_.end() ? 0 : measured->second;
    list_.add(JsonLine()
                  .add("schedule", schedule)
                  .add_raw("predicted_ns", fmt::format("{:.0f}", predicted_ns(each, machine_)))
                  .add_raw("measured_ns", fmt::format("{:.0f}", seconds * 1e9))
                  .add("chosen", is_chosen));
  }
  std::string str() const { return list_.str(); }

 private:
  const cost::Machine& machine_;
  std::map<std::string, double> seconds_;
  std::vector<codegen::KernelSchedule> measured_;
  std::set<std::string> added_;
  JsonList list_;
};

// Adds the cost model's predictions for the kernel's schedule, for those one change away, and for
// those that a search timed. Takes as long as code generation.
void add_choice(JsonLine& line, const ReadyKernel& ready) {
  if (!ready.ast) return;
  const KernelReport report = report_of(ready);
  const Choice choice = choice_of(report, kCandidates);
  const cost::Machine& machine = *tuning::machine_of(ready.kernel->device());
  Candidates candidates(ready);
  candidates.add(choice.own, true);
  candidates.add(choice.plain, false);
  for (const codegen::Candidate& each : predictions_of(report, candidates.measured()))
    candidates.add(each, false);
  for (const codegen::Candidate& each : choice.nearest) candidates.add(each, false);
  line.add_raw("candidates", candidates.str());
  line.add_raw("predicted_ns", fmt::format("{:.0f}", predicted_ns(choice.own, machine)));
  std::string why = fmt::format(
      "the cost model compared it with {} legal schedules one change away", choice.looked_at);
  if (!candidates.measured().empty())
    why += fmt::format("; {} launches were timed", candidates.measured().size());
  line.add("why", why);
}

// A loop's body is a plan of its own.
void trace_work(const ReadyPlan& ready) {
  int64_t executed = 0;
  for (const auto& kernel : ready.kernels)
    if (kernel) executed += kernel->code.work.operations;
  JsonLine line("work");
  line.add("plan", ready.trace.id).add("executed", executed).add("graph", ready.plan.operations);
  trace::define(line.str());
}

}  // namespace

void trace_kernel(const ReadyKernel& ready, std::span<const uint32_t> operations) {
  const runtime::Kernel& kernel = *ready.kernel;
  if (kernel.trace_id() != 0) return;
  const trace::Scope span(trace::Category::Plan, "define kernel for the trace");
  trace_machine(kernel.device());
  const uint32_t id = trace::new_id();
  JsonLine line = runtime::kernel_line(id, kernel.device().state().trace.id(), kernel);
  line.add("schedule", codegen::to_string(ready.code.schedule))
      .add_list("global", ready.code.group_count)
      .add_list("local", ready.code.local_size)
      .add("flops", ready.code.estimates.flops)
      .add("bytes", ready.code.estimates.bytes)
      .add("work", ready.code.work.operations)
      .add("run", ready.code.trace_run)
      .add_list("operations", operations);
  if (tracing_rules()) {
    line.add("disassembly", kernel.disassemble());
    add_choice(line, ready);
  }
  trace::define(line.str());
  kernel.set_trace_id(id);
}

void trace_kernel_of_step(const ReadyPlan& ready, size_t step, const ReadyKernel& kernel) {
  if (kernel.kernel->trace_id() == 0) trace_kernel(kernel, operations_of_steps(ready)[step]);
}

void trace_plan(ReadyPlan& ready) {
  if (ready.trace.id != 0) return;
  const trace::Scope span(trace::Category::Plan, "define plan for the trace");
  ready.trace.id = trace::new_id();
  const auto operations = operations_of_steps(ready);
  for (size_t i = 0; i < ready.kernels.size(); ++i)
    if (ready.kernels[i]) trace_kernel(*ready.kernels[i], operations[i]);
  JsonLine line("plan");
  line.add("id", ready.trace.id)
      .add("run", ready.plan.trace_run)
      .add_raw("nodes", nodes_text(ready.trace))
      .add_raw("steps", steps_text(ready))
      .add_raw("buffers", buffers_text(ready));
  if (const auto& recorded = ready.trace.recorded)
    line.add("recorded", recorded->text).add_list("replaces", recorded->replaces);
  if (const auto& sharding = ready.trace.sharding)
    line.add_raw("meshes", sharding->meshes).add_raw("sharded", sharding->values);
  trace::define(line.str());
  trace_work(ready);
}

}  // namespace plugrad::engine
