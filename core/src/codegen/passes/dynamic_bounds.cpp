// Ends loops at a count that is loaded from memory: elements beyond it are not summed or read.
//   before   reduce add (where %r < (load %n), f(%r), 0), %r
//            %r = range 4096
//   after    reduce add f(%r), %r
//            %r = range 4096 from 0 to min(load %n, 4096)
//   before   store %out[%i*4 + %u], f, bounded (%i*4 + %u, load %n)
//            %i = range 1024, %u = range 4 upcast
//   after    store %out[%i*4 + %u], f
//            %i = range 1024 from 0 to min(ceil((load %n) / 4), 1024)
// A tile that is partly beyond the count runs whole, and its terms of a sum keep their condition.
// Groups beyond the count exit. Afterwards the kernel has no Bounded node.
#include <algorithm>
#include <numeric>

#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "ir/fold.h"
#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

using Map = std::vector<std::pair<Id, Id>>;

/// The clause excess < 0, where `excess` is a sum of indices minus a count from memory.
struct Clause {
  Id condition;
  Linear excess;
  int64_t step;  // the counts are multiples of it
};

class DynamicBounds {
 public:
  explicit DynamicBounds(Kernel& kernel)
      : kernel_(kernel), g_(kernel.graph), open_(g_), bounds_(g_) {}

  /// `reductions` is the rule table that calls with_dynamic_end().
  void run(const RuleTable& reductions) {
    // A kernel that loads nothing may still have a hint with a constant count.
    if (nodes_of(g_, kernel_.sink, Op::Load).empty() &&
        nodes_of(g_, kernel_.sink, Op::Bounded).empty())
      return;
    kernel_.sink = rewrite(g_, kernel_.sink, reductions, {.context = this});
    stores();
    Map hints;
    for (Id hint : nodes_of(g_, kernel_.sink, Op::Bounded)) hints.emplace_back(hint, truth());
    replace(kernel_, hints);
    drop_open_gates();
  }

  // The reduction over ranges that end where its condition does.
  Id with_dynamic_end(Id reduce) {
    const ReduceParts parts = reduce_parts(g_, reduce);
    const Op op = parts.op;
    const Id condition = condition_of(parts), value = parts.values[0];
    if (condition == kNoId) return reduce;
    std::vector<Id> ranges = to_vector(parts.ranges);
    const std::vector<Id> own = ranges;
    std::ranges::sort(ranges, {}, [&](Id r) { return range_axis(g_[r]); });
    Map map;
    for (Id part : conjuncts(g_, condition)) {
      const auto clause = clause_of(part);
      if (!clause) continue;
      bool is_exact = false;
      for (size_t i = 0; i < ranges.size(); ++i) {
        if (range_kind(g_[ranges[i]]) != AxisKind::Reduce) continue;
        const Id range = own_range(own, ranges[i]);
        const auto is_given = [&](Id r) { return is_outside(r, own, range); };
        const Id end = end_of(*clause, range, is_given);
        if (end == kNoId) continue;
        ranges[i] = ended(ranges[i], substitute(g_, end, map));
        std::erase_if(map, [&](const auto& entry) { return entry.first == range; });
        map.emplace_back(range, ranges[i]);
        std::ranges::sort(map);
        is_exact = is_decided(*clause, range, is_given);
      }
      if (is_exact) map.emplace_back(part, truth());
      std::ranges::sort(map);
    }
    if (map.empty()) return reduce;
    const Id term = substitute(g_, value, map);
    return make_reduce(g_, op, {&term, 1}, ranges);
  }

 private:
  void drop_open_gates() {
    Graph& g = kernel_.graph;
    std::vector<Id> stores = to_vector(g.sources(kernel_.sink));
    for (Id& store : stores) {
      const auto parts = g.sources(store);
      if (parts.size() == 4 && is_const(g, parts[3]) && const_int(g, parts[3]) != 0)
        store = g.add(Op::Store, DType::Void, {parts[0], parts[1], parts[2]});
    }
    kernel_.sink = g.add(Op::Sink, DType::Void, stores);
    compact(kernel_);
  }

  Id truth() { return g_.constant(DType::Bool, int64_t{1}); }

  // A side of a comparison as a sum of indices, or as one opaque term.
  Linear side(Id id) {
    Linear opaque;
    opaque.add(id, 1);
    if (g_[id].dtype == DType::Index) return linear_of(g_, id).value_or(opaque);
    const auto sum = linear_of(g_, id);
    if (!sum || !is_exact(g_, id, *sum, bounds_)) return opaque;
    Linear places;
    places.constant = sum->constant;
    for (const Term& t : sum->terms) {
      const Node& n = g_[t.id];
      const bool is_place = n.op == Op::Cast && g_[n.src[0]].dtype == DType::Index;
      const auto below =
          is_place && keeps(n.src[0], n.dtype) ? linear_of(g_, n.src[0]) : std::nullopt;
      if (!below) {
        places.add(t.id, t.factor);
        continue;
      }
      for (const Term& u : below->terms) places.add(u.id, u.factor * t.factor);
      places.constant += below->constant * t.factor;
    }
    return places;
  }

