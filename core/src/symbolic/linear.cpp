#include "symbolic/linear.h"

#include <algorithm>

#include "ir/fold.h"

namespace plugrad {
namespace {

// Adds factor * id to the sum; false if it gets too long or overflows.
bool collect(const Graph& g, Id root, Linear& sum) {
  std::vector<Term> todo{{root, 1}};
  size_t visits = 0;
  while (!todo.empty()) {
    if (++visits > 4 * kMaxTerms) return false;
    const Term t = todo.back();
    todo.pop_back();
    const Node& n = g[t.id];
    int64_t scaled;
    if (n.op == Op::Const) {
      if (__builtin_mul_overflow(const_int(g, t.id), t.factor, &scaled)) return false;
      if (__builtin_add_overflow(sum.constant, scaled, &sum.constant)) return false;
    } else if (n.op == Op::Add) {
      todo.push_back({n.src[1], t.factor});
      todo.push_back({n.src[0], t.factor});
    } else if (n.op == Op::Sub) {
      todo.push_back({n.src[1], -t.factor});
      todo.push_back({n.src[0], t.factor});
    } else if (n.op == Op::Neg) {
      todo.push_back({n.src[0], -t.factor});
    } else if (n.op == Op::Mul && is_const(g, n.src[1])) {
      if (__builtin_mul_overflow(const_int(g, n.src[1]), t.factor, &scaled)) return false;
      todo.push_back({n.src[0], scaled});
    } else {
      sum.add(t.id, t.factor);
      if (sum.terms.size() > kMaxTerms) return false;
    }
  }
  return true;
}

}  // namespace

void Linear::add(Id id, int64_t factor) {
  const auto at = std::ranges::lower_bound(terms, id, {}, &Term::id);
  if (at == terms.end() || at->id != id) {
    if (factor != 0) terms.insert(at, {id, factor});
    return;
  }
  at->factor =
      static_cast<int64_t>(static_cast<uint64_t>(at->factor) + static_cast<uint64_t>(factor));
  if (at->factor == 0) terms.erase(at);
}

int64_t Linear::factor_of(Id id) const {
  const auto at = std::ranges::lower_bound(terms, id, {}, &Term::id);
  return at != terms.end() && at->id == id ? at->factor : 0;
}

std::optional<Linear> linear_of(const Graph& g, Id id) {
  Linear sum;
  return collect(g, id, sum) ? std::optional(std::move(sum)) : std::nullopt;
}

Interval interval_of(const Linear& sum, Bounds& bounds) {
  Interval result{sum.constant, sum.constant};
  for (const Term& t : sum.terms)
    result = add(result, multiply(bounds[t.id], {t.factor, t.factor}));
  return result;
}

bool is_exact(const Graph& g, Id id, const Linear& sum, Bounds& bounds) {
  const DType dtype = g[id].dtype;
  if (dtype == DType::Index) return true;
  const Interval all = dtype_interval(dtype), values = interval_of(sum, bounds);
  return size_of(dtype) < 8 && all.lo <= values.lo && values.hi <= all.hi;
}

Id build(Graph& g, const Linear& sum, DType dtype) {
  Id result = kNoId;
  for (const Term& t : sum.terms) {
    const Id term =
        t.factor == 1 ? t.id : g.add(Op::Mul, dtype, {t.id, g.constant(dtype, t.factor)});
    result = result == kNoId ? term : g.add(Op::Add, dtype, {result, term});
  }
  if (result == kNoId) return g.constant(dtype, sum.constant);
  return sum.constant == 0 ? result
                           : g.add(Op::Add, dtype, {result, g.constant(dtype, sum.constant)});
}

Linear divided(const Linear& sum, int64_t divisor) {
  Linear result = sum;
  for (Term& t : result.terms) t.factor /= divisor;
  result.constant = floor_div(sum.constant, divisor);
  return result;
}

}  // namespace plugrad
