#include "jit/constants.h"

#include <algorithm>
#include <map>

#include "engine/plan/ready_plan.h"
#include "engine/refine/refinement.h"
#include "schedule/constant_steps.h"

namespace plugrad::jit_detail {
namespace {

// A constant part is kept only if its result is not much larger than its inputs.
constexpr uint64_t kMostGrowth = 16;          // e.g. f32 from 2-bit integers
constexpr uint64_t kSmallTable = 1ULL << 20;  // bytes, kept whatever the size of the inputs
constexpr uint64_t kMostOfDevice = 4;         // a quarter of the memory, as allocator caches

uint64_t memory_of(const runtime::Device& device) {
  const uint64_t limit = device.memory_stats().limit_bytes, all = device.info().memory_bytes;
  if (limit == 0 || all == 0) return std::max(limit, all);
  return std::min(limit, all);
}

// Chooses the parts to keep, counting what other recordings keep already.
class Budget {
 public:
  Budget(const engine::ReadyPlan& ready, const KeptOn& kept) : ready_(ready), kept_(kept) {}

  bool allows(const schedule::ConstantPart& part) {
    if (part.root_bytes > std::max(kSmallTable, kMostGrowth * part.input_bytes)) return false;
    std::map<uint32_t, uint64_t> used = used_;
    for (const uint32_t root : part.plan.root_buffers) {
      const schedule::PlannedBuffer& buffer = part.plan.buffers[root];
      const uint64_t memory = memory_of(*ready_.buffer_devices[part.buffers[root]]);
      uint64_t& bytes = used.try_emplace(buffer.device, kept_(buffer.device)).first->second;
      bytes += static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype);
      if (memory != 0 && bytes > memory / kMostOfDevice) return false;
    }
    used_ = std::move(used);
    return true;
  }

 private:
  const engine::ReadyPlan& ready_;
  const KeptOn& kept_;
  std::map<uint32_t, uint64_t> used_;  // by device
};

// A part reuses the whole plan's kernels; memory is allocated when it runs.
std::shared_ptr<engine::ReadyPlan> ready_part(const engine::ReadyPlan& whole,
                                              schedule::ConstantPart& part) {
  auto ready = std::make_shared<engine::ReadyPlan>();
  for (const uint32_t step : part.steps) ready->kernels.push_back(whole.kernels[step]);
  ready->loops.resize(part.steps.size());
  for (const uint32_t buffer : part.buffers) {
    ready->buffer_devices.push_back(whole.buffer_devices[buffer]);
    if (const auto& planned = whole.plan.buffers[buffer];
        planned.kind == schedule::PlannedBuffer::Kind::Constant)
      ready->constants.push_back(whole.constants[planned.number]);
  }
  engine::Origins all;
  for (uint32_t i = 0; i < part.plan.input_count; ++i) all.inputs.push_back(i);
  ready->origins.push_back(std::move(all));
  ready->origins_of.assign(part.plan.root_buffers.size(), 0);
  ready->trace = {0, whole.trace.graph, whole.trace.operations, part.steps, part.buffers, true};
  ready->plan = std::move(part.plan);
  ready->plan.arenas = whole.plan.arenas;
  ready->arena_devices = whole.arena_devices;
  return ready;
}

std::shared_ptr<engine::ReadyPlan> ready_rest(const engine::ReadyPlan& whole,
                                              schedule::ConstantSplit& split) {
  auto ready = std::make_shared<engine::ReadyPlan>(whole);
  ready->kernels.clear();
  ready->loops.clear();
  for (const uint32_t step : split.rest_steps) {
    ready->kernels.push_back(whole.kernels[step]);
    ready->loops.push_back(whole.loops[step]);
  }
  ready->trace = {0,    whole.trace.graph,   whole.trace.operations, split.rest_steps, {},
                  true, whole.trace.recorded};
  ready->plan = std::move(split.rest);
  ready->trace.sharding = whole.trace.sharding;
  ready->temporaries = nullptr;
  ready->prepared = nullptr;
  ready->is_recorded = true;
  if (whole.refinement) ready->refinement = whole.refinement->again();
  return ready;
}

// The values that stay the same between replays unless a tensor is assigned outside of them.
std::vector<bool> constant_values(const JitRecording& recording) {
  std::vector<bool> is_assigned(recording.tensors.size());
  for (const JitUpdate& update : recording.updates)
    if (!update.is_gradient) is_assigned[update.tensor] = true;
  std::vector<bool> is_constant;
  for (const JitValue& value : recording.values) {
    const bool is_captured = value.kind == JitValue::Kind::Tensor &&
                             recording.tensors[value.tensor].argument == JitTensor::kCaptured &&
                             !is_assigned[value.tensor];
    is_constant.push_back(is_captured || value.kind == JitValue::Kind::Fixed);
  }
  return is_constant;
}

bool is_same_buffer(const schedule::PlannedBuffer& a, const schedule::PlannedBuffer& b) {
  return a.kind == b.kind && a.number == b.number && a.dtype == b.dtype && a.device == b.device &&
         a.elem_count == b.elem_count;
}

bool is_same_step(const schedule::Step& a, const schedule::Step& b) {
  return a.kind == b.kind && a.device == b.device && a.buffers == b.buffers &&
         a.scalars == b.scalars;
}

bool is_up_to_date(const engine::PreparedConstants::Part& part,
                   std::span<const engine::ValuePtr> inputs) {
  if (part.results.size() != part.ready->plan.root_buffers.size() ||
      part.made_of.size() != part.inputs.size())  // nothing may read its results
    return false;
  for (size_t i = 0; i < part.inputs.size(); ++i)
    if (!is_same_owner(part.made_of[i], std::weak_ptr(inputs[part.inputs[i]]))) return false;
  return true;
}

// Equal kernels are one object, so pointers are compared.
bool computes_the_same(const engine::PreparedConstants::Part& a,
                       const engine::PreparedConstants::Part& b) {
  const schedule::Plan &one = a.ready->plan, &other = b.ready->plan;
  return a.ready->kernels == b.ready->kernels && one.constants == other.constants &&
         one.root_buffers == other.root_buffers &&
         std::ranges::equal(one.steps, other.steps, is_same_step) &&
         std::ranges::equal(one.buffers, other.buffers, is_same_buffer) &&
         std::ranges::equal(a.made_of, b.made_of,
                            [](const auto& x, const auto& y) { return is_same_owner(x, y); });
}

std::vector<engine::ValuePtr> results_of_others(const engine::PreparedConstants::Part& part,
                                                const engine::PreparedConstantsList& others) {
  std::vector<engine::ValuePtr> found;
  others.each([&](const engine::PreparedConstants& other) {
    for (const engine::PreparedConstants::Part& each : other.parts)
      if (found.empty() && !each.results.empty() && computes_the_same(part, each))
        found = each.results;
  });
  return found;
}

}  // namespace

