// Turns comparisons of any integer dtype into bounds of a range, in Index arithmetic.
#include "ir/fold.h"
#include "symbolic/reduction.h"

namespace plugrad {
namespace {

// Adds factor * (value of id) in unbounded integers; false if the value has no Index form.
bool add_lifted(Graph& g, Id id, int64_t factor, Algebra& algebra, Linear& sum) {
  const DType dtype = g[id].dtype;
  auto inner = linear_of(g, id);
  if (dtype == DType::Index) {
    if (!inner) return false;
    for (const Term& t : inner->terms) sum.add(t.id, factor * t.factor);
    sum.constant += factor * inner->constant;
    return true;
  }
  if (!is_integer(dtype) || (dtype == DType::U64 && algebra.bounds[id].hi == INT64_MAX))
    return false;
  if (!inner || !is_exact(g, id, *inner, algebra.bounds)) inner = Linear{{{id, 1}}, 0};
  sum.constant += factor * inner->constant;
  for (const Term& t : inner->terms) {
    const Node& n = g[t.id];
    const bool from_index = n.op == Op::Cast && g[n.src[0]].dtype == DType::Index &&
                            keeps_values(g, n.src[0], dtype, algebra.bounds);
    if (from_index) {
      if (!add_lifted(g, n.src[0], factor * t.factor, algebra, sum)) return false;
    } else {
      sum.add(g.cast(t.id, DType::Index), factor * t.factor);
    }
  }
  return true;
}

// range * factor + rest < 0
void add_inequality(Graph& g, int64_t factor, Linear rest, RangeCondition& result) {
  const int64_t size = std::abs(factor);
  Id quotient = build(g, rest, DType::Index);
  if (size != 1) quotient = add_folded(g, Op::FloorDiv, DType::Index, {quotient, g.index(size)});
  if (factor > 0) {
    result.uppers.push_back(add_folded(g, Op::Mul, DType::Index, {quotient, g.index(-1)}));
  } else {
    result.lowers.push_back(add_folded(g, Op::Add, DType::Index, {quotient, g.index(1)}));
  }
}

Linear negated_sum(Linear sum) {
  for (Term& t : sum.terms) t.factor = -t.factor;
  sum.constant = -sum.constant;
  return sum;
}

// Adds one comparison; false if it does not bound the range.
bool add_comparison(Graph& g, Id clause, bool negated, Id range, Algebra& algebra,
                    RangeCondition& result) {
  const Node n = g[clause];
  if (!is_compare(n.op)) return false;
  Linear sum;  // src0 - src1
  if (!add_lifted(g, n.src[0], 1, algebra, sum) || !add_lifted(g, n.src[1], -1, algebra, sum))
    return false;
  const int64_t factor = sum.factor_of(range);
  if (factor == 0) return false;
  sum.add(range, -factor);
  for (const Term& t : sum.terms)
    if (algebra.ranges.depends(t.id, range)) return false;
  if (n.op == Op::CmpLt) {
    if (!negated) {
      add_inequality(g, factor, std::move(sum), result);
    } else {  // not s < 0 is -s - 1 < 0
      sum = negated_sum(std::move(sum));
      sum.constant -= 1;
      add_inequality(g, -factor, std::move(sum), result);
    }
    return true;
  }
  if ((n.op == Op::CmpEq) == negated || (factor != 1 && factor != -1) || result.equal) return false;
  result.equal = build(g, factor == 1 ? negated_sum(std::move(sum)) : std::move(sum), DType::Index);
  return true;
}

}  // namespace

bool condition_on(Graph& g, Id condition, bool negated, Id range, Algebra& algebra,
                  RangeCondition& result) {
  if (negated) return add_comparison(g, condition, true, range, algebra, result);
  std::vector<Id> todo{condition};
  while (!todo.empty()) {
    const Id clause = todo.back();
    todo.pop_back();
    if (g[clause].op == Op::And) {
      todo.push_back(g[clause].src[1]);
      todo.push_back(g[clause].src[0]);
    } else if (!add_comparison(g, clause, false, range, algebra, result)) {
      result.other.push_back(clause);
    }
  }
  return true;
}

}  // namespace plugrad
