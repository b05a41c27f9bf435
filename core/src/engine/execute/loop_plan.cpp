// Plans and compiles the body of a loop once for loops of every length; the plan cache stores it
// under the body's key.
#include "base/clock.h"
#include "engine/plan/options.h"
#include "engine/session_state.h"

namespace plugrad::engine {
namespace {

// Nested plans must not share temporaries, so each depth has its own plan.
Hash128 key_at_depth(const Hash128& key, uint32_t depth) {
  const uint64_t words[] = {key.high, key.low, depth};
  return hash128(std::as_bytes(std::span(words)));
}

}  // namespace

schedule::Plan Session::plan_of_body(const LoopBody& body, uint32_t device) {
  const schedule::Options options = plan_options(state_->devices, std::span(&device, 1));
  schedule::Plan plan = schedule::make_plan(body.graph, body.roots, body.inputs, device, options);
  for (schedule::PlannedBuffer& buffer : plan.buffers) buffer.device = device;  // inputs had none
  return plan;
}

std::shared_ptr<ReadyPlan> Session::ready_body(const LoopBody& body, uint32_t device,
                                               uint32_t depth,
                                               const KernelOptions& kernel_options) {
  const schedule::Options options = plan_options(state_->devices, std::span(&device, 1));
  const Hash128 of_body = PlanRequest{device, options, kernel_options}.key(body.hash);
  const Hash128 key = key_at_depth(of_body, depth);
  if (const auto* known = state_->plans.find(key)) return *known;
  auto ready = std::make_shared<ReadyPlan>();
  const uint64_t begin_ns = monotonic_ns();
  ready->plan = kept_or_made(of_body, [&] { return plan_of_body(body, device); });
  ready->depth = depth;
  const uint64_t planned_ns = monotonic_ns();
  KernelOptions full = kernel_options;
  full.frugal = false;  // a body runs often, and its kernels stay while it does
  prepare(*ready, state_->devices, state_->kernels, user_kernels_, full);
  prepare_loops(*ready, kernel_options);
  Statistics& statistics = state_->statistics;
  statistics.schedule_ns += planned_ns - begin_ns;
  statistics.compile_ns += monotonic_ns() - planned_ns;
  ++statistics.plans_made;
  state_->plans.insert(key, ready, size_of_plan(*ready));
  return ready;
}

void Session::prepare_loops(ReadyPlan& ready, const KernelOptions& kernel_options) {
  const auto& steps = ready.plan.steps;
  ready.loops.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != schedule::Step::Kind::Loop) continue;
    const LoopBodyPtr body = loops_[steps[i].ast];
    ready.loops[i] = {body, ready_body(*body, steps[i].device, ready.depth + 1, kernel_options)};
  }
}

Id Session::placeholder(std::span<const int64_t> shape, DType dtype, uint32_t device) {
  const std::lock_guard guard(mutex_);
  std::vector<int64_t> list = {static_cast<int64_t>(kPlaceholder + state_->next_buffer++), device};
  list.insert(list.end(), shape.begin(), shape.end());
  return graph_.add(Op::Buffer, dtype, {}, graph_.list(list));
}

std::vector<Id> Session::pending_nodes() {
  const std::lock_guard guard(mutex_);
  std::vector<Id> nodes;
  for (const TensorState* state : state_->pending) nodes.push_back(state->node);
  return nodes;
}

}  // namespace plugrad::engine
