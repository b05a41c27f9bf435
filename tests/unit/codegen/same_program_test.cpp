// When kernel IR that takes numbers at launch computes the bits of IR that has them as constants.
#include "codegen/analysis/same_program.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "codegen/codegen.h"
#include "unit/codegen/kernels.h"
#include "unit/codegen/run.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kSize = 24;

using Bytes = std::vector<std::byte>;
using Element = std::function<Id(Graph& g, const std::function<Id(int64_t)>& x)>;

// out[i] = element(x), where x(offset) is x[i + offset].
Bytes ir_of(const Element& element) {
  test::Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kSize, 0, AxisKind::Loop);
  const Id x = test::param(g, 1, 4 * kSize, false);
  const auto at = [&](int64_t offset) {
    return test::load(g, x, g.binary(Op::Add, i, g.index(offset)));
  };
  test::store(ast, test::param(g, 0, kSize, true), i, element(g, at));
  const pgr_device_caps caps = test::small_cpu();
  return generate(g, ast.sink, caps, {.no_opt = true}).ir;
}

uint64_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

Id number(Graph& g) {
  return make_scalar(g, 0, DType::F32);
}

TEST(SameProgram, ANumberIsTheConstant) {
  const Bytes constant =
      ir_of([](Graph& g, auto x) { return g.binary(Op::Mul, x(1), g.constant(DType::F32, 2.5)); });
  const Bytes taking = ir_of([](Graph& g, auto x) { return g.binary(Op::Mul, x(1), number(g)); });
  for (const float value : {2.5f, 2.25f}) {
    const uint64_t numbers[] = {bits(value)};
    EXPECT_EQ(is_same_program(constant, taking, numbers), value == 2.5f);
  }
}

TEST(SameProgram, EachNumberIsUsed) {
  const Bytes constant = ir_of([](Graph&, auto x) { return x(0); });
  const uint64_t numbers[] = {bits(1)};
  EXPECT_FALSE(is_same_program(constant, constant, numbers));
  EXPECT_TRUE(is_same_program(constant, constant, {}));
}

// The terms of a sum, and those of one that takes a number.
struct SumOrder {
  const char* name;
  bool is_same;
  Element sum;
};

TEST(SameProgram, SumsOfOneOrderOfTheSameElements) {
  const auto add = [](Graph& g, Id a, Id b) { return g.binary(Op::Add, a, b); };
  const Bytes constant = ir_of([&](Graph& g, auto x) {
    return add(g, add(g, x(0), x(kSize)), g.constant(DType::F32, 0.5));
  });
  const SumOrder orders[] = {
      {"equal", true, [&](Graph& g, auto x) { return add(g, add(g, x(0), x(kSize)), number(g)); }},
      {"commuted", true,
       [&](Graph& g, auto x) { return add(g, add(g, x(kSize), x(0)), number(g)); }},
      {"other order", false,
       [&](Graph& g, auto x) { return add(g, add(g, x(0), number(g)), x(kSize)); }},
      {"other element", false,
       [&](Graph& g, auto x) { return add(g, add(g, x(0), x(kSize + 1)), number(g)); }},
      {"other op", false,
       [&](Graph& g, auto x) { return g.binary(Op::Mul, add(g, x(0), x(kSize)), number(g)); }},
      {"a negative", false,
       [&](Graph& g, auto x) {
         return add(g, add(g, x(0), x(kSize)), g.unary(Op::Neg, number(g)));
       }},
  };
  const uint64_t numbers[] = {bits(0.5)};
  for (const SumOrder& order : orders)
    EXPECT_EQ(is_same_program(constant, ir_of(order.sum), numbers), order.is_same) << order.name;
}

// An offset given at launch is the constant offset where the index is the same.
TEST(SameProgram, OffsetsByTheirValues) {
  const auto part = [](const std::function<Id(Graph&)>& offset, bool rounds) {
    return ir_of([&](Graph& g, auto x) {
      const Node load = g[x(0)];
      const Id index = g.binary(Op::Add, load.src[1], offset(g));
      const Id read = g.add(Op::Load, DType::F32, {load.src[0], index});
      return rounds ? g.binary(Op::Add, read, g.constant(DType::F32, 0.5)) : read;
    });
  };
  const auto fixed = [](Graph& g) { return g.index(2 * kSize); };
  const auto given = [](Graph& g) {
    return g.binary(Op::Mul, make_scalar(g, 0, 3), g.index(kSize));
  };
  for (const uint64_t row : {1, 2}) {
    const uint64_t numbers[] = {row};
    EXPECT_EQ(is_same_program(part(fixed, true), part(given, true), numbers), row == 2);
    // Kernels that only move elements cannot round them differently.
    EXPECT_TRUE(is_same_program(part(fixed, false), part(given, false), numbers));
  }
}

}  // namespace
}  // namespace plugrad::codegen
