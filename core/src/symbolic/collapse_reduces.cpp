// Turns sums over one range into closed forms without a loop.
//   before  reduce[add](where(r == idx, load(w, r*64 + j), -0), r)    idx: a loaded number, r < 1000
//   after   load(w, idx*64 + j, gate: 0 <= idx < 1000, alt: 0)
#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/facts.h"
#include "ir/fold.h"
#include "ir/range.h"
#include "symbolic/reduction.h"

namespace plugrad {
namespace {
using namespace rules;

constexpr int kMaxDepth = 8;

bool is_zero(const Graph& g, Id id) {
  return is_const(g, id) && const_float(g, id) == 0;
}

// Whether 1, 2, … count times the constant are representable: then all partial sums are exact.
bool multiples_are_exact(const Graph& g, Id id, int64_t count) {
  if (!is_const(g, id)) return false;
  const double value = const_float(g, id);
  if (!std::isfinite(value) || count < 0) return false;
  int exponent;
  const double mantissa = std::frexp(value, &exponent);
  const int bits = g[id].dtype == DType::F64 ? 53 : g[id].dtype == DType::F32 ? 24 : 8;
  // The trailing bits of the mantissa times count must fit the significand.
  double whole = std::fabs(mantissa);
  int used = 0;
  while (whole != std::floor(whole)) {
    whole *= 2;
    ++used;
  }
  return used <= bits && whole * static_cast<double>(count) <= std::ldexp(1.0, bits) &&
         exponent < 64 && exponent > -64;
}

bool is_minus_zero(const Graph& g, Id id) {
  return is_float(g[id].dtype) && is_const(g, id) && g[id].arg == std::bit_cast<uint64_t>(-0.0);
}

// A float sum with a term of +0 makes +0 of a selected -0. These values are never -0.
bool is_never_minus_zero(const Graph& g, Id id) {
  const Node& n = g[id];
  if (!is_float(n.dtype)) return true;
  if (n.op == Op::Const) return n.arg != std::bit_cast<uint64_t>(-0.0);
  return n.op == Op::Exp2 || n.op == Op::Exp || (n.op == Op::Cast && !is_float(g[n.src[0]].dtype));
}

class Sum {
 public:
  Sum(Graph& g, Id range, Algebra& algebra)
      : g_(g), range_(range), size_(range_size(g, range)), algebra_(algebra) {}

  std::optional<Id> of(Id value, int depth = 0) {
    if (!moves(value)) return times(value);
    if (depth == kMaxDepth) return std::nullopt;
    const Node n = g_[value];
    const bool integer = is_integer(n.dtype);
    switch (n.op) {
      case Op::Add:
        return integer ? both(n, depth) : std::nullopt;
      case Op::Mul:
        return integer ? factored(n, depth) : std::nullopt;
      case Op::Where:
        return of_where(n, depth);
      case Op::Cast:
        return of_cast(n, depth);
      case Op::Range:
        if (value != range_ || size_ > (int64_t{1} << 31)) return std::nullopt;
        return g_.index(size_ * (size_ - 1) / 2);
      default:
        return std::nullopt;
    }
  }

 private:
  bool moves(Id id) { return algebra_.ranges.depends(id, range_); }
  Id add(Op op, Id a, Id b) {
    return add_folded(g_, op, is_compare(op) ? DType::Bool : g_[a].dtype, {a, b});
  }
  Id all(Id a, Id b) { return add(Op::And, a, b); }
  Id truth() { return g_.constant(DType::Bool, int64_t{1}); }

  std::optional<Id> times(Id value) {
    const DType dtype = g_[value].dtype;
    if (size_ == 1) return value;
    if (is_float(dtype) && !algebra_.fast && !multiples_are_exact(g_, value, size_))
      return std::nullopt;
    if (dtype == DType::Bool) return std::nullopt;
    return add(Op::Mul, value, g_.constant(dtype, size_));
  }

  std::optional<Id> both(const Node& n, int depth) {
    const auto a = of(n.src[0], depth + 1);
    const auto b = a ? of(n.src[1], depth + 1) : std::nullopt;
    return b ? std::optional(add(Op::Add, *a, *b)) : std::nullopt;
  }

