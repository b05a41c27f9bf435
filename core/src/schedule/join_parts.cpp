// Turns a chain of Wheres that selects parts by ranges of an axis, as cat and slice assignment
// record it, into one computation for all parts with the same expression.
//   before   where(i < 2, where(i < 1, pad(f(x[0])), pad(f(x[1]))), pad(f(x[2])))
//   after    f(x)
// Constants in which the parts differ become a Buffer of the plan. Values do not change. Not a
// local rewrite: all parts of a chain are compared.
#include <algorithm>
#include <optional>
#include <set>

#include "schedule/simplify_tensors.h"
#include "schedule/stack_parts.h"

namespace plugrad::schedule {
namespace {

// Chains of at most so many parts stay: one kernel selects among them.
constexpr size_t kFewParts = 16;
// Average parts of one computation below which joining does not pay.
constexpr size_t kFewAlike = 4;
constexpr int kDeepestCondition = 8;

struct Span {
  int64_t begin, end;
  auto operator<=>(const Span&) const = default;
};

/// A Where that selects source 1 for the indices `inside` of an axis, and source 2 elsewhere.
struct Link {
  size_t axis;
  Span inside;
};

struct Part {
  Span span;
  Id value;
};

/// Disjoint spans of an axis, in order, that no part covers yet.
class FreeSpans {
 public:
  explicit FreeSpans(int64_t size) { free_.insert({0, size}); }

  template <class Use>
  void take(Span wanted, const Use& use) {
    auto at = free_.lower_bound({wanted.begin, wanted.begin});
    if (at != free_.begin() && std::prev(at)->end > wanted.begin) --at;
    while (at != free_.end() && at->begin < wanted.end) {
      const Span old = *at;
      at = free_.erase(at);
      const Span taken{std::max(old.begin, wanted.begin), std::min(old.end, wanted.end)};
      if (old.begin < taken.begin) free_.insert({old.begin, taken.begin});
      if (taken.end < old.end) at = free_.insert({taken.end, old.end}).first;
      if (taken.begin < taken.end) use(taken);
    }
  }

 private:
  std::set<Span> free_;
};

class Joiner {
 public:
  Joiner(SchedulerState& state, TensorBuilder& build)
      : state_(state), g_(state.graph), build_(build), stacker_(state, build) {}

  std::vector<Id> run() {
    const uint32_t size = g_.size();
    new_id_.resize(size);
    for (Id id = 0; id < size; ++id) new_id_[id] = id;
    Reachable reachable;
    const std::vector<Id> nodes = reachable.from(g_, state_.roots);
    if (count_wheres(nodes) <= kFewParts) return new_id_;
    find_chains(nodes);
    if (chains_.empty()) return new_id_;
    Devices devices(g_);
    for (Id id : nodes) rebuild(id, devices);
    for (Id root : state_.roots) keep_root(root);
    return new_id_;
  }

 private:
  size_t count_wheres(const std::vector<Id>& nodes) const {
    return static_cast<size_t>(
        std::ranges::count_if(nodes, [&](Id id) { return g_[id].op == Op::Where; }));
  }

  // Finding.

  void find_chains(const std::vector<Id>& nodes) {
    readers_.assign(g_.size(), 0);
    for (Id id : nodes)
      for (Id s : g_.sources(id)) ++readers_[s];
    for (Id root : state_.roots) ++readers_[root];
    inner_.assign(g_.size(), 0);
    for (size_t i = nodes.size(); i-- > 0;)
      if (inner_[nodes[i]] == 0) find_chain(nodes[i]);
  }

  void find_chain(Id top) {
    const std::optional<Link> first = link_of(top);
    if (!first) return;
    std::vector<Id> found;
    for (Id at = top; at != kNoId; at = next_of(at, first->axis)) found.push_back(at);
    for (Id at : found) inner_[at] = 1;
    if (found.size() > kFewParts) chains_[top] = {first->axis, std::move(found)};
  }

  /// The source of a Where that continues the chain.
  Id next_of(Id where, size_t axis) const {
    for (size_t s : {1, 2}) {
      const Id below = g_[where].src[s];
      if (readers_[below] != 1 || is_requested(below)) continue;
      const std::optional<Link> link = link_of(below);
      if (link && link->axis == axis) return below;
    }
    return kNoId;
  }

  bool is_requested(Id id) const {
    return id < state_.requested.size() && state_.requested[id] != 0;
  }

