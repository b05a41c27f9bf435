// Gradients of tensors split along an axis and of concatenated tensors.
#include <gmock/gmock.h>

#include "graph_fixture.h"

namespace plugrad::autodiff {
namespace {

using Box = std::vector<int64_t>;

struct Parts : GraphFixture {
  std::vector<double> numbers(int64_t count) {
    std::vector<double> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(static_cast<double>(i * 7 % 11 - 5));
    return list;
  }
  size_t count_of(Op op, Id root) {
    Reachable reachable;
    size_t count = 0;
    for (Id id : reachable.from(g, std::vector{root})) count += g[id].op == op ? 1 : 0;
    return count;
  }
  /// Loss of a (rows, columns) value: the sum over boxes of (box number + 1) times the squares
  /// inside.
  Id loss(Id x, const std::vector<Box>& boxes) {
    Id sum = number(0);
    for (size_t i = 0; i < boxes.size(); ++i) {
      const Id part = move(Op::Shrink, x, boxes[i]);
      const Id weighted =
          g.binary(Op::Mul, g.binary(Op::Mul, part, part), number(static_cast<double>(i + 1)));
      sum = g.binary(Op::Add, sum, move(Op::Reshape, reduce(Op::Add, weighted, {0, 1}), {}));
    }
    return sum;
  }
  /// Checks the derivative with respect to x, (rows, columns).
  Id expect_slope(const std::vector<Box>& boxes, int64_t rows, int64_t columns) {
    const std::vector<double> v = numbers(rows * columns);
    const Id x = buffer({rows, columns}, v);
    const Id slope = derivative(loss(x, boxes), x);
    std::vector<double> want(v.size());
    for (size_t i = 0; i < boxes.size(); ++i)
      for (int64_t r = boxes[i][0]; r < boxes[i][1]; ++r)
        for (int64_t c = boxes[i][2]; c < boxes[i][3]; ++c) {
          const auto at = static_cast<size_t>(r * columns + c);
          want[at] += 2 * static_cast<double>(i + 1) * v[at];
        }
    EXPECT_EQ(values(slope), want);
    return slope;
  }
  /// Concatenates along axis 0, as cat records it.
  Id joined(const std::vector<Id>& parts) {
    std::vector<int64_t> shape(shapes[parts[0]].begin(), shapes[parts[0]].end());
    shape[0] = 0;
    for (Id part : parts) shape[0] += shapes[part][0];
    const Id counter =
        move(Op::Reshape, g.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(shape[0])),
             {shape[0], 1});
    Id all = kNoId;
    int64_t begin = 0;
    for (Id part : parts) {
      const int64_t size = shapes[part][0];
      const Id framed = move(Op::Pad, part, {begin, shape[0] - begin - size, 0, 0});
      const Id before = g.binary(Op::CmpLt, counter, g.constant(DType::I32, begin));
      all = all == kNoId ? framed : g.where(move(Op::Expand, before, shape), all, framed);
      begin += size;
    }
    return all;
  }
};

TEST_F(Parts, ManySlicesThatDoNotOverlapAreJoined) {
  std::vector<Box> rows, columns;
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t at = i * 7 % 40;
    rows.push_back({at, at + 1, 0, 3});
    columns.push_back({0, 2, at, at + 1});
  }
  EXPECT_EQ(count_of(Op::Add, expect_slope(rows, 40, 3)), 40u);  // x * w + x * w for each square
  EXPECT_EQ(count_of(Op::Add, expect_slope(columns, 2, 40)), 40u);
}

// Each slice shares a row with the next: two joins of 20, whose sum has both contributions.
TEST_F(Parts, SlicesThatShareARowAreInDifferentJoins) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 40; ++i) boxes.push_back({3 * i, 3 * i + 4, 0, 2});
  EXPECT_EQ(count_of(Op::Where, expect_slope(boxes, 125, 2)), 38u);
}

TEST_F(Parts, FewAreAdded) {
  EXPECT_EQ(count_of(Op::Where, expect_slope({{0, 2, 0, 3}, {3, 4, 0, 3}, {1, 4, 0, 3}}, 5, 3)),
            0u);
}

TEST_F(Parts, OverlapsGapsAndBothAxes) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t at = i * 5 % 23;
    boxes.push_back(i % 3 == 0 ? Box{0, 30, at % 4, at % 4 + 2}
                               : Box{at, at + 1 + i % 6, i % 7 == 0 ? 1 : 0, 6});
  }
  expect_slope(boxes, 30, 6);
}

TEST_F(Parts, OfAJoinReadTheirOwnPlacesAlone) {
  std::vector<Id> parts;
  std::vector<double> w;
  for (int64_t i = 0; i < 30; ++i) parts.push_back(buffer({1 + i % 3, 2}, numbers(2 + i % 3 * 2)));
  const Id all = joined(parts);
  const int64_t size = shapes[all][0];
  const Id weights = buffer({size, 2}, numbers(size * 2));
  const std::vector<Id> slopes =
      gradient(context, g.binary(Op::Mul, all, weights), number(1), parts);
  int64_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t end = begin + shapes[parts[i]][0];
    EXPECT_EQ(slopes[i], move(Op::Shrink, weights, {begin, end, 0, 2})) << i;
    begin = end;
  }
}

TEST_F(Parts, OfAJoinThatTheSameNumberFlowsTo) {
  std::vector<Id> parts;
  for (int64_t i = 0; i < 5; ++i) parts.push_back(buffer({2, 1}, {1, 2}));
  parts[3] = parts[1];
  const Id all = joined(parts);
  EXPECT_EQ(values(derivative(all, parts[0], 3)), (std::vector<double>{3, 3}));
  EXPECT_EQ(values(derivative(all, parts[1], 3)), (std::vector<double>{6, 6}));
}

}  // namespace
}  // namespace plugrad::autodiff