  std::optional<Id> factored(const Node& n, int depth) {
    const bool left = moves(n.src[0]), right = moves(n.src[1]);
    if (left && right) return std::nullopt;
    const auto sum = of(n.src[left ? 0 : 1], depth + 1);
    return sum ? std::optional(add(Op::Mul, *sum, n.src[left ? 1 : 0])) : std::nullopt;
  }

  std::optional<Id> of_cast(const Node& n, int depth) {
    const Node inner = g_[n.src[0]];
    if (inner.dtype == DType::Bool) {
      return of_choice(n.src[0], g_.constant(n.dtype, int64_t{1}),
                       g_.constant(n.dtype, int64_t{0}));
    }
    if (inner.op == Op::Where) {
      const auto cast = [&](Id id) { return add_folded(g_, Op::Cast, n.dtype, {id}); };
      return of(g_.where(inner.src[0], cast(inner.src[1]), cast(inner.src[2])), depth + 1);
    }
    return std::nullopt;
  }

  std::optional<Id> of_where(const Node& n, int depth) {
    if (moves(n.src[0])) return of_choice(n.src[0], n.src[1], n.src[2]);
    const auto yes = of(n.src[1], depth + 1);
    const auto no = yes ? of(n.src[2], depth + 1) : std::nullopt;
    return no ? std::optional(g_.where(n.src[0], *yes, *no)) : std::nullopt;
  }

  // The condition depends on the range.
  std::optional<Id> of_choice(Id condition, Id yes, Id no) {
    const bool negated = g_[condition].op == Op::CmpNe || (is_zero(g_, yes) && !is_zero(g_, no));
    if (negated) std::swap(yes, no);
    RangeCondition found;
    if (!condition_on(g_, condition, negated, range_, algebra_, found)) return std::nullopt;
    if (is_zero(g_, no)) return found.equal ? picked(found, yes, no) : counted(found, yes);
    // Two loop-invariant integers: no * size + (yes - no) * count.
    if (!is_integer(g_[yes].dtype) || moves(yes) || moves(no)) return std::nullopt;
    const Id difference = add(Op::Sub, yes, no);
    const auto counts = found.equal
                            ? picked(found, difference, g_.constant(g_[yes].dtype, int64_t{0}))
                            : counted(found, difference);
    return counts ? std::optional(add(Op::Add, *counts, *times(no))) : std::nullopt;
  }

  // The value summed at range == found.equal; elsewhere `other`, a zero. A sum of nothing but -0
  // may be either zero.
  std::optional<Id> picked(const RangeCondition& found, Id value, Id other) {
    const Id at = *found.equal;
    const Interval values = algebra_.bounds[at];
    Id valid = truth();
    if (values.lo < 0) valid = all(valid, add(Op::CmpLt, g_.index(-1), at));
    if (values.hi >= size_) valid = all(valid, add(Op::CmpLt, at, g_.index(size_)));
    Id condition = valid;
    for (Id lower : found.lowers)
      condition = all(condition, add(Op::CmpLt, lower, add(Op::Add, at, g_.index(1))));
    for (Id upper : found.uppers) condition = all(condition, add(Op::CmpLt, at, upper));
    for (Id clause : found.other)
      condition = all(condition, at_index(g_, clause, range_, at, valid, algebra_));
    const Id element = at_index(g_, value, range_, at, valid, algebra_);
    const DType dtype = g_[element].dtype;
    const Id zero = g_.constant(dtype, int64_t{0});
    const Id result = is_const(g_, condition) ? element : g_.where(condition, element, zero);
    if (is_minus_zero(g_, other) || is_never_minus_zero(g_, element)) return result;
    return g_.binary(Op::Add, result, zero);
  }

  // `value` times the number of indices with lower <= range < upper.
  std::optional<Id> counted(const RangeCondition& found, Id value) {
    if (moves(value)) return std::nullopt;
    const DType dtype = g_[value].dtype;
    if (is_float(dtype) && !algebra_.fast && !multiples_are_exact(g_, value, size_))
      return std::nullopt;
    Id condition = truth();
    for (Id clause : found.other) {
      if (moves(clause)) return std::nullopt;
      condition = all(condition, clause);
    }
    const auto negated = [&](Id id) { return add(Op::Mul, id, g_.index(-1)); };
    Id low = g_.index(0), minus_high = g_.index(-size_);
    for (Id lower : found.lowers) low = add(Op::Max, lower, low);
    for (Id upper : found.uppers) minus_high = add(Op::Max, negated(upper), minus_high);
    const Id count = add(Op::Max, negated(add(Op::Add, low, minus_high)), g_.index(0));
    const Id total = add(Op::Mul, add_folded(g_, Op::Cast, dtype, {count}), value);
    if (is_const(g_, condition)) return total;
    return g_.where(condition, total, g_.constant(dtype, int64_t{0}));
  }

