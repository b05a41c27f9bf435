// Inputs and reference results of a search's candidate kernels.
#include "tuning/helper/check_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "codegen/codegen.h"
#include "tuning/helper/bitwise_comparable.h"
#include "tuning/helper/contents.h"
#include "unit/codegen/kernels.h"
#include "unit/codegen/run.h"

namespace plugrad::tuning {
namespace {

using test::affine;
using test::load;
using test::param;

KernelAst kernel_of(test::Ast ast, uint32_t params) {
  KernelAst kernel;
  kernel.graph = std::move(ast.graph);
  kernel.sink = ast.sink;
  kernel.param_count = params;
  return kernel;
}

// out[i] = table[rows[i] * 8 + columns[i]] of a table of 10 x 8
KernelAst gather() {
  test::Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 100, 0, AxisKind::Loop);
  const Id row = g.cast(load(g, param(g, 2, 100, false, DType::I32), i), DType::Index);
  const Id column = g.cast(load(g, param(g, 3, 100, false, DType::I64), i), DType::Index);
  test::store(ast, param(g, 0, 100, true), i,
              load(g, param(g, 1, 80, false), affine(g, row, 8, column)));
  return kernel_of(std::move(ast), 4);
}

TEST(MeasuredKernel, is_given_indices_that_stay_inside) {
  const std::vector<ParamSpec> params = params_of(gather());
  ASSERT_EQ(params.size(), 4u);
  EXPECT_EQ(params[1].below, 0u);
  int64_t highest[2] = {};
  for (uint32_t slot : {2u, 3u}) {
    EXPECT_GT(params[slot].below, 0u);
    const std::vector<std::byte> bytes = contents_of(params[slot], slot);
    const size_t size = slot == 2 ? 4 : 8;
    for (size_t at = 0; at < bytes.size(); at += size) {
      int64_t value = 0;
      std::memcpy(&value, bytes.data() + at, size);
      highest[slot - 2] = std::max(highest[slot - 2], value);
    }
  }
  EXPECT_LT(highest[0] * 8 + highest[1], 80);
  EXPECT_GT(highest[0] * 8 + highest[1], 20);  // and not all at one index
}

// A dynamic loop bound in memory exceeds the loop, so that the whole loop is timed.
TEST(MeasuredKernel, is_given_sizes_that_leave_all_places) {
  test::Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 100, 0, AxisKind::Reduce);
  const Id size = load(g, param(g, 2, 1, false, DType::I32), g.index(0));
  const Id term = g.where(g.binary(Op::CmpLt, g.cast(i, DType::I32), size),
                          load(g, param(g, 1, 100, false), i), g.constant(DType::F32, 0.0));
  test::store(ast, param(g, 0, 1, true), g.index(0), test::reduce(g, Op::Add, term, {i}));
  const std::vector<ParamSpec> params = params_of(kernel_of(std::move(ast), 3));
  const std::vector<std::byte> bytes = contents_of(params[2], 2);
  int32_t value = 0;
  ASSERT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  EXPECT_GE(value, 100);
}

TEST(MeasuredKernel, has_a_family_that_sizes_do_not_change) {
  const auto family = [](int64_t m, int64_t n, int64_t k) {
    return family_of(kernel_of(test::matmul(m, n, k), 3));
  };
  EXPECT_EQ(family(64, 64, 64), family(1000, 37, 5));
  EXPECT_NE(family(64, 64, 64), family_of(kernel_of(test::relu_sum(64), 2)));
  EXPECT_EQ(loop_sizes(kernel_of(test::matmul(3, 4, 5), 3)), (std::vector<int64_t>{3, 4, 5}));
}