  std::optional<Link> link_of(Id id) const {
    if (g_[id].op != Op::Where) return std::nullopt;
    ++state_.visits;
    Id condition = g_[id].src[0];
    if (g_[condition].op == Op::Expand) condition = g_[condition].src[0];
    const auto shape = state_.shapes[condition], whole = state_.shapes[id];
    if (shape.size() != whole.size()) return std::nullopt;
    std::optional<size_t> axis;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      if (axis) return std::nullopt;
      axis = i;
    }
    if (!axis || shape[*axis] != whole[*axis]) return std::nullopt;
    const std::optional<Span> inside = true_in(condition, shape[*axis], 0);
    if (!inside) return std::nullopt;
    return Link{*axis, *inside};
  }

  bool is_counter(Id id, int64_t size) const {
    while (g_[id].op == Op::Reshape) id = g_[id].src[0];
    return g_[id].op == Op::Iota && static_cast<int64_t>(g_[id].arg) == size;
  }

  /// The indices of an axis for which the condition holds; none unless they are one span.
  std::optional<Span> true_in(Id id, int64_t size, int depth) const {
    while (g_[id].op == Op::Reshape) id = g_[id].src[0];
    const Node& n = g_[id];
    if (n.op == Op::And || n.op == Op::Or) {
      if (depth == kDeepestCondition) return std::nullopt;
      const auto a = true_in(n.src[0], size, depth + 1), b = true_in(n.src[1], size, depth + 1);
      if (!a || !b) return std::nullopt;
      return n.op == Op::And ? both(*a, *b) : either(*a, *b);
    }
    if (n.op != Op::CmpLt && n.op != Op::CmpEq) return std::nullopt;
    const bool counts_left = is_counter(n.src[0], size);
    const Id other = n.src[counts_left ? 1 : 0], counter = n.src[counts_left ? 0 : 1];
    if (!is_counter(counter, size) || !is_const(g_, other)) return std::nullopt;
    const int64_t index = std::clamp<int64_t>(const_int(g_, other), -1, size);
    Span span{index, index + 1};
    if (n.op == Op::CmpLt) span = counts_left ? Span{0, index} : Span{index + 1, size};
    return both(span, {0, size});
  }

  static Span both(Span a, Span b) {
    const Span span{std::max(a.begin, b.begin), std::min(a.end, b.end)};
    return span.begin < span.end ? span : Span{0, 0};
  }

  static std::optional<Span> either(Span a, Span b) {
    if (a.begin == a.end) return b;
    if (b.begin == b.end) return a;
    if (a.end < b.begin || b.end < a.begin) return std::nullopt;
    return Span{std::min(a.begin, b.begin), std::max(a.end, b.end)};
  }

  // Rewriting.

  void rebuild(Id id, Devices& devices) {
    std::vector<Id> sources(g_.sources(id).begin(), g_.sources(id).end());
    bool changed = false;
    for (Id& s : sources) {
      changed = changed || new_id_[s] != s;
      s = new_id_[s];
    }
    if (const auto chain = chains_.find(id); chain != chains_.end()) {
      state_.joined_on = devices[id] == 0 ? state_.default_device : devices[id];
      new_id_[id] = joined(chain->second);
    }
    if (new_id_[id] == id && changed) new_id_[id] = g_.with_sources(id, sources);
    if (!is_requested(id) || new_id_[id] == id) return;
    state_.requested.resize(std::max<size_t>(state_.requested.size(), g_.size()), 0);
    state_.requested[new_id_[id]] = 1;
  }

  /// Joined rows of a buffer are the buffer itself: the root becomes a copy of it.
  void keep_root(Id root) {
    if (new_id_[root] == root) return;
    Id base = new_id_[root];
    while (g_[base].op == Op::Reshape) base = g_[base].src[0];
    if (g_[base].op == Op::Buffer)
      new_id_[root] = g_.add(Op::Contiguous, g_[base].dtype, {new_id_[root]});
  }

  struct Chain {
    size_t axis;
    std::vector<Id> wheres;
  };

  Id joined(const Chain& chain) {
    std::vector<Part> parts = parts_of(chain);
    std::ranges::sort(parts, {}, &Part::span);
    const std::vector<Part> runs = joined_runs(parts, chain.axis);
    const Id top = chain.wheres[0];
    if (runs.size() * kFewAlike > parts.size()) return top;
    return runs.size() == 1 ? runs[0].value : chain_of(runs, chain.axis, build_.shape(top));
  }

