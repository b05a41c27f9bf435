// Finds buffer donations: an output may take the memory of an input of the same form if it is
// written after the last read of the input, or by a kernel that reads each element of the input
// only where it writes it. In such a kernel the two parameters may be one buffer.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "ir/kernel_ast.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

using Kind = PlannedBuffer::Kind;

// Bytes below which reuse does not pay for its checks.
constexpr int64_t kLeastBytes = 64 << 10;

/// The first and the last step that use a buffer.
struct Touched {
  std::optional<size_t> first, last;
};
std::vector<Touched> touched(const Plan& plan) {
  std::vector<Touched> out(plan.buffers.size());
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (uint32_t buffer : plan.steps[i].buffers) {
      if (!out[buffer].first) out[buffer].first = i;
      out[buffer].last = i;
    }
  return out;
}

/// Dtype, device and element count: equal for buffers that can replace each other.
using BufferForm = std::tuple<DType, uint32_t, int64_t>;
BufferForm form_of(const PlannedBuffer& buffer) {
  return {buffer.dtype, buffer.device, buffer.elem_count};
}

/// The parameter of a step that is the buffer; none unless it is exactly one.
std::optional<uint32_t> slot_of(const Step& step, uint32_t buffer) {
  if (std::ranges::count(step.buffers, buffer) != 1) return std::nullopt;
  return static_cast<uint32_t>(std::ranges::find(step.buffers, buffer) - step.buffers.begin());
}

/// Whether every load of parameter `read` has the index of the store to `written`. False for
/// kernels with sums, which keep partial sums in the output, and for several stores with loops or
/// gates of their own, which run one after another.
bool reads_where_it_writes(const KernelAst& ast, uint32_t written, uint32_t read) {
  const Graph& g = ast.graph;
  const auto stores = g.sources(ast.sink);
  const auto slot = [&](Id access) { return param_info(g, g.sources(access)[0]).slot; };
  Id index = kNoId;
  for (Id store : stores)
    if (slot(store) == written) index = g.sources(store)[1];
  for (Id store : stores) {
    const auto parts = g.sources(store);
    if (stores.size() > 1 && (parts.size() > 3 || parts[1] != index)) return false;
  }
  Reachable reachable;
  return std::ranges::none_of(reachable.from(g, std::span(&ast.sink, 1)), [&](Id id) {
    if (g[id].op == Op::Reduce) return true;
    return g[id].op == Op::Load && slot(id) == read && g.sources(id)[1] != index;
  });
}

/// A copy of the kernel in which these parameters may be one buffer.
std::shared_ptr<KernelAst> with_shared(const KernelAst& ast, uint32_t one, uint32_t other) {
  const Graph& from = ast.graph;
  return rebuilt(ast, [&](Graph& g, Id id, std::span<const Id> sources, std::span<const Id>) {
    if (from[id].op != Op::Param) return copied_node(g, from, id, sources);
    ParamInfo info = param_info(from, id);
    if (info.slot == one || info.slot == other) info.flags |= kParamShared;
    return make_param(g, from[id].dtype, info);
  });
}

class DonationFinder {
 public:
  DonationFinder(SchedulerState& state, StepKernels kernels)
      : plan_(state.plan),
        kernels_(kernels),
        visits_(state.visits),
        touched_(touched(plan_)),
        is_root_(plan_.buffers.size()) {
    for (uint32_t root : plan_.root_buffers) is_root_[root] = true;
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i)
      if (plan_.buffers[i].kind == Kind::Output && touched_[i].first)
        outputs_[form_of(plan_.buffers[i])].emplace(*touched_[i].first, i);
  }

  /// Finds the first output that is written at or after the last read of the input.
  void find_output_for(uint32_t input) {
    const auto outputs = outputs_.find(form_of(plan_.buffers[input]));
    const Touched& reads = touched_[input];
    if (!reads.last || is_root_[input] || outputs == outputs_.end()) return;
    auto& free = outputs->second;
    for (auto at = free.lower_bound({*reads.last, 0}); at != free.end(); ++at)
      if (can_replace(at->second, input, *reads.last)) {
        plan_.donations.push_back({at->second, input});
        free.erase(at);
        return;
      }
  }

 private:
  bool can_replace(uint32_t output, uint32_t input, size_t last_read) {
    ++visits_;
    if (*touched_[output].first > last_read) return true;
    std::shared_ptr<KernelAst>& kernel = kernels_[last_read];
    const auto written = slot_of(plan_.steps[last_read], output),
               read = slot_of(plan_.steps[last_read], input);
    if (kernel) visits_ += kernel->graph.size();
    if (!kernel || !written || !read || !reads_where_it_writes(*kernel, *written, *read))
      return false;
    kernel = with_shared(*kernel, *written, *read);
    return true;
  }

  Plan& plan_;
  StepKernels kernels_;
  VisitCount& visits_;
  std::vector<Touched> touched_;
  std::vector<bool> is_root_;
  // Outputs without an input: the step that first writes them, and their number.
  std::map<BufferForm, std::set<std::pair<size_t, uint32_t>>> outputs_;
};

}  // namespace

void find_donations(SchedulerState& state, StepKernels kernels) {
  DonationFinder finder(state, kernels);
  for (uint32_t input : state.options.replaced) {
    const PlannedBuffer& buffer = state.plan.buffers[input];
    if (buffer.elem_count * size_of(buffer.dtype) >= kLeastBytes) finder.find_output_for(input);
  }
}

}  // namespace plugrad::schedule
