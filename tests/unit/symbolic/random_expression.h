// Random index expressions over a few small ranges.
#pragma once

#include <random>
#include <vector>

#include "unit/symbolic/evaluate.h"

namespace plugrad::testing {

class RandomExpression {
 public:
  RandomExpression(Graph& g, std::mt19937& random) : g_(g), random_(random) {
    const int sizes[] = {2, 3, 4, 5, 6, 8};
    for (uint32_t axis = 0; axis < 3; ++axis)
      ranges_.push_back(make_range(g, sizes[pick(6)], axis, AxisKind::Loop));
  }
  const std::vector<Id>& ranges() const { return ranges_; }

  Id expression(int depth) {
    if (depth == 0)
      return pick(4) == 0 ? g_.index(pick(17) - 5) : ranges_[static_cast<size_t>(pick(3))];
    const Id a = expression(depth - 1);
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        return g_.binary(Op::Add, a, expression(depth - 1));
      case 3:
        return g_.binary(Op::Add, a, g_.index(pick(21) - 8));
      case 4:
      case 5:
        return g_.binary(Op::Mul, a, g_.index(constant()));
      case 6:
      case 7:
        return g_.binary(Op::FloorDiv, a, g_.index(pick(10) == 0 ? -constant() : constant()));
      case 8:
      case 9:
        return g_.binary(Op::FloorMod, a, g_.index(pick(10) == 0 ? -constant() : constant()));
      case 10:
        return g_.binary(Op::Max, a, expression(depth - 1));
      default:
        return g_.where(condition(depth - 1), a, expression(depth - 1));
    }
  }

  Id condition(int depth) {
    const Op ops[] = {Op::CmpLt, Op::CmpLt, Op::CmpEq, Op::CmpNe};
    const Id a = expression(depth), b = pick(2) ? g_.index(pick(25) - 5) : expression(depth);
    const Id compare = pick(3) ? g_.binary(ops[pick(4)], a, b) : g_.binary(ops[pick(4)], b, a);
    if (depth == 0 || pick(3)) return compare;
    const Op joins[] = {Op::And, Op::Or, Op::Xor};
    return g_.binary(joins[pick(3)], compare, condition(depth - 1));
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  int constant() {
    const int values[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24};
    return values[pick(10)];
  }
  Graph& g_;
  std::mt19937& random_;
  std::vector<Id> ranges_;
};

}  // namespace plugrad::testing
