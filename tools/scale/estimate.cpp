#include "scale/estimate.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/settings.h"
#include "scale/links.h"
#include "scale/overlap.h"

namespace plugrad::tools::scale {
namespace {

using schedule::Plan;
using schedule::PlannedBuffer;
using schedule::Step;

uint64_t bytes_of(const PlannedBuffer& buffer) {
  return static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype);
}

/// The indices of the buffers of a step that it writes: of a collective and of the wait for it,
/// every second one.
std::vector<uint32_t> written_by(const Plan& plan, const Step& step, WorkTable& works) {
  if (step.kind == Step::Kind::Kernel) return works.of(*plan.asts[step.ast]).written;
  std::vector<uint32_t> written = {0};
  if (step.kind == Step::Kind::Collective || step.kind == Step::Kind::Wait)
    for (uint32_t i = 2; i < step.buffers.size(); i += 2) written.push_back(i);
  return written;
}

/// For each step the earlier ones that wrote what it reads.
std::vector<std::vector<size_t>> needs_of(const Plan& plan, WorkTable& works) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> writer(plan.buffers.size(), kNone);
  std::vector<std::vector<size_t>> needs(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    for (const uint32_t buffer : step.buffers)
      if (writer[buffer] != kNone) needs[i].push_back(writer[buffer]);
    std::ranges::sort(needs[i]);
    needs[i].erase(std::ranges::unique(needs[i]).begin(), needs[i].end());
    for (const uint32_t index : written_by(plan, step, works)) writer[step.buffers[index]] = i;
  }
  return needs;
}

double ratio(double measured, double estimated) {
  return measured > 0 && estimated > 0 ? measured / estimated : 1;
}

}  // namespace

Estimator::Estimator(const Program& program, const Machine& machine)
    : program_(program), machine_(machine) {
  if (program.measured && program.measured->device == machine.device.name) correct();
}

Plan Estimator::plan_of(const Part& part) const {
  schedule::Options options = machine_.device.planning;
  options.fast_math = settings().fast_math;
  for (uint32_t i = 0; i < part.leaves.size(); ++i)
    if (program_.leaves[part.leaves[i]].root) options.replaced.push_back(i);
  return schedule::make_plan(part.graph, part.roots, part.inputs, kDevice, options);
}

Memory Estimator::memory_of(const Part& part, const Plan& plan) const {
  Memory memory;
  for (size_t leaf = 0; leaf < part.bytes.size(); ++leaf) {
    uint64_t* const to[] = {&memory.parameters, &memory.state, &memory.batch, &memory.other};
    *to[static_cast<size_t>(program_.leaves[leaf].role)] += part.bytes[leaf];
  }
  std::unordered_set<uint32_t> donated;
  for (const schedule::Donation& pair : plan.donations) {
    const PlannedBuffer& input = plan.buffers[pair.input];
    if (program_.leaves[part.leaves[input.number]].root) donated.insert(pair.output);
  }
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == PlannedBuffer::Kind::Constant)
      memory.other += bytes_of(plan.buffers[i]);
    if (plan.buffers[i].kind == PlannedBuffer::Kind::Output && !donated.contains(i))
      memory.results += bytes_of(plan.buffers[i]);
  }
  for (const schedule::Arena& arena : plan.arenas) memory.temporaries += arena.size_bytes;
  return memory;
}

double Estimator::collective_step(const Plan& plan, const Step& step, uint64_t mesh_size,
                                  Estimate& to) const {
  const std::vector<int64_t> list(step.scalars.begin(), step.scalars.end());
  const auto arg = sharding::CollectiveArg::of(list);
  double bytes = 0;  // of all members of a bucket, which are alike
  for (size_t i = 0; i < step.buffers.size(); i += 2)
    bytes += static_cast<double>(std::max(bytes_of(plan.buffers[step.buffers[i]]),
                                          bytes_of(plan.buffers[step.buffers[i + 1]])));
  const double seconds = collective_seconds(machine_, arg.kind, bytes, arg.ranks, mesh_size);
  const uint64_t members = arg.ranks.size();
  auto traffic = std::ranges::find_if(to.traffic, [&](const Traffic& known) {
    return known.kind == arg.kind && known.members == members;
  });
  if (traffic == to.traffic.end())
    traffic = to.traffic.insert(to.traffic.end(), {.kind = arg.kind, .members = members});
  ++traffic->count;
  traffic->bytes += bytes;
  traffic->seconds += seconds;
  to.communication_seconds += seconds;
  return seconds;
}