  bool keeps(Id place, DType dtype) {
    const Interval values = bounds_[place], all = dtype_interval(dtype);
    return all.lo <= values.lo && values.hi <= all.hi;
  }

  bool is_data(Id id) { return !nodes_of(g_, id, Op::Load).empty(); }

  std::optional<Clause> clause_of(Id condition) {
    const Node& n = g_[condition];
    if (n.op != Op::CmpLt && n.op != Op::Bounded) return std::nullopt;
    if (g_[n.src[0]].dtype != DType::Index && !is_integer(g_[n.src[0]].dtype)) return std::nullopt;
    if (g_[n.src[0]].dtype == DType::U64) return std::nullopt;
    const Id right = n.src[1];
    Clause clause{condition, side(n.src[0]), 0};
    const Linear limit = side(right);
    for (const Term& t : limit.terms) clause.excess.add(t.id, -t.factor);
    clause.excess.constant -= limit.constant;
    for (const Term& t : clause.excess.terms) {
      if (!is_data(t.id)) continue;
      if (bounds_[t.id].lo == INT64_MIN || bounds_[t.id].hi == INT64_MAX)
        return std::nullopt;  // the ends could wrap
      clause.step = std::gcd(clause.step, t.factor);
    }
    return clause.step == 0 ? std::nullopt : std::optional(clause);
  }

  template <class IsGiven>
  bool all_given(Id id, const IsGiven& is_given) {
    return std::ranges::all_of(open_.members(open_[id]), is_given);
  }

  // The selected terms plus the minimum of all others; nothing if a minimum is unknown.
  template <class IsGiven>
  std::optional<Linear> least(const Clause& clause, Id range, const IsGiven& is_given) {
    Linear rest;
    rest.constant = clause.excess.constant;
    for (const Term& t : clause.excess.terms) {
      if (t.id == range) continue;
      if (all_given(t.id, is_given)) {
        rest.add(t.id, t.factor);
        continue;
      }
      const Interval values = bounds_[t.id];
      if (is_data(t.id) || values.lo == INT64_MIN || values.hi == INT64_MAX) return std::nullopt;
      rest.constant += t.factor * (t.factor > 0 ? values.lo : values.hi);
    }
    return rest;
  }

  Id built(const Linear& sum) {
    Id total = g_.index(sum.constant);
    for (const Term& t : sum.terms)
      total = g_.binary(Op::Add, total,
                        g_.binary(Op::Mul, g_.cast(t.id, DType::Index), g_.index(t.factor)));
    return total;
  }

  // floor(sum / by).
  Id quotient(const Linear& sum, int64_t by) {
    Linear whole, rest;
    whole.constant = floor_div(sum.constant, by);
    rest.constant = sum.constant - whole.constant * by;
    for (const Term& t : sum.terms)
      (t.factor % by == 0 ? whole : rest).add(t.id, t.factor % by == 0 ? t.factor / by : t.factor);
    const Interval values = interval_of(rest, bounds_);
    if (values.lo >= 0 && values.hi < by) return built(whole);
    return g_.binary(Op::Add, built(whole), g_.binary(Op::FloorDiv, built(rest), g_.index(by)));
  }

  // Whether the count is a multiple of a step larger than the range, so that either the whole range
  // is masked or none of it.
  bool is_part_of_step(const Clause& clause, Id range) {
    const int64_t factor = clause.excess.factor_of(range);
    int64_t span = 0;
    for (const Term& t : clause.excess.terms) {
      if (is_data(t.id) || t.factor % clause.step == 0) continue;
      const Interval values = bounds_[t.id];
      if (t.factor < 0 || values.lo != 0 || values.hi == INT64_MAX) return false;
      span += t.factor * values.hi;
    }
    return factor % clause.step != 0 && span + floor_rest(clause) < clause.step;
  }
  static int64_t floor_rest(const Clause& clause) {
    return clause.excess.constant - floor_div(clause.excess.constant, clause.step) * clause.step;
  }

  // Divide by the common factor so that stores differing only by column share a bound.
  static int64_t common_factor(const Linear& sum, int64_t factor) {
    for (const Term& t : sum.terms) factor = std::gcd(factor, t.factor);
    return factor;
  }

  // The end of the range by the clause; kNoId if the clause does not bound it.
  template <class IsGiven>
  Id end_of(const Clause& clause, Id range, const IsGiven& is_given) {
    const int64_t factor = clause.excess.factor_of(range);
    if (factor <= 0 || is_part_of_step(clause, range)) return kNoId;
    auto rest = least(clause, range, is_given);
    if (!rest) return kNoId;
    const int64_t common = common_factor(*rest, factor);
    for (Term& t : rest->terms) t.factor /= common;
    rest->constant = floor_div(rest->constant, common);
    const Id end = g_.unary(Op::Neg, quotient(*rest, factor / common)),
             size = g_.index(range_size(g_, range));
    return g_.binary(Op::Max, smaller(end, size), g_.index(0));
  }

