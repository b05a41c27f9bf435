// Simplifies conditions of memory accesses: implied clauses, choices that repeat a gate, constant
// gates.
//   before  (x < 6) & (x < 25) & (x + y < 40)            after  x < 6                    (y < 4)
//   before  where(g, max(load(a, i, g, 0), 0), 0)        after  max(load(a, i, g, 0), 0)
#include <algorithm>
#include <map>

#include "ir/fold.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

constexpr size_t kMostClauses = 16;
constexpr int kMostDepth = 6;

struct Clause {
  Id id;
  std::optional<Linear> sum;  // the clause is sum < 0; none: another condition
};

// The clauses of a conjunction; none if there are too many.
std::vector<Clause> clauses_of(const Graph& g, Id condition) {
  std::vector<Clause> out;
  std::vector<Id> todo{condition};
  while (!todo.empty()) {
    const Id id = todo.back();
    todo.pop_back();
    const Node& n = g[id];
    if (n.op == Op::And) {
      todo.push_back(n.src[1]);
      todo.push_back(n.src[0]);
      continue;
    }
    if (std::ranges::find(out, id, &Clause::id) != out.end()) continue;
    if (out.size() == kMostClauses) return {};
    Clause clause{id, std::nullopt};
    if (n.op == Op::CmpLt && g[n.src[0]].dtype == DType::Index) {
      const auto right = linear_of(g, n.src[1]);
      clause.sum = linear_of(g, n.src[0]);
      if (clause.sum && right) {
        for (const Term& t : right->terms) clause.sum->add(t.id, -t.factor);
        if (__builtin_sub_overflow(clause.sum->constant, right->constant, &clause.sum->constant))
          clause.sum.reset();
      } else {
        clause.sum.reset();
      }
    }
    out.push_back(std::move(clause));
  }
  return out;
}

// Intervals of terms under some clauses.
class Assumptions {
 public:
  explicit Assumptions(Bounds& bounds) : bounds_(bounds) {}

  // factor * term + constant < 0
  void assume(const Linear& sum) {
    if (sum.terms.size() != 1) return;
    const auto [id, factor] = sum.terms[0];
    int64_t negated;
    if (__builtin_sub_overflow(0, sum.constant, &negated) || negated == INT64_MIN) return;
    Interval now = of(id);
    if (factor > 0) now.hi = std::min(now.hi, floor_div(negated - 1, factor));
    if (factor < 0 && factor != INT64_MIN)
      now.lo = std::max(now.lo, floor_div(sum.constant, -factor) + 1);
    by_term_[id] = now;
  }
  // All values of the sum. An interval that becomes empty keeps its value: the caller detects
  // contradictions.
  Interval of(const Linear& sum) {
    Interval total{sum.constant, sum.constant};
    for (const Term& t : sum.terms) total = add(total, multiply(of(t.id), {t.factor, t.factor}));
    return total;
  }

 private:
  Interval of(Id id) {
    const auto at = by_term_.find(id);
    return at == by_term_.end() ? bounds_[id] : at->second;
  }
  Bounds& bounds_;
  std::map<Id, Interval> by_term_;
};

// Whether sum <= other with equal terms: then other < 0 implies sum < 0.
bool follows_from(const Linear& sum, const Linear& other) {
  return sum.terms == other.terms && sum.constant <= other.constant;
}

enum class Truth : uint8_t { Unknown, Always, Never };

// The value of the clause under the marked clauses.
Truth truth_under(const Clause& clause, std::span<const Clause> clauses,
                  const std::vector<bool>& holds, Bounds& bounds) {
  if (!clause.sum) return Truth::Unknown;
  Assumptions assumed(bounds);
  for (size_t i = 0; i < clauses.size(); ++i) {
    if (!holds[i] || !clauses[i].sum) continue;
    if (follows_from(*clause.sum, *clauses[i].sum)) return Truth::Always;
    assumed.assume(*clauses[i].sum);
  }
  const Interval values = assumed.of(*clause.sum);
  if (values.lo > values.hi) return Truth::Unknown;
  return values.hi < 0 ? Truth::Always : values.lo >= 0 ? Truth::Never : Truth::Unknown;
}

