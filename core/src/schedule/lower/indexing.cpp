#include "schedule/lower/indexing.h"

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

Id Indexing::add(Id a, Id b) {
  if (is_const(g_, a)) std::swap(a, b);
  if (!is_const(g_, b)) return g_.binary(Op::Add, a, b);
  const int64_t c = const_int(g_, b);
  if (c == 0) return a;
  if (is_const(g_, a)) return g_.index(const_int(g_, a) + c);
  return g_.binary(Op::Add, a, b);
}

Id Indexing::mul(Id a, int64_t factor) {
  if (factor == 1) return a;
  if (factor == 0) return g_.index(0);
  if (is_const(g_, a)) return g_.index(const_int(g_, a) * factor);
  return g_.binary(Op::Mul, a, g_.index(factor));
}

Id Indexing::quotient(Id a, int64_t divisor) {
  if (divisor == 1) return a;
  if (is_const(g_, a)) {
    const int64_t v = const_int(g_, a);
    return g_.index(v >= 0 ? v / divisor : -((-v + divisor - 1) / divisor));
  }
  return g_.binary(Op::FloorDiv, a, g_.index(divisor));
}

Id Indexing::remainder(Id a, int64_t divisor) {
  if (divisor == 1) return g_.index(0);
  if (is_const(g_, a)) {
    const int64_t v = const_int(g_, a) % divisor;
    return g_.index(v < 0 ? v + divisor : v);
  }
  return g_.binary(Op::FloorMod, a, g_.index(divisor));
}

Id Indexing::within(Id a, int64_t low, int64_t high, int64_t size) {
  Id above = kNoId, below = kNoId;
  if (low > 0) above = g_.binary(Op::CmpLt, g_.index(low - 1), a);
  if (high < size) below = g_.binary(Op::CmpLt, a, g_.index(high));
  return both(above, below);
}

Id Indexing::both(Id a, Id b) {
  if (a == kNoId || a == b) return b;
  if (b == kNoId) return a;
  return g_.binary(Op::And, a, b);
}

Id Indexing::flatten(std::span<const Id> index, std::span<const int64_t> shape) {
  Id flat = g_.index(0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    flat = add(mul(index[i], stride), flat);
  return flat;
}

Id Indexing::flatten(std::span<const Id> index, std::span<const int64_t> shape,
                     std::span<const int64_t> order, int64_t block) {
  std::vector<Id> moved;
  std::vector<int64_t> sizes;
  for (int64_t axis : order) {
    moved.push_back(index[static_cast<size_t>(axis)]);
    sizes.push_back(shape[static_cast<size_t>(axis)]);
  }
  if (block != 0) {
    moved.insert(moved.begin(), quotient(moved.back(), block));
    sizes.insert(sizes.begin(), sizes.back() / block);
    moved.back() = remainder(moved.back(), block);
    sizes.back() = block;
  }
  return flatten(moved, sizes);
}

std::vector<Id> Indexing::split(Id flat, std::span<const int64_t> shape) {
  std::vector<Id> index(shape.size());
  int64_t stride = element_count(shape), outer = stride;
  for (size_t i = 0; i < shape.size(); ++i) {
    stride /= shape[i];
    // The outermost index needs no remainder: flat is below the product of all sizes.
    const Id rest = outer == element_count(shape) ? flat : remainder(flat, outer);
    index[i] = shape[i] == 1 ? g_.index(0) : quotient(rest, stride);
    outer = stride;
  }
  return index;
}

std::vector<Id> Indexing::reshape(std::span<const Id> index, std::span<const int64_t> to,
                                  std::span<const int64_t> from) {
  std::vector<Id> out;
  each_reshape_group(to, from, [&](size_t i, size_t i_end, size_t j, size_t j_end) {
    const Id flat = flatten(index.subspan(i, i_end - i), to.subspan(i, i_end - i));
    const auto digits = split(flat, from.subspan(j, j_end - j));
    out.insert(out.end(), digits.begin(), digits.end());
  });
  return out;
}

}  // namespace plugrad::schedule
