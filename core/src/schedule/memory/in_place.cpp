#include "schedule/memory/in_place.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "ir/facts.h"
#include "ir/kernel_ast.h"

namespace plugrad::schedule {
namespace {

using Kind = PlannedBuffer::Kind;

// Of a smaller value memory is not worth asking whether somebody wants it.
constexpr int64_t kLeastBytes = 64 << 10;

/// The steps that touch a buffer.
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

/// Dtype, device and number of elements: of two buffers of one form, one may lie where the other
/// lies.
using Form = std::tuple<DType, uint32_t, int64_t>;
Form form_of(const PlannedBuffer& buffer) {
  return {buffer.dtype, buffer.device, buffer.elem_count};
}

/// The only place of a buffer among a step's parameters.
std::optional<uint32_t> slot_of(const Step& step, uint32_t buffer) {
  if (std::ranges::count(step.buffers, buffer) != 1) return std::nullopt;
  return static_cast<uint32_t>(std::ranges::find(step.buffers, buffer) - step.buffers.begin());
}

/// Whether every load of parameter `read` is of the element that is stored to `written` of what it
/// is needed for. With a sum in the kernel that says nothing: sums wait in the output until they
/// are finished. Stores with loops or gates of their own come one after the other.
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

/// The same kernel, of which these parameters may be one buffer.
std::shared_ptr<KernelAst> with_shared(const KernelAst& ast, uint32_t one, uint32_t other) {
  const Graph& from = ast.graph;
  auto made = std::make_shared<KernelAst>();
  Graph& g = made->graph;
  std::vector<Id> new_id(from.size(), kNoId), sources;
  Reachable reachable;
  for (Id id : reachable.from(from, std::span(&ast.sink, 1))) {
    const Node& node = from[id];
    if (node.op == Op::Param) {
      ParamInfo info = param_info(from, id);
      if (info.slot == one || info.slot == other) info.flags |= kParamShared;
      new_id[id] = make_param(g, node.dtype, info);
      continue;
    }
    sources.clear();
    for (Id source : from.sources(node)) sources.push_back(new_id[source]);
    const bool has_list = op_info(node.op).arg == ArgKind::List;
    new_id[id] =
        g.add(node.op, node.dtype, sources, has_list ? g.list(from.arg_list(id)) : node.arg);
  }
  made->sink = new_id[ast.sink];
  made->param_count = ast.param_count;
  made->is_exact = ast.is_exact;
  return made;
}

class InPlaceFinder {
 public:
  InPlaceFinder(Plan& plan, std::span<std::shared_ptr<KernelAst>> kernels, uint64_t& visits)
      : plan_(plan),
        kernels_(kernels),
        visits_(visits),
        touched_(touched(plan)),
        is_root_(plan.buffers.size()) {
    for (uint32_t root : plan.root_buffers) is_root_[root] = true;
    for (uint32_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].kind == Kind::Output && touched_[i].first)
        outputs_[form_of(plan.buffers[i])].emplace(*touched_[i].first, i);
  }

  /// The output that is written next after the last read, or at it.
  void find_output_for(uint32_t input) {
    const auto outputs = outputs_.find(form_of(plan_.buffers[input]));
    const Touched& reads = touched_[input];
    if (!reads.last || is_root_[input] || outputs == outputs_.end()) return;
    auto& free = outputs->second;
    for (auto at = free.lower_bound({*reads.last, 0}); at != free.end(); ++at)
      if (can_replace(at->second, input, *reads.last)) {
        plan_.in_place.push_back({at->second, input});
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
  std::span<std::shared_ptr<KernelAst>> kernels_;
  uint64_t& visits_;
  std::vector<Touched> touched_;
  std::vector<bool> is_root_;
  // That no input has yet: the steps that write them first, and their numbers.
  std::map<Form, std::set<std::pair<size_t, uint32_t>>> outputs_;
};

}  // namespace

void find_in_place(Plan& plan, std::span<std::shared_ptr<KernelAst>> kernels,
                   const Options& options, uint64_t& visits) {
  InPlaceFinder finder(plan, kernels, visits);
  for (uint32_t input : options.replaced) {
    const PlannedBuffer& buffer = plan.buffers[input];
    if (buffer.elem_count * size_of(buffer.dtype) >= kLeastBytes) finder.find_output_for(input);
  }
}

}  // namespace plugrad::schedule
