// Reading at places that are data costs one load an element: no kernel loops over an axis that is
// indexed.
#include <gtest/gtest.h>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

Tensor stored(const Shape& shape) {
  return Tensor::rand(shape).realize();
}
Tensor places(const Shape& shape, int64_t size, DType dtype = DType::I32) {
  return Tensor::randint(shape, -size, size, dtype).realize();
}

/// Kernels that reduce, among those that computing `t` runs.
size_t reductions(const Tensor& t) {
  size_t count = 0;
  for (const Kernel& kernel : t.schedule()) count += kernel.name().starts_with("r_") ? 1 : 0;
  return count;
}

TEST(Indexing, by_data_is_a_load) {
  const Tensor x = stored({40, 50, 60});
  for (DType dtype : {DType::I32, DType::I64}) {
    const Tensor i = places({100}, 40, dtype), j = places({100}, 50, dtype),
                 k = places({7, 1}, 60, dtype);
    EXPECT_EQ(reductions(x[i]), 0u);
    EXPECT_EQ(reductions(x[{i, j}]), 0u);
    EXPECT_EQ(reductions(x[{i, Slice(), k}]), 0u);
    EXPECT_EQ(reductions(x[{i, j, k}]), 0u);
    EXPECT_EQ(reductions((x + 1)[{i, j}] * 2), 0u);
    EXPECT_EQ(reductions(x[{Slice(), {1, 2, 3}}]), 0u);
    EXPECT_EQ(reductions(x.index_select(1, j)), 0u);
    EXPECT_EQ(reductions(x.gather(1, places({40, 9, 60}, 50, dtype))), 0u);
    EXPECT_LE((x[{i, j}].schedule().size()), 2u);
  }
}

TEST(Indexing, assignment_by_numbers_is_one_kernel) {
  Tensor x = stored({40, 50, 60});
  x[{Slice(1, 30, 2), 3}] = 5;
  EXPECT_EQ(x.schedule().size(), 1u);
}

}  // namespace
}  // namespace plugrad
