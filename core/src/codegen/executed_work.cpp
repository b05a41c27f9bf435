// Counts what a kernel executes. Each node runs in the innermost loop that it depends on, as
// linearise places it; one that does not depend on the group runs in every group of its store for
// which the gate is open.
#include <algorithm>
#include <map>

#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/analysis/tensor_core.h"
#include "codegen/kernel.h"
#include "cost/work.h"
#include "ir/facts.h"
#include "ir/fold.h"
#include "symbolic/bounds.h"

namespace plugrad::codegen {
namespace {

// Combinations of outer loops for which the bounds of a loop are computed; of more, so many are
// taken at equal distances.
constexpr int64_t kMostCombinations = 256;

using RangeValues = std::map<Id, int64_t>;

/// The value of an index expression; nothing if it follows from other than ranges and constants.
std::optional<int64_t> index_at(const Graph& g, Id id, const RangeValues& values) {
  const Node& n = g[id];
  if (is_const(g, id)) return const_int(g, id);
  if (n.op == Op::Range) return values.at(id);
  int64_t s[3] = {};
  if (!is_alu(n.op) || n.src_count > 3) return std::nullopt;
  for (size_t i = 0; i < n.src_count; ++i) {
    const auto value = index_at(g, n.src[i], values);
    if (!value) return std::nullopt;
    s[i] = *value;
  }
  switch (n.op) {
    case Op::CmpLt:
      return s[0] < s[1];
    case Op::CmpEq:
      return s[0] == s[1];
    case Op::CmpNe:
      return s[0] != s[1];
    case Op::Where:
      return s[0] != 0 ? s[1] : s[2];
    default:
      return fold_int(n.op, DType::Index, s[0], s[1]);
  }
}

class WorkCounter {
 public:
  explicit WorkCounter(const Kernel& kernel)
      : kernel_(kernel), groups_(g_.size(), 0), shares_(g_.size(), 0), is_value_(g_.size(), 0) {}

  ExecutedWork count() {
    Reachable reachable;
    const std::vector<Id>& nodes = reachable.from(g_, std::span(&kernel_.sink, 1));
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) pass_on(*id);
    for (Id id : nodes) add(id);
    return {static_cast<int64_t>(std::min(operations_, 0x1p62)),
            static_cast<int64_t>(std::min(bytes_, 0x1p62))};
  }

 private:
  /// Tells the sources which groups compute the node, the share of them that does, and whether it is
  /// used as a value: indices and gates are not.
  void pass_on(Id id) {
    const Node& n = g_[id];
    if (n.op == Op::Store)
      for (Id r : open_.members(open_[id]))
        if (is_group(r)) groups_[id] |= open_.bit(r);
    const auto sources = g_.sources(n);
    for (size_t i = 0; i < sources.size(); ++i) {
      groups_[sources[i]] |= groups_[id];
      const double share = n.op == Op::Sink ? open_share(sources[i]) : shares_[id];
      shares_[sources[i]] = std::max(shares_[sources[i]], share);
      if (n.op == Op::Store ? i == 2 : n.op != Op::Load && is_value_[id] != 0)
        is_value_[sources[i]] = 1;
    }
  }

  bool is_group(Id id) const {
    return g_[id].op == Op::Range && range_kind(g_[id]) == AxisKind::Global;
  }

  /// The share of groups in which the store's gate is open. Other clauses gate the store alone, or
  /// all but one of the work-items that would compute the same.
  double open_share(Id store) {
    double share = 1;
    if (g_.sources(store).size() < 4) return share;
    for (Id clause : conjuncts(g_, g_.sources(store)[3])) {
      const std::vector<Id> ranges = open_.members(open_[clause]);
      if (std::ranges::all_of(ranges, [&](Id r) { return is_group(r); }))
        share *= mean(ranges, [&](const RangeValues& at) {
                   return index_at(g_, clause, at);
                 }).value_or(1);
    }
    return share;
  }