  Id smaller(Id a, Id b) { return g_.where(g_.binary(Op::CmpLt, a, b), a, b); }

  Id ended(Id range, Id end) {
    const bool bounded = is_bounded(g_[range]);
    const Id begin = bounded ? g_[range].src[1] : g_.index(0);
    return bounded_range(g_, range, begin, bounded ? smaller(g_[range].src[2], end) : end);
  }

  // The condition of a sum's terms; kNoId for none.
  Id condition_of(const ReduceParts& parts) {
    if (parts.values.size() != 1) return kNoId;
    Id value = parts.values[0];
    while (g_[value].op == Op::Cast && is_float(g_[value].dtype) &&
           is_float(g_[g_[value].src[0]].dtype))
      value = g_[value].src[0];
    const Node n = g_[value];
    if (n.op != Op::Where || n.src[2] != reduce_identity(g_, parts.op, n.dtype)) return kNoId;
    return n.src[0];
  }

  // The reduction's original range of one that was given an end.
  Id own_range(std::span<const Id> own, Id range) {
    return *std::ranges::find(own, range_axis(g_[range]), [&](Id r) { return range_axis(g_[r]); });
  }

  template <class IsGiven>
  bool is_decided(const Clause& clause, Id range, const IsGiven& is_given) {
    return std::ranges::all_of(clause.excess.terms, [&](const Term& t) {
      return t.id == range || all_given(t.id, is_given);
    });
  }

  // Whether `r` is a loop around the range, not lanes and not work-items in lockstep.
  bool is_outside(Id r, std::span<const Id> own, Id range) {
    if (g_[r].op != Op::Range) return false;
    const AxisKind kind = range_kind(g_[r]);
    if (kind == AxisKind::Reduce) return range_axis(g_[r]) < range_axis(g_[range]);
    if (std::ranges::find(own, r) != own.end()) return false;
    return kind == AxisKind::Loop || kind == AxisKind::Global || kind == AxisKind::Block;
  }

  std::vector<Clause> hints_of(Id store) {
    std::vector<Clause> out;
    if (g_.sources(store).size() < 4) return out;
    for (Id part : conjuncts(g_, g_.sources(store)[3]))
      if (g_[part].op == Op::Bounded)
        if (auto clause = clause_of(part)) out.push_back(std::move(*clause));
    return out;
  }

  // An output loop ends where the bounds of all its stores end.
  Id end_for_all(std::span<const Id> stores, Id range) {
    Id common = kNoId;
    for (Id store : stores) {
      if (!open_.depends(store, range)) continue;
      Id own = kNoId;
      for (const Clause& clause : hints_of(store)) {
        const Id end = end_of(clause, range, [&](Id r) {
          if (g_[r].op != Op::Range) return false;
          const AxisKind kind = range_kind(g_[r]);
          return kind == AxisKind::Global ||
                 (kind == AxisKind::Loop && range_axis(g_[r]) < range_axis(g_[range]));
        });
        if (end != kNoId) own = own == kNoId ? end : smaller(own, end);
      }
      if (own == kNoId || (common != kNoId && common != own)) return kNoId;
      common = own;
    }
    return common;
  }

  void stores() {
    std::vector<Id> stores = to_vector(g_.sources(kernel_.sink));
    if (std::ranges::all_of(stores, [&](Id s) { return hints_of(s).empty(); })) return;
    Map map;
    for (Id axis : kernel_.axes) {
      if (range_kind(g_[axis]) != AxisKind::Loop) continue;
      const Id end = end_for_all(stores, axis);
      if (end != kNoId) map.emplace_back(axis, ended(axis, substitute(g_, end, map)));
      std::ranges::sort(map);
    }
    for (Id& store : stores) store = with_groups(store);
    kernel_.sink = substitute(g_, g_.add(Op::Sink, DType::Void, stores), map);
  }

  // Groups beyond the count store nothing.
  Id with_groups(Id store) {
    const auto is_group = [&](Id r) {
      return g_[r].op == Op::Range && range_kind(g_[r]) == AxisKind::Global;
    };
    for (const Clause& clause : hints_of(store)) {
      const auto rest = least(clause, kNoId, is_group);
      if (!rest) continue;
      const Id behind = quotient(*rest, clause.step);
      store = with_gate(g_, store, g_.binary(Op::CmpLt, behind, g_.index(0)));
    }
    return store;
  }

  Kernel& kernel_;
  Graph& g_;
  OpenRanges open_;
  Bounds bounds_;
};

using namespace rules;

Id count_reduce(Graph&, const Match& m) {
  return m.context<DynamicBounds>().with_dynamic_end(m.root);
}

constexpr Rule kDynamicBounds[] = {
    rule("count-loop", any_of(x, Op::Reduce), code<count_reduce>),
};

}  // namespace

std::span<const Rule> dynamic_bound_rules() {
  return kDynamicBounds;
}

void set_dynamic_bounds(Kernel& kernel) {
  static const RuleTable table(kDynamicBounds);
  DynamicBounds(kernel).run(table);
}

}  // namespace plugrad::codegen
