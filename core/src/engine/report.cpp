// Turns kernels into reports.
#include <algorithm>

#include "engine/session_state.h"
#include "ir/range.h"
#include "ir/text/printer.h"
#include "tuning/calibration/machines.h"

namespace plugrad::engine {

namespace {

std::vector<KernelRange> ranges_of(const KernelAst& ast) {
  std::vector<KernelRange> ranges;
  Reachable reachable;
  for (Id id : reachable.from(ast.graph, std::span(&ast.sink, 1)))
    if (const Node& n = ast.graph[id]; n.op == Op::Range)
      ranges.push_back(
          {range_axis(n), range_size(ast.graph, id), range_kind(n) == AxisKind::Reduce});
  std::ranges::sort(ranges, {}, &KernelRange::axis);
  return ranges;
}

KernelReport report_of_code(const KernelAst* ast, const codegen::KernelCode& code,
                            std::string device) {
  KernelReport report;
  report.device = std::move(device);
  report.name = code.name;
  report.colored_name = code.colored_name;
  report.optimisations = codegen::to_string(code.schedule);
  if (ast) {
    report.ast = print(ast->graph, ast->sink, Numbering::FromZero);
    report.ranges = ranges_of(*ast);
  }
  std::ranges::copy(code.group_count, report.group_count);
  std::ranges::copy(code.local_size, report.local_size);
  report.flops = code.estimates.flops;
  report.bytes = code.estimates.bytes;
  report.work = code.work.operations;
  return report;
}

// A loop's kernels are listed once, at the loop's position.
void add_kernels_of(const ReadyPlan& ready, std::vector<KernelReport>& reports) {
  for (size_t i = 0; i < ready.kernels.size(); ++i) {
    if (ready.kernels[i]) reports.push_back(report_of(*ready.kernels[i]));
    if (ready.loops[i].plan) add_kernels_of(*ready.loops[i].plan, reports);
  }
}

void add_work(PlanWork& sum, const PlanWork& part) {
  sum.executed += part.executed;
  sum.graph += part.graph;
  sum.allowed += part.allowed;
}

}  // namespace

KernelReport report_of(const ReadyKernel& ready) {
  KernelReport report = report_of_code(ready.ast.get(), ready.code, ready.kernel->device().name());
  report.source = ready.kernel->source();
  report.planned = ready.ast;
  return report;
}

PlanWork work_of(const ReadyPlan& ready) {
  PlanWork work{0, ready.plan.operations, static_cast<double>(ready.plan.repeated)};
  for (size_t i = 0; i < ready.kernels.size(); ++i) {
    if (const auto& kernel = ready.kernels[i]) {
      work.executed += kernel->code.work.operations;
      work.allowed += static_cast<double>(kernel->code.estimates.bytes) /
                      tuning::machine_of(kernel->kernel->device())->bytes_an_operation();
    }
    if (i < ready.loops.size() && ready.loops[i].plan)
      add_work(work, work_of(*ready.loops[i].plan));
  }
  return work;
}

std::vector<KernelReport> Session::kernels_of(States states, PlanWork* work) {
  const std::lock_guard guard(mutex_);
  safe_point();
  PlanWork sum;
  std::vector<KernelReport> reports;
  for (const auto& [device, roots] : missing_local_roots(states)) {
    const Work found = work_for(roots, device == 0 ? default_device() : device, true);
    state_->canonical.take_inputs();
    add_kernels_of(*found.ready, reports);
    add_work(sum, work_of(*found.ready));
  }
  if (work) *work = sum;
  return reports;
}

void Session::add_reports(const schedule::Plan& plan, std::vector<KernelReport>& reports) {
  for (const schedule::Step& step : plan.steps) {
    const std::string& name = state_->devices.name(step.device);
    if (step.kind == schedule::Step::Kind::Kernel) {
      const KernelAst& ast = *plan.asts[step.ast];
      reports.push_back(report_of_code(&ast, codegen::describe(ast.graph, ast.sink), name));
      reports.back().planned = plan.asts[step.ast];
    } else if (step.kind == schedule::Step::Kind::User) {
      const UserKernelCode& kernel = *user_kernels_[step.ast];
      codegen::KernelCode code;
      code.name = code.colored_name = kernel.name;
      reports.push_back(report_of_code(kernel.ast.get(), code, name));
    } else if (step.kind == schedule::Step::Kind::Loop) {
      add_reports(plan_of_body(*loops_[step.ast], step.device), reports);
    }
  }
}

std::vector<KernelReport> Session::planned_kernels_of(States states) {
  const std::lock_guard guard(mutex_);
  safe_point();
  std::vector<KernelReport> reports;
  for (const auto& [device, roots] : missing_local_roots(states)) {
    add_reports(planned(roots, device == 0 ? default_device() : device), reports);
  }
  return reports;
}

void Session::add_requests(const schedule::Plan& plan, std::vector<KernelRequest>& requests) {
  for (const schedule::Step& step : plan.steps)
    if (step.kind == schedule::Step::Kind::Kernel)
      requests.push_back({plan.asts[step.ast], &state_->devices.open(step.device)});
    else if (step.kind == schedule::Step::Kind::Loop)
      add_requests(plan_of_body(*loops_[step.ast], step.device), requests);
}

std::vector<std::string> Session::sources_of(States states) {
  const std::lock_guard guard(mutex_);
  safe_point();
  std::vector<std::string> sources;
  for (const auto& [device, roots] : missing_local_roots(states)) {
    std::vector<KernelRequest> requests;
    add_requests(planned(roots, device == 0 ? default_device() : device), requests);
    std::ranges::move(render(requests, KernelOptions::from_settings()),
                      std::back_inserter(sources));
  }
  return sources;
}

}  // namespace plugrad::engine
