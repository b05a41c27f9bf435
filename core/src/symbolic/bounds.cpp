// Interval rules: monotone ops map ends to ends; products and quotients take the extremes of the
// corners.
#include "symbolic/bounds.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ir/fold.h"
#include "ir/round.h"

namespace plugrad {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

template <class F>
Interval corners(Interval a, Interval b, F f) {
  const int64_t v[] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}

int64_t saturating_quotient(int64_t a, int64_t b, bool floor) {
  if (a == kLowest && b == -1) return kHighest;
  return floor ? floor_div(a, b) : truncated_div(a, b);
}

// Quotients are monotone in each operand while the divisor keeps its sign; division by 0 gives 0.
Interval divide(Interval a, Interval b, bool floor) {
  const auto f = [&](int64_t p, int64_t q) { return saturating_quotient(p, q, floor); };
  Interval result{kHighest, kLowest};
  const auto join = [&](Interval other) {
    result = {std::min(result.lo, other.lo), std::max(result.hi, other.hi)};
  };
  if (b.hi > 0) join(corners(a, {std::max<int64_t>(b.lo, 1), b.hi}, f));
  if (b.lo < 0) join(corners(a, {b.lo, std::min<int64_t>(b.hi, -1)}, f));
  if (b.contains(0)) join({0, 0});
  return result;
}

Interval truncated_modulo(Interval a, Interval b) {
  if (b.contains(0)) return {std::min<int64_t>(a.lo, 0), std::max<int64_t>(a.hi, 0)};
  const int64_t size = b.lo > 0 ? b.hi : (b.lo == kLowest ? kHighest : -b.lo);
  if (b.is_const() && a.lo >= 0 && a.hi < size) return a;
  return {a.lo >= 0 ? 0 : std::max(a.lo, 1 - size), a.hi <= 0 ? 0 : std::min(a.hi, size - 1)};
}

// All bits up to the highest one of a non-negative number.
int64_t ones_up_to(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value) + 1) - 1);
}

Interval bitwise(Op op, Interval a, Interval b, Interval all) {
  if (op == Op::And) {
    if (a.lo >= 0 && b.lo >= 0) return {0, std::min(a.hi, b.hi)};
    if (b.lo >= 0) return {0, b.hi};
    if (a.lo >= 0) return {0, a.hi};
  } else if (a.lo >= 0 && b.lo >= 0) {
    const int64_t ones = ones_up_to(std::max(a.hi, b.hi));
    return {op == Op::Or ? std::max(a.lo, b.lo) : 0, ones};
  }
  return all;
}

// Shift counts outside [0, bits) give the whole dtype.
Interval shift(Op op, Interval a, Interval count, DType dtype, Interval all) {
  const int bits = dtype == DType::Index ? 64 : static_cast<int>(size_of(dtype)) * 8;
  if (count.lo < 0 || count.hi >= bits) return all;
  if (op == Op::Shr) {
    // U64 values above INT64_MAX are clamped in `a`: shifting the clamped end would be wrong.
    if (dtype == DType::U64 && a.hi == kHighest) return {0, kHighest};
    return corners(a, count, [](int64_t p, int64_t q) { return p >> q; });
  }
  if (count.hi > 62) return all;
  return multiply(a, {int64_t{1} << count.lo, int64_t{1} << count.hi});
}

Interval compare(Op op, Interval a, Interval b, bool clamped) {
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  if (clamped && (!apart || op == Op::CmpLt) && !(a.hi < b.lo)) return {0, 1};
  const bool same = a.is_const() && a == b;
  switch (op) {
    case Op::CmpLt:
      return a.hi < b.lo ? Interval{1, 1} : a.lo >= b.hi ? Interval{0, 0} : Interval{0, 1};
    case Op::CmpEq:
      return apart ? Interval{0, 0} : same ? Interval{1, 1} : Interval{0, 1};
    default:
      return apart ? Interval{1, 1} : same ? Interval{0, 0} : Interval{0, 1};
  }
}

Interval negate(Interval a) {
  return {a.hi == kLowest ? kHighest : -a.hi, a.lo == kLowest ? kHighest : -a.lo};
}

Interval arithmetic(Op op, Interval a, Interval b, DType dtype, Interval all) {
  switch (op) {
    case Op::Add:
      return add(a, b);
    case Op::Sub:
      return add(a, negate(b));
    case Op::Mul:
      return multiply(a, b);
    case Op::Neg:
      return negate(a);
    case Op::IDiv:
      return divide(a, b, false);
    case Op::FloorDiv:
      return divide(a, b, true);
    case Op::Mod:
      return truncated_modulo(a, b);
    case Op::FloorMod:
      return floor_modulo(a, b);
    case Op::Max:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return bitwise(op, a, b, all);
    case Op::Shl:
    case Op::Shr:
      return shift(op, a, b, dtype, all);
    default:
      return all;
  }
}