  Graph& g_;
  Id range_;
  int64_t size_;
  Algebra& algebra_;
};

// Maxima, and products and sums of bools, do not change when a value counts twice.
bool is_idempotent(Op op, DType dtype) {
  return op == Op::Max || dtype == DType::Bool;
}

Id collapse(Graph& g, const Match& m) {
  Algebra& algebra = m.context<Algebra>();
  const auto sources = g.sources(m.root);
  const Op op = reduce_op(g, m.root);
  for (size_t i = 1; i < sources.size(); ++i) {
    const Id range = sources[i];
    if (g[range].op != Op::Range || range_size(g, range) <= 0 || is_bounded(g[range])) continue;
    std::optional<Id> value;
    if (op == Op::Add) value = sum_over(g, sources[0], range, algebra);
    const bool still = !algebra.ranges.depends(sources[0], range);
    if (!value && still && is_idempotent(op, g[m.root].dtype)) value = sources[0];
    if (!value) continue;
    std::vector<Id> rest{*value};
    for (Id other : g.sources(m.root).subspan(1))
      if (other != range) rest.push_back(other);
    return rest.size() == 1 ? *value : g.with_sources(m.root, rest);
  }
  return kNoMatch;
}

// Hoists a loop-invariant factor: exact for integers, which wrap.
Id factor_out(Graph& g, const Match& m) {
  Algebra& algebra = m.context<Algebra>();
  const auto sources = g.sources(m.root);
  const Node value = g[sources[0]];
  const bool reorders = is_integer(value.dtype) || (algebra.fast && is_float(value.dtype));
  if (reduce_op(g, m.root) != Op::Add || value.op != Op::Mul || !reorders) return kNoMatch;
  for (int side = 0; side < 2; ++side) {
    const Id factor = value.src[side];
    bool moves = false;
    for (Id range : sources.subspan(1)) moves = moves || algebra.ranges.depends(factor, range);
    if (moves) continue;
    std::vector<Id> changed(sources.begin(), sources.end());
    changed[0] = value.src[1 - side];
    return g.binary(Op::Mul, g.with_sources(m.root, changed), factor);
  }
  return kNoMatch;
}

// clang-format off
constexpr Rule kCollapse[] = {
    rule("collapse-reduce",   any_of(x, Op::Reduce), code<collapse>),
    rule("reduce-factor-out", any_of(x, Op::Reduce), code<factor_out>),
};
// clang-format on
}  // namespace

std::optional<Id> sum_over(Graph& g, Id value, Id range, Algebra& algebra) {
  return Sum(g, range, algebra).of(value);
}

Id at_index(Graph& g, Id id, Id range, Id at, Id valid, Algebra& algebra) {
  Reachable reachable;
  const auto still = [&](Id node) { return !algebra.ranges.depends(node, range); };
  const std::vector<Id> nodes = reachable.from(g, std::span<const Id>(&id, 1), still);
  std::vector<std::pair<Id, Id>> moved;  // ascending
  const auto now = [&](Id node) {
    const auto found = std::ranges::lower_bound(moved, node, {}, &std::pair<Id, Id>::first);
    return found != moved.end() && found->first == node ? found->second : node;
  };
  for (Id node : nodes) {
    if (still(node)) continue;
    if (node == range) {
      moved.emplace_back(node, at);
      continue;
    }
    const auto sources = g.sources(node);
    std::vector<Id> changed(sources.begin(), sources.end());
    for (Id& s : changed) s = now(s);
    if (g[node].op == Op::Load && !is_const(g, valid)) {
      if (changed.size() == 2)
        changed.insert(changed.end(), {valid, g.constant(g[node].dtype, int64_t{0})});
      else
        changed[2] = add_folded(g, Op::And, DType::Bool, {changed[2], valid});
    }
    moved.emplace_back(node, g.with_sources(node, changed));
  }
  return now(id);
}

std::span<const Rule> collapse_rules() {
  return kCollapse;
}

}  // namespace plugrad