  void add(Id id) {
    const Node& n = g_[id];
    const RangeSet around = open_[id] | groups_[id];
    const double times = iterations(around) * shares_[id];
    if (n.op == Op::Load || n.op == Op::Store) {
      const Id memory = n.src_count > 3 ? g_.sources(n)[0] : n.src[0];
      if (g_[memory].op != Op::Param) return;
      const Id moved = n.op == Op::Load ? id : g_.sources(n)[2];
      bytes_ += times * lanes_[moved] * static_cast<double>(size_of(g_[memory].dtype));
    } else if (n.op == Op::Reduce) {
      add_terms(id, around);
    } else if (n.op == Op::Wmma) {
      const auto k =
          static_cast<double>(find_tensor_core(*kernel_.caps, static_cast<uint32_t>(n.arg))->k);
      operations_ += 2 * k * lanes_[id] * times;
    } else if (const uint32_t weight =
                   n.dtype == DType::Bool && is_value_[id] == 0 ? 0 : weights_[id];
               weight != 0) {
      operations_ += weight * lanes_[id] * times;
    }
  }

  // A tensor core adds its product itself.
  void add_terms(Id reduce, RangeSet around) {
    const ReduceParts parts = reduce_parts(g_, reduce);
    for (Id r : parts.ranges) around |= open_[r];
    for (Id value : parts.values)
      if (g_[value].op != Op::Wmma)
        operations_ += lanes_[value] * iterations(around) * shares_[reduce];
  }

  double iterations(RangeSet set) {
    double count = 1;
    for (Id r : open_.members(set))
      if (g_[r].op == Op::Range) count *= size_of_loop(r);
    return count;
  }

  double size_of_loop(Id range) {
    const auto [it, is_new] = sizes_.try_emplace(range, 0);
    if (is_new) it->second = mean_size(range);
    return it->second;
  }

  /// Iterations of the range, on average over those of the loops that its bounds depend on; its size
  /// if the bounds depend on data.
  double mean_size(Id range) {
    const Node& n = g_[range];
    const auto size = static_cast<double>(range_size(g_, range));
    if (!is_bounded(n)) return size;
    return mean(open_.members(open_[range] & ~open_.bit(range)),
                [&](const RangeValues& at) -> std::optional<int64_t> {
                  const auto begin = index_at(g_, n.src[1], at), end = index_at(g_, n.src[2], at);
                  if (!begin || !end) return std::nullopt;
                  return std::max<int64_t>(0, *end - *begin);
                })
        .value_or(size);
  }

  /// The mean of `value_at` over the values of the ranges; nothing if it gives none.
  template <class ValueAt>
  std::optional<double> mean(const std::vector<Id>& ranges, const ValueAt& value_at) const {
    int64_t combinations = 1;
    for (Id r : ranges)
      combinations = std::min(saturating_mul(combinations, range_size(g_, r)), int64_t{1} << 62);
    const int64_t step = std::max<int64_t>(1, combinations / kMostCombinations);
    double sum = 0;
    int64_t taken = 0;
    for (int64_t number = 0; number < combinations; number += step, ++taken) {
      RangeValues at;
      int64_t rest = number;
      for (Id r : ranges) {
        at[r] = rest % range_size(g_, r);
        rest /= range_size(g_, r);
      }
      const std::optional<int64_t> value = value_at(at);
      if (!value) return std::nullopt;
      sum += static_cast<double>(*value);
    }
    return taken > 0 ? sum / static_cast<double>(taken) : 0;
  }

  const Kernel& kernel_;
  const Graph& g_ = kernel_.graph;
  OpenRanges open_{g_};
  Lanes lanes_{g_};
  cost::CountedWeights weights_{g_};
  std::vector<RangeSet> groups_;   // by id: group ids of the stores that need it
  std::vector<double> shares_;     // by id: of these groups, those whose gate is open
  std::vector<uint8_t> is_value_;  // by id
  std::map<Id, double> sizes_;     // of loops
  double operations_ = 0, bytes_ = 0;
};

}  // namespace

ExecutedWork executed_work(const Kernel& kernel) {
  return WorkCounter(kernel).count();
}

}  // namespace plugrad::codegen