bool inside(Interval inner, Interval outer) {
  return outer.lo <= inner.lo && inner.hi <= outer.hi;
}

bool has_interval(DType dtype) {
  return is_integer(dtype) || dtype == DType::Bool;
}

}  // namespace

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  return a < 0 ? kLowest : kHighest;
}

int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t result;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) == (b < 0) ? kHighest : kLowest;
}

Interval add(Interval a, Interval b) {
  return {saturating_add(a.lo, b.lo), saturating_add(a.hi, b.hi)};
}
Interval multiply(Interval a, Interval b) {
  return corners(a, b, saturating_mul);
}
Interval floor_divide(Interval a, Interval b) {
  return divide(a, b, true);
}

Interval floor_modulo(Interval a, Interval b) {
  if (b.contains(0)) {  // x mod 0 is x
    return {std::min({a.lo, b.lo, int64_t{0}}), std::max({a.hi, b.hi, int64_t{0}})};
  }
  if (b.is_const() && b.lo > 0 && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
    return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
  }
  if (b.lo > 0) return {0, a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1};
  return {a.hi <= 0 ? std::max(a.lo, b.lo + 1) : b.lo + 1, 0};
}

Interval dtype_interval(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  if (!is_integer(dtype) || bits == 0 || (bits == 64 && !is_unsigned(dtype)))
    return {kLowest, kHighest};
  if (is_unsigned(dtype)) return {0, bits == 64 ? kHighest : (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

void Bounds::fill(Id id) {
  while (by_id_.size() <= id) by_id_.push_back(compute(static_cast<Id>(by_id_.size())));
}

void Bounds::set(Id id, Interval interval) {
  fill(id);
  by_id_[id] = interval;
}

Interval Bounds::compute(Id id) const {
  const Node& n = graph_[id];
  const Interval all = dtype_interval(n.dtype);
  if (!has_interval(n.dtype)) return all;
  const auto is_u64 = [&](Id s) { return graph_[s].dtype == DType::U64; };
  const auto source = [&](size_t i) { return by_id_[graph_.sources(n)[i]]; };
  switch (n.op) {
    case Op::Const: {
      if (n.dtype == DType::U64 && static_cast<int64_t>(n.arg) < 0) return all;
      return {static_cast<int64_t>(n.arg), static_cast<int64_t>(n.arg)};
    }
    case Op::Iota:
      return {0, std::max<int64_t>(static_cast<int64_t>(graph_[id].arg) - 1, 0)};
    case Op::Scalar:
      return n.dtype == DType::Index ? Interval{0, graph_.arg_list(id)[1]} : all;
    case Op::Range:
      return {0, std::max<int64_t>(source(0).hi - 1, 0)};
    case Op::Where:
      return {std::min(source(1).lo, source(2).lo), std::max(source(1).hi, source(2).hi)};
    case Op::CmpLt:
    case Op::CmpEq:
    case Op::CmpNe:
      return has_interval(graph_[n.src[0]].dtype)
                 ? compare(n.op, source(0), source(1),
                           source(0).hi == kHighest || source(1).hi == kHighest)
                 : all;
    case Op::Cast: {
      if (!has_interval(graph_[n.src[0]].dtype)) return all;
      if (n.dtype == DType::Bool)
        return compare(Op::CmpNe, source(0), {0, 0}, source(0).hi == kHighest);
      return inside(source(0), all) && !(is_u64(n.src[0]) && source(0).hi == kHighest) ? source(0)
                                                                                       : all;
    }
    default:
      break;
  }
  if (!is_alu(n.op) || n.src_count > 2) return all;
  const Interval result =
      arithmetic(n.op, source(0), n.src_count > 1 ? source(1) : Interval{0, 0}, n.dtype, all);
  // U64 intervals are clamped: an end at INT64_MAX proves nothing.
  if (n.dtype == DType::U64 && (result.hi == kHighest || source(0).hi == kHighest)) return all;
  // An end of int64_t may be saturated; only Index keeps it, because it does not wrap.
  const bool saturated = result.lo == kLowest || result.hi == kHighest;
  if (saturated && n.dtype == DType::I64) return all;
  return inside(result, all) ? result : all;
}

}  // namespace plugrad
