// The update order of a register tile's sums.
#include <gtest/gtest.h>

#include "codegen/emit/reductions.h"
#include "kernels.h"

namespace plugrad::test {
namespace {

// Sums over k of a[i, k] * b[k, j] for all i < rows and j < columns, row by row.
struct Sums {
  Sums(int64_t rows, int64_t columns) {
    const Id k = make_range(g, 16, 0, AxisKind::Reduce);
    const Id a = param(g, 1, rows * 16, false), b = param(g, 2, 16 * columns, false);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const Id product = g.binary(Op::Mul, load(g, a, affine(g, g.index(i), 16, k)),
                                    load(g, b, affine(g, k, columns, g.index(j))));
        reduces.push_back(reduce(g, Op::Add, product, {k}));
      }
  }
  std::vector<size_t> order() const {
    std::vector<size_t> places;
    for (Id id : codegen::update_order(g, reduces))
      places.push_back(static_cast<size_t>(std::ranges::find(reduces, id) - reduces.begin()));
    return places;
  }
  Graph g;
  std::vector<Id> reduces;
};

using Places = std::vector<size_t>;

TEST(UpdateOrder, OneOfTheMoreFactorsComesAfterTheOther) {
  EXPECT_EQ(Sums(2, 3).order(), (Places{0, 3, 1, 4, 2, 5})) << "by columns";
  EXPECT_EQ(Sums(3, 2).order(), (Places{0, 1, 2, 3, 4, 5})) << "by rows";
}

TEST(UpdateOrder, StaysWhereNeitherSideHasFewer) {
  EXPECT_EQ(Sums(2, 2).order(), (Places{0, 1, 2, 3}));
  EXPECT_EQ(Sums(1, 3).order(), (Places{0, 1, 2}));
  Sums some(2, 3);  // a subset of the pairs
  some.reduces.pop_back();
  EXPECT_EQ(some.order(), (Places{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace plugrad::test