// Removes clauses of a conjunction that the others imply.
Id drop_implied(Graph& g, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  const std::vector<Clause> clauses = clauses_of(g, m.root);
  if (clauses.size() < 2) return kNoMatch;
  std::vector<bool> kept(clauses.size(), true);
  bool dropped = false;
  for (size_t i = clauses.size(); i-- > 0;) {
    kept[i] = false;
    const Truth truth = truth_under(clauses[i], clauses, kept, bounds);
    if (truth == Truth::Never) return g.constant(DType::Bool, int64_t{0});
    kept[i] = truth == Truth::Unknown;
    dropped = dropped || !kept[i];
  }
  if (!dropped) return kNoMatch;
  Id all = kNoId;
  for (size_t i = 0; i < clauses.size(); ++i)
    if (kept[i]) all = all == kNoId ? clauses[i].id : g.binary(Op::And, all, clauses[i].id);
  return all == kNoId ? g.constant(DType::Bool, int64_t{1}) : all;
}

bool implies(Graph& g, Id condition, Id consequence, Bounds& bounds) {
  if (condition == consequence) return true;
  const std::vector<Clause> given = clauses_of(g, condition), wanted = clauses_of(g, consequence);
  if (given.empty() || wanted.empty()) return false;
  const std::vector<bool> all(given.size(), true);
  return std::ranges::all_of(wanted, [&](const Clause& clause) {
    return std::ranges::find(given, clause.id, &Clause::id) != given.end() ||
           truth_under(clause, given, all, bounds) == Truth::Always;
  });
}

bool is_exact_op(Op op) {
  return is_alu(op) && !is_transcendental(op) && op != Op::Fma && op != Op::Bitcast;
}

// The constant value where `open` is false, because its loads are gated off there; kNoId for none.
Id value_when_closed(Graph& g, Id value, Id open, Bounds& bounds, int depth) {
  if (is_const(g, value)) return value;
  const auto sources = g.sources(value);
  if (g[value].op == Op::Load)
    return sources.size() == 4 && g[value].arg <= 1 && implies(g, sources[2], open, bounds)
               ? sources[3]
               : kNoId;
  if (!is_exact_op(g[value].op) || depth == 0) return kNoId;
  std::vector<Id> constants;
  for (Id s : sources) {
    constants.push_back(value_when_closed(g, s, open, bounds, depth - 1));
    if (constants.back() == kNoId || !is_const(g, constants.back())) return kNoId;
  }
  const Id result = add_folded(g, g[value].op, g[value].dtype, constants, g[value].arg);
  return is_const(g, result) ? result : kNoId;
}

// Removes a choice of the value that holds anyway.
Id drop_choice(Graph& g, const Match& m) {
  const Id value = m[y];
  if (is_const(g, value)) return value == m[c0] ? value : kNoMatch;
  const Id closed = value_when_closed(g, value, m[x], m.context<Algebra>().bounds, kMostDepth);
  const bool is_nan = is_float(g[value].dtype) && const_float(g, m[c0]) != const_float(g, m[c0]);
  return closed == m[c0] && !is_nan ? value : kNoMatch;
}

Id open_load(Graph& g, const Match& m) {
  return g.add(Op::Load, g[m.root].dtype, {m[x], m[y]}, g[m.root].arg);
}
// Several lanes are not one constant.
Id closed_load(Graph& g, const Match& m) {
  return g[m.root].arg <= 1 ? m[z] : kNoMatch;
}

// clang-format off
constexpr Rule kValidity[] = {
    rule("and-implied",     (x < y) & (z < w),              code<drop_implied>, when(is_index(x))),
    rule("and-implied-chain", (x & (y < z)) & (w < u), code<drop_implied>, when(is_index(y))),
    rule("and-implied-tree", (x & (y < z)) & (u & (v < w)), code<drop_implied>, when(is_index(y))),
    rule("where-as-loaded", where(x, y, c0),                code<drop_choice>),
    rule("load-open",       node(Op::Load, x, y, true, z),  code<open_load>),
    rule("load-closed",     node(Op::Load, x, y, false, z), code<closed_load>),
};
// clang-format on
}  // namespace

std::span<const Rule> validity_rules() {
  return kValidity;
}

}  // namespace plugrad