double Estimator::step_seconds(const Plan& plan, const Step& step, bool is_shared, Estimate& to) {
  if (step.kind == Step::Kind::Wait) return 0;
  ++to.kernels;
  if (step.kind == Step::Kind::Kernel) {
    const KernelWork& work = works_.of(*plan.asts[step.ast]);
    const double seconds = kernel_seconds(machine_, work, is_shared) * corrections_.of(work);
    (work.is_matrix ? to.matrix_seconds : to.other_seconds) += seconds;
    to.flops += work.flops;
    return seconds;
  }
  require(step.kind != Step::Kind::Loop,
          "[plan-scale] the step has a loop (scan), whose body is not part of a trace; record it "
          "without scan");
  KernelWork work;  // a copy, or a user's kernel: by its memory traffic alone
  for (const uint32_t buffer : step.buffers)
    work.bytes += static_cast<double>(bytes_of(plan.buffers[buffer]));
  const double seconds = kernel_seconds(machine_, work, is_shared);
  to.other_seconds += seconds;
  return seconds;
}

Estimate Estimator::estimate(const sharding::Mesh& mesh, const Layout& layout) {
  const Part part = part_of(program_, mesh, layout);
  const Plan plan = plan_of(part);
  Estimate made;
  made.memory = memory_of(part, plan);
  const bool is_shared = mesh.size() >= machine_.devices_per_node && machine_.devices_per_node > 1;
  std::vector<std::vector<size_t>> needs = needs_of(plan, works_);
  std::vector<TimedStep> steps;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const bool is_collective = plan.steps[i].kind == Step::Kind::Collective;
    const double seconds = is_collective ? collective_step(plan, plan.steps[i], mesh.size(), made)
                                         : step_seconds(plan, plan.steps[i], is_shared, made);
    steps.push_back({seconds, is_collective, std::move(needs[i])});
  }
  const double kernels = made.matrix_seconds + made.other_seconds;
  made.exposed_seconds = std::max(0.0, ordered_seconds(steps) - kernels);  // of rounding
  made.exposed_at_best_seconds =
      std::clamp(overlapped_seconds(steps) - kernels, 0.0, made.exposed_seconds);
  if (is_corrected_)
    made.host_seconds = program_.measured->host_seconds / (is_shared ? machine_.shared_compute : 1);
  return made;
}

// The model's own estimate of what was measured.
void Estimator::correct() {
  const Measured& measured = *program_.measured;
  const Part part =
      part_of(program_, make_mesh({{"one", 1}}, 1, machine_.name), replicated(program_));
  const Plan plan = plan_of(part);
  std::map<uint64_t, std::pair<double, double>> by_structure;
  std::pair<double, double> matrix, others;
  const auto add = [](std::pair<double, double>& sum, double a, double b) {
    sum.first += a;
    sum.second += b;
  };
  for (const Step& step : plan.steps) {
    if (step.kind != Step::Kind::Kernel) continue;
    const KernelWork& work = works_.of(*plan.asts[step.ast]);
    const auto known = measured.kernel_seconds.find(work.traced);
    if (known == measured.kernel_seconds.end()) continue;
    const double estimated = kernel_seconds(machine_, work, false);
    add(by_structure[work.structure], known->second, estimated);
    add(work.is_matrix ? matrix : others, known->second, estimated);
  }
  is_corrected_ = matrix.first + others.first > 0;
  if (!is_corrected_) return;
  corrections_.of_matrix = ratio(matrix.first, matrix.second);
  corrections_.of_others = ratio(others.first, others.second);
  for (const auto& [structure, sums] : by_structure)
    corrections_.by_structure[structure] = ratio(sums.first, sums.second);
}

}  // namespace plugrad::tools::scale