TEST(MeasuredKernel, has_a_reference_of_first_and_last_elements_where_all_take_too_long) {
  const KernelAst ast = kernel_of(test::matmul(64, 48, 16), 3);
  EXPECT_FALSE(reference_of(ast, 64 * 48 * 16).is_sample);
  const ReferenceAst sample = reference_of(ast, 64 * 48 * 16 / 32);
  ASSERT_TRUE(sample.is_sample);
  const auto code =
      codegen::generate(sample.graph, sample.sink, test::small_cpu(), {.no_opt = true});
  std::vector<float> out(64 * 48, -1), a(64 * 16, 1), b(16 * 48, 1);
  test::run(code, {&out, &a, &b});
  const auto computed = std::ranges::count(out, 16.0f);
  EXPECT_EQ(computed + std::ranges::count(out, -1.0f), 64 * 48);
  EXPECT_GE(computed, 64 * 48 / 64);
  EXPECT_LE(computed, 64 * 48 / 8);
  EXPECT_EQ(out.front(), 16);
  EXPECT_EQ(out.back(), 16);
}

TEST(MeasuredKernel, is_exact_as_long_as_f32_holds_every_partial_sum) {
  const auto tolerance = [](int64_t k) {
    return tolerance_of(kernel_of(test::matmul(4, 4, k), 3));
  };
  EXPECT_EQ(tolerance(1), 0);
  EXPECT_EQ(tolerance(65536), 0);  // 65536 products of up to 4 in 64ths: 2^24 of them
  EXPECT_GT(tolerance(65537), 0);
  EXPECT_GT(tolerance_of(kernel_of(test::softmax2(8, 8), 2)), 0);
}

// out[i] = where(sqrt(a[i]) < b[i], a[i], b[i])
KernelAst choice(bool is_rounded) {
  test::Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 64, 0, AxisKind::Loop);
  const Id a = load(g, param(g, 1, 64, false), i), b = load(g, param(g, 2, 64, false), i);
  const Id left = is_rounded ? g.unary(Op::Sqrt, a) : a;
  test::store(ast, param(g, 0, 64, true), i, g.where(g.binary(Op::CmpLt, left, b), a, b));
  return kernel_of(std::move(ast), 3);
}

TEST(MeasuredKernel, is_not_exact_where_a_rounded_value_decides_between_exact_ones) {
  EXPECT_TRUE(is_exact(choice(false)));
  EXPECT_FALSE(is_exact(choice(true)));
}

TEST(MeasuredKernel, is_exact_where_only_the_store_rounds) {
  for (bool rounds_twice : {false, true}) {
    test::Ast ast;
    Graph& g = ast.graph;
    const Id i = make_range(g, 64, 0, AxisKind::Loop);
    const Id a = g.cast(load(g, param(g, 1, 64, false, DType::BF16), i), DType::F32);
    Id value = g.cast(g.binary(Op::Mul, a, g.constant(DType::F32, 0.71875)), DType::BF16);
    if (rounds_twice) value = g.binary(Op::Add, value, value);
    test::store(ast, param(g, 0, 64, true, DType::BF16), i, value);
    EXPECT_EQ(is_exact(kernel_of(std::move(ast), 2)), !rounds_twice);
  }
}

// Whether out[i] = value(a[i], b[i]) is exact; both hold multiples of 1/8 up to 2.
template <class Make>
bool is_exact_of(const Make& value) {
  test::Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 64, 0, AxisKind::Loop);
  const Id a = load(g, param(g, 1, 64, false), i), b = load(g, param(g, 2, 64, false), i);
  test::store(ast, param(g, 0, 64, true), i, value(g, a, b));
  return is_exact(kernel_of(std::move(ast), 3));
}

TEST(MeasuredKernel, is_exact_as_far_as_the_range_of_f32) {
  const auto scaled = [](double by) {
    return is_exact_of(
        [&](Graph& g, Id a, Id) { return g.binary(Op::Mul, a, g.constant(DType::F32, by)); });
  };
  EXPECT_TRUE(scaled(0x1p119));
  EXPECT_FALSE(scaled(0x1p120)) << "near to overflow";
  EXPECT_TRUE(scaled(0x1p-117));
  EXPECT_FALSE(scaled(0x1p-118)) << "near to subnormals";
  EXPECT_TRUE(scaled(0));
}

TEST(MeasuredKernel, is_exact_where_the_finest_step_and_the_largest_value_go_together) {
  const auto added = [](double by) {
    return is_exact_of([&](Graph& g, Id a, Id b) {
      return g.binary(Op::Add, a, g.binary(Op::Mul, b, g.constant(DType::F32, by)));
    });
  };
  EXPECT_TRUE(added(0x1p-19));
  EXPECT_FALSE(added(0x1p-20));
}