JitConstants::JitConstants(const JitRun& run, const std::vector<bool>& is_constant_value,
                           const KeptOn& kept)
    : rest_{nullptr, run.inputs, run.roots} {
  std::vector<bool> is_constant;
  for (const uint32_t number : run.inputs) is_constant.push_back(is_constant_value[number]);
  Budget budget(*run.ready, kept);
  schedule::ConstantSplit split = schedule::split_constant_steps(
      run.ready->plan, is_constant,
      [&](const schedule::ConstantPart& part) { return budget.allows(part); });
  if (split.parts.empty()) return;
  for (schedule::ConstantPart& from : split.parts) {
    engine::PreparedConstants::Part part;
    for (uint32_t i = 0; i < from.plan.input_count; ++i)
      part.inputs.push_back(run.ready->plan.buffers[from.buffers[i]].number);
    part.ready = ready_part(*run.ready, from);
    kept_->parts.push_back(std::move(part));
  }
  rest_.ready = ready_rest(*run.ready, split);
}

void JitConstants::add_results(std::vector<engine::ValuePtr>& inputs,
                               const engine::PreparedConstantsList& others, const RunPlan& run) {
  const size_t own = inputs.size();
  std::vector<engine::ValuePtr> read;
  for (engine::PreparedConstants::Part& part : kept_->parts) {
    if (!is_up_to_date(part, std::span(inputs).first(own))) {
      part.results.clear();  // first, so that the new results can use the memory
      read.clear();
      for (const uint32_t number : part.inputs) read.push_back(inputs[number]);
      part.made_of.assign(read.begin(), read.end());
      part.results = results_of_others(part, others);
      if (part.results.empty()) part.results = run(*part.ready, read);
    }
    inputs.insert(inputs.end(), part.results.begin(), part.results.end());
  }
  if (is_dropped()) kept_->drop();  // a part ran out of memory meanwhile
}

std::vector<std::shared_ptr<JitConstants>> constants_of(const JitRecording& recording,
                                                        const KeptOn& kept) {
  const std::vector<bool> is_constant = constant_values(recording);
  std::vector<std::shared_ptr<JitConstants>> all;
  for (const JitRun& run : recording.runs) {
    if (!run.ready) {
      all.push_back(nullptr);
      continue;
    }
    auto constants = std::make_shared<JitConstants>(run, is_constant, kept);
    all.push_back(constants->empty() ? nullptr : std::move(constants));
  }
  return all;
}

}  // namespace plugrad::jit_detail
