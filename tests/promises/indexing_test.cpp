// A read at a data-dependent index costs one load per element: no kernel loops over an indexed
// axis.
#include <gtest/gtest.h>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

Tensor stored_parts(const Shape& shape) {
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
  const Tensor x = stored_parts({40, 50, 60});
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

// The gradient scatters: each element is added at its index, without a search over rows.
TEST(Indexing, its_gradient_adds_to_places) {
  Tensor table = stored_parts({1000, 64});
  table.requires_grad_();
  const Tensor i = places({4096}, 1000), each = places({4096, 64}, 1000);
  const Tensor weight = stored_parts({4096, 64});
  const std::vector<Tensor> readings = {embedding(table, i), table[i], table.gather(0, each)};
  for (const Tensor& read : readings) {
    const Tensor gradient_of = gradient((read * weight).sum(), {table})[0];
    EXPECT_EQ(reductions(gradient_of), 0u);
    EXPECT_EQ(gradient_of.schedule().size(), 1u);
    int64_t flops = 0;
    for (const Kernel& kernel : gradient_of.schedule()) flops += kernel.flops();
    EXPECT_LE(flops, 2 * 4096 * 64);  // a product and a sum of each term
  }
}

// Sums of 16 on top of those of the blocks before: no element looks at the whole row.
TEST(Indexing, running_sums_are_sums_of_blocks_forward_and_back) {
  Tensor x = stored_parts({4096});
  x.requires_grad_();
  const Tensor y = x.cumsum(0), back = gradient((y * stored_parts({4096})).sum(), {x})[0];
  for (const Tensor& t : {y, back}) {
    EXPECT_LE(t.schedule().size(), 5u);
    int64_t flops = 0;
    for (const Kernel& kernel : t.schedule()) flops += kernel.flops();
    EXPECT_LE(flops, 24 * 4096);
  }
}

TEST(Indexing, assignment_by_numbers_is_one_kernel) {
  Tensor x = stored_parts({40, 50, 60});
  x[{Slice(1, 30, 2), 3}] = 5;
  EXPECT_EQ(x.schedule().size(), 1u);
}

}  // namespace
}  // namespace plugrad
