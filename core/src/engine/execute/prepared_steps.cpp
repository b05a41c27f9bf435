#include "engine/execute/prepared_steps.h"

#include <algorithm>

#include "engine/execute/collective_step.h"
#include "engine/execute/loop_run.h"
#include "engine/plan/ready_plan.h"

namespace plugrad::engine {
namespace {

using Kind = schedule::PlannedBuffer::Kind;

void add_launch(runtime::LaunchList& list, const ReadyKernel& kernel, const schedule::Step& step) {
  const codegen::KernelCode& code = kernel.code;
  list.add(*kernel.kernel, std::span(step.buffers).first(kernel.param_count), step.scalars,
           {code.group_count[0], code.group_count[1], code.group_count[2]},
           {code.local_size[0], code.local_size[1], code.local_size[2]});
}

}  // namespace

PreparedSteps::PreparedSteps(const ReadyPlan& ready) {
  const auto& buffers = ready.plan.buffers;
  for (size_t i = 0; i < ready.plan.steps.size(); ++i) {
    const schedule::Step& step = ready.plan.steps[i];
    if (step.kind == schedule::Step::Kind::Copy || step.kind == schedule::Step::Kind::Loop ||
        step.kind == schedule::Step::Kind::Collective || step.kind == schedule::Step::Kind::Wait) {
      parts_.push_back({nullptr, {}, static_cast<uint32_t>(i)});
      continue;
    }
    runtime::Device& device = ready.kernels[i]->kernel->device();
    if (parts_.empty() || !parts_.back().launches || &parts_.back().launches->device() != &device)
      parts_.push_back(
          {std::make_unique<runtime::LaunchList>(device), {}, static_cast<uint32_t>(i)});
    Part& part = parts_.back();
    add_launch(*part.launches, *ready.kernels[i], step);
    for (const uint32_t buffer : step.buffers)
      if (buffers[buffer].kind != Kind::Temporary) part.places.push_back(buffer);
  }
  for (Part& part : parts_) {
    std::ranges::sort(part.places);
    const auto repeated = std::ranges::unique(part.places);
    part.places.erase(repeated.begin(), repeated.end());
  }
}

void PreparedSteps::set_temporaries(const ReadyPlan& ready) {
  if (version_ == ready.temporaries->version) return;
  const auto& places = ready.temporaries->buffers;
  for (uint32_t i = 0; i < places.size(); ++i)
    for (Part& part : parts_)
      if (places[i] && part.launches) part.launches->set(i, *places[i]);
  version_ = ready.temporaries->version;  // last: a launch may run out of memory
}

void PreparedSteps::set_buffers(const ReadyPlan& ready, std::span<runtime::Buffer* const> buffers) {
  set_temporaries(ready);
  for (Part& part : parts_) {
    if (!part.launches) continue;
    for (const uint32_t place : part.places) part.launches->set(place, *buffers[place]);
    if (ready.is_recorded) part.launches->make_graph();
  }
}

void PreparedSteps::set_scalars(const ReadyPlan& ready) {
  for (Part& part : parts_)
    for (uint32_t i = 0; part.launches && i < part.launches->size(); ++i)
      if (const schedule::Step& step = ready.plan.steps[part.step + i]; !step.numbers.empty())
        part.launches->set_scalars(i, step.scalars);
}

void PreparedSteps::run(const ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
                        std::span<const ValuePtr> values, LaunchLog& log) {
  CollectivesInFlight collectives(ready, buffers, log);
  for (Part& part : parts_) {
    const schedule::Step& step = ready.plan.steps[part.step];
    if (part.launches) part.launches->set_origin({ready.trace.id, static_cast<int32_t>(part.step)});
    if (part.launches)
      log.launch(*part.launches, ready.is_recorded);
    else if (step.kind == schedule::Step::Kind::Copy)
      log.copy(*buffers[step.buffers[0]], *buffers[step.buffers[1]], step.movement.get());
    else if (step.kind == schedule::Step::Kind::Collective)
      collectives.start(step);
    else if (step.kind == schedule::Step::Kind::Wait)
      collectives.wait(step);
    else
      run_loop(ready.loops[part.step], step.buffers, buffers, values, log);
  }
}

}  // namespace plugrad::engine
