// Marks values that a kernel computes along a reduce loop and again along other loops by Keep
// (ir/kernel_ast.h): softmax's exponentials are summed and then divided by the sum. Lowering made
// an instance for each; codegen computes marked values once into a local buffer (compute_at).
#include <algorithm>
#include <map>

#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "schedule/fusion/cost.h"
#include "schedule/lower/lower_kernel.h"
#include "symbolic/symbolic.h"

namespace plugrad::schedule {
namespace {

constexpr uint32_t kWorthABuffer = 12;   // instructions for one element: the cost of buffering it
constexpr uint32_t kMostInstances = 32;  // of a node; instances are compared pairwise

// By the instructions for each element; a reduction is always worth a buffer.
bool is_worth_a_buffer(const Graph& g, RangeSets& open, Id value) {
  uint32_t instructions = 0;
  Reachable reachable;
  for (Id id : reachable.from(g, std::span(&value, 1))) {
    if (g[id].dtype == DType::Index || !std::ranges::includes(open[id], open[value])) continue;
    if (g[id].op == Op::Reduce) return true;
    instructions += instructions_of(g, g[id]);
  }
  return instructions >= kWorthABuffer;
}

// The ranges in the indices, in the order of occurrence.
std::vector<Id> ranges_of(const Graph& g, std::span<const int64_t> index) {
  std::vector<Id> found;
  Reachable reachable;
  for (int64_t i : index) {
    const auto root = static_cast<Id>(i);
    for (Id id : reachable.from(g, std::span(&root, 1)))
      if (g[id].op == Op::Range && std::ranges::find(found, id) == found.end()) found.push_back(id);
  }
  return found;
}

// Maps the loops of `from` that `to` replaces by loops of the same sizes; empty if they do not
// correspond.
std::vector<std::pair<Id, Id>> other_loops(const Graph& g, std::span<const int64_t> from,
                                           std::span<const int64_t> to) {
  std::vector<Id> a = ranges_of(g, from), b = ranges_of(g, to);
  const std::vector<Id> all_of_a = a;
  std::erase_if(a, [&](Id r) { return std::ranges::find(b, r) != b.end(); });
  std::erase_if(b, [&](Id r) { return std::ranges::find(all_of_a, r) != all_of_a.end(); });
  std::vector<std::pair<Id, Id>> out;
  for (size_t i = 0; a.size() == b.size() && i < a.size(); ++i) {
    if (range_size(g, a[i]) != range_size(g, b[i])) return {};
    out.emplace_back(a[i], b[i]);
  }
  std::ranges::sort(out);
  return out;
}

Id with_marks(Graph& g, Id sink, const std::map<Id, KeepMark>& marks) {
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&sink, 1));
  std::vector<Id> now(sink + 1, kNoId), sources;
  for (Id id : nodes) {
    sources.clear();
    for (Id s : g.sources(id)) sources.push_back(now[s]);
    now[id] = g.with_sources(id, sources);
    if (const auto mark = marks.find(id); mark != marks.end())
      now[id] = make_keep(g, now[id], mark->second);
  }
  return now[sink];
}

}  // namespace

/// Whether the two instances of a node have the same value up to a substitution of loops.
bool KernelLowering::differ_in_loops(const Instance& a, const Instance& b) {
  const std::vector<Id> from = index_of(a.index), to = index_of(b.index);
  const auto map = other_loops(*graph_, graph_->list(a.index), graph_->list(b.index));
  if (map.empty()) return false;
  const auto moved = [&](Id id) { return simplify_(substitute(*graph_, id, map)); };
  if ((a.gate == kNoId) != (b.gate == kNoId)) return false;
  if (a.gate != kNoId && moved(a.gate) != simplify_(b.gate)) return false;
  return std::ranges::equal(from, to, {}, moved);
}

/// Whether all uses of the node in this kernel are in buffered nodes.
bool KernelLowering::is_part_of_buffered(Id node, const std::vector<Id>& buffered) const {
  bool is_read = false;
  for (Id by : state_.consumers.of(node)) {
    ++state_.visits;
    const bool is_read_from_memory = output(by) == nullptr && is_leaf(by);
    if (first_[by] == kNone || is_read_from_memory) continue;
    is_read = true;
    if (instances_[first_[by]].number != instances_[first_[node]].number ||
        !std::ranges::binary_search(buffered, by, std::greater{}))
      return false;
  }
  return is_read;
}

/// The node's values, grouped by equality up to a substitution of loops.
std::vector<std::vector<Id>> KernelLowering::values_of(Id node) {
  std::vector<std::vector<Id>> groups;
  std::vector<uint32_t> first;  // of each group, one instance
  for (uint32_t at = first_[node]; at != kNone; at = instances_[at].next) {
    const Id value = instances_[at].value;
    if (value == kNoId) continue;
    size_t group = 0;
    while (group < first.size() && instances_[first[group]].value != value &&
           !differ_in_loops(instances_[first[group]], instances_[at]))
      ++group;
    if (group == first.size()) {
      first.push_back(at);
      groups.emplace_back();
    }
    if (std::ranges::find(groups[group], value) == groups[group].end())
      groups[group].push_back(value);
  }
  return groups;
}

/// Whether a kernel with blocked rows makes rows of the value: it has sums of its own along a
/// reduce loop, and does not depend on the output's columns.
bool KernelLowering::are_rows_of_operand(Id value, RangeSets& open) {
  const Graph& g = *graph_;
  if (state_.in_blocks[outputs_[0].node] == 0) return false;
  const auto is_column = [&](Id loop) { return !open.depends(value, loop); };
  if (std::ranges::none_of(ranges_, is_column)) return false;
  Reachable reachable;
  return std::ranges::any_of(reachable.from(g, std::span(&value, 1)), [&](Id id) {
    const auto is_along = [&](Id r) {
      return range_kind(g[r]) == AxisKind::Reduce && open.depends(value, r);
    };
    return g[id].op == Op::Reduce && std::ranges::any_of(open[id], is_along);
  });
}

/// Returns the kernel with marks. Consumers come first: of values read by the same instances, the
/// one nearest to the output is buffered.
Id KernelLowering::mark_local_buffers(Id sink) {
  if (outputs_.size() != 1) return sink;
  Graph& g = *graph_;
  RangeSets open(g);
  std::vector<Id> buffered;      // descending: buffered nodes and their parts
  std::map<Id, KeepMark> marks;  // by value
  int64_t number = 0;
  std::ranges::sort(touched_, std::greater{});
  for (Id node : touched_) {
    const Op op = state_.graph[node].op;
    if (is_leaf(node) || instances_[first_[node]].number > kMostInstances) continue;
    if (!buffered.empty() && is_part_of_buffered(node, buffered)) {
      buffered.push_back(node);
      continue;
    }
    if (!is_alu(op) && op != Op::Reduce) continue;
    for (const std::vector<Id>& values : values_of(node)) {
      const bool in_blocks = values.size() == 1 && are_rows_of_operand(values[0], open);
      if (values.size() == 1 && !in_blocks) continue;
      if (!is_worth_a_buffer(g, open, values[0])) continue;
      for (Id value : values) marks.emplace(value, KeepMark{number, in_blocks});
      ++number;
      if (buffered.empty() || buffered.back() != node) buffered.push_back(node);
    }
  }
  return marks.empty() ? sink : with_marks(g, sink, marks);
}

}  // namespace plugrad::schedule