  std::vector<Part> parts_of(const Chain& chain) {
    std::vector<Part> parts;
    FreeSpans free(state_.shapes[chain.wheres[0]][chain.axis]);
    const auto give = [&](Span wanted, Id value) {
      free.take(wanted,
                [&](Span taken) { parts.push_back({taken, cut(new_id_[value], chain, taken)}); });
    };
    const int64_t size = state_.shapes[chain.wheres[0]][chain.axis];
    for (size_t i = 0; i < chain.wheres.size(); ++i) {
      const Node n = g_[chain.wheres[i]];
      const Span inside = link_of(chain.wheres[i])->inside;
      const bool is_last = i + 1 == chain.wheres.size();
      const bool goes_on_inside = !is_last && n.src[1] == chain.wheres[i + 1];
      if (!goes_on_inside) give(inside, n.src[1]);
      if (!is_last && !goes_on_inside) continue;
      give({0, inside.begin}, n.src[2]);
      give({inside.end, size}, n.src[2]);
    }
    return parts;
  }

  Id cut(Id value, const Chain& chain, Span span) {
    Dims shape = build_.shape(chain.wheres[0]), bounds;
    shape[chain.axis] = span.end - span.begin;
    if (state_.shapes[value].empty()) return build_.filled(value, shape);
    if (g_[value].op == Op::Expand && state_.shapes[g_[value].src[0]][chain.axis] == 1)
      return build_.expand(g_[value].src[0], shape);
    if (g_[value].op == Op::Cast) {
      const Node cast = g_[value];
      const Id below = cut(cast.src[0], chain, span);
      return build_.elementwise(cast, std::span(&below, 1));
    }
    for (size_t i = 0; i < shape.size(); ++i)
      bounds.insert(bounds.end(),
                    {i == chain.axis ? span.begin : 0, i == chain.axis ? span.end : shape[i]});
    return build_.shrink(value, bounds);
  }

  /// Joins adjacent parts with the same expression.
  std::vector<Part> joined_runs(const std::vector<Part>& parts, size_t axis) {
    std::vector<Part> runs;
    for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
      const uint64_t signature = stacker_.signature(parts[begin].value);
      std::vector<Id> values;
      for (; end < parts.size() && stacker_.signature(parts[end].value) == signature; ++end)
        values.push_back(parts[end].value);
      const Id run = values.size() == 1 ? values[0] : side_by_side(values, axis);
      if (run == kNoId)
        runs.insert(runs.end(), parts.begin() + static_cast<ptrdiff_t>(begin),
                    parts.begin() + static_cast<ptrdiff_t>(end));
      else
        runs.push_back({{parts[begin].span.begin, parts[end - 1].span.end}, run});
    }
    return runs;
  }

  Id side_by_side(const std::vector<Id>& values, size_t axis) {
    const Id stacked = stacker_.stack(values);
    if (stacked == kNoId) return kNoId;
    Dims shape = build_.shape(values[0]), order;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i == axis) order.push_back(0);
      order.push_back(static_cast<int64_t>(i) + 1);
    }
    shape[axis] *= static_cast<int64_t>(values.size());
    return build_.reshape(build_.permute(stacked, order), shape);
  }

  Id chain_of(const std::vector<Part>& runs, size_t axis, const Dims& shape) {
    Dims row(shape.size(), 1);
    row[axis] = shape[axis];
    const Id counter =
        build_.reshape(g_.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(shape[axis])), row);
    Id all = kNoId;
    for (const Part& run : runs) {
      Dims pads(2 * shape.size(), 0);
      pads[2 * axis] = run.span.begin;
      pads[2 * axis + 1] = shape[axis] - run.span.end;
      const Id part = build_.pad(run.value, pads);
      const Id before = g_.binary(Op::CmpLt, counter, g_.constant(DType::I32, run.span.begin));
      all = all == kNoId ? part : g_.where(build_.expand(before, shape), all, part);
    }
    return all;
  }

  SchedulerState& state_;
  Graph& g_;
  TensorBuilder& build_;
  PartStacker stacker_;
  std::vector<Id> new_id_;
  std::vector<uint32_t> readers_;
  std::vector<uint8_t> inner_;  // whether a chain contains the node
  std::map<Id, Chain> chains_;  // by the outermost Where
};

}  // namespace

std::vector<Id> join_parts(SchedulerState& state, TensorBuilder& build) {
  return Joiner(state, build).run();
}

}  // namespace plugrad::schedule