TEST(MeasuredKernel, is_not_exact_where_values_are_not_those_that_it_is_given) {
  EXPECT_FALSE(is_exact_of([](Graph& g, Id, Id) {
    const Id index = make_range(g, 64, 0, AxisKind::Loop);
    return g.cast(load(g, param(g, 3, 64, false, DType::I32), index), DType::F32);
  })) << "integers reach further";
  EXPECT_FALSE(is_exact_of([](Graph& g, Id a, Id) {
    const Id factor = make_range(g, 3, 1, AxisKind::Reduce);
    const Id index = g.binary(Op::Mul, factor, g.index(4));
    const Id term = g.binary(Op::Mul, a, load(g, param(g, 1, 64, false), index));
    return test::reduce(g, Op::Mul, term, {factor});
  })) << "a product of many";
  EXPECT_TRUE(is_exact_of([](Graph& g, Id a, Id) {
    const Id row = make_range(g, 3, 1, AxisKind::Reduce);
    const Id term = g.binary(Op::Mul, a, load(g, param(g, 1, 64, false), row));
    return test::reduce(g, Op::Max, term, {row});
  }));
  test::Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 64, 0, AxisKind::Loop);
  const Id both = make_param(g, DType::F32, {0, 64, PGR_PARAM_READ | PGR_PARAM_WRITE});
  test::store(ast, both, i,
              g.binary(Op::Add, load(g, both, i), load(g, param(g, 1, 64, false), i)));
  EXPECT_FALSE(is_exact(kernel_of(std::move(ast), 2))) << "what it stores is read again";
}

class Differences : public testing::Test {
 protected:
  std::string of(std::vector<float> want, std::vector<float> have, double tolerance = 1e-5) {
    const ParamSpec spec{want.size(), static_cast<uint32_t>(DType::F32), PGR_PARAM_WRITE, 0};
    return difference(
        spec, {std::as_bytes(std::span(want)), std::as_bytes(std::span(have)), {}, tolerance});
  }
};

TEST_F(Differences, of_floats_are_those_beyond_the_tolerance) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(of({1, -2, 0}, {1.000001f, -2, -0.0f}), "");
  EXPECT_EQ(of({nan, infinity}, {-nan, infinity}), "");
  EXPECT_NE(of({1, 2}, {1, 2.001f}), "");
  EXPECT_NE(of({nan, 1}, {0, 1}), "");
  EXPECT_NE(of({infinity, 1}, {1e30f, 1}), "");
  EXPECT_NE(of({1, 1}, {1, nan}), "");
}

TEST_F(Differences, of_integers_are_all) {
  const std::vector<int32_t> want = {1, 2, 3}, have = {1, 2, 4};
  const ParamSpec spec{3, static_cast<uint32_t>(DType::I32), PGR_PARAM_WRITE, 0};
  const auto text =
      difference(spec, {std::as_bytes(std::span(want)), std::as_bytes(std::span(have)), {}, 1});
  EXPECT_EQ(text, "element 2 is 0x4, should be 0x3");
  EXPECT_EQ(
      difference(spec, {std::as_bytes(std::span(want)), std::as_bytes(std::span(want)), {}, 0}),
      "");
}

TEST(MeasuredContents, are_the_same_each_time_and_short_floats) {
  for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    const ParamSpec spec{1000, static_cast<uint32_t>(dtype), PGR_PARAM_READ, 0};
    EXPECT_EQ(contents_of(spec, 1), contents_of(spec, 1));
    EXPECT_NE(contents_of(spec, 1), contents_of(spec, 2));
  }
  const std::vector<std::byte> bytes =
      contents_of({100, static_cast<uint32_t>(DType::F32), 0, 0}, 0);
  for (size_t i = 0; i < 100; ++i) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    EXPECT_EQ(value * 8, std::trunc(value * 8));
    EXPECT_NE(value, 0);
    EXPECT_LE(std::abs(value), 2);
  }
}

}  // namespace
}  // namespace plugrad::tuning
