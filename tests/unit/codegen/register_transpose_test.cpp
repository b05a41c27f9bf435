// Results whose lanes are not contiguous in memory (register transpose): vectors of adjacent
// elements are transposed in registers and stored whole; a local buffer holds sums until the
// adjacent ones are complete (cache_write).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "kernels.h"
#include "plugrad/sdk/ir_view.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::KernelCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

pgr_device_caps with_scratch(uint32_t lanes) {
  pgr_device_caps caps = small_cpu(lanes);
  caps.private_bytes = 32 << 10;
  return caps;
}

KernelCode build_transposed(const Ast& ast, const std::string& text, uint32_t lanes = 4) {
  const auto list = codegen::parse_schedule(text);
  return codegen::generate(ast.graph, ast.sink, with_scratch(lanes), {.schedule = &list});
}

KernelCode choose(const Ast& ast, uint32_t lanes = 4) {
  return codegen::generate(ast.graph, ast.sink, with_scratch(lanes), {});
}

/// Number of stores to parameters and arrays, by width.
std::map<uint32_t, size_t> stores(const KernelCode& code) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  std::map<uint32_t, size_t> out;
  for (const pgr_ir_inst& inst : ir.insts())
    if (inst.op == PGR_OP_STORE) ++out[inst.lanes];
  return out;
}

/// out[j, i] = in[i, j]
Ast transposition(int64_t rows, int64_t columns) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, rows, 0, AxisKind::Loop);
  const Id j = make_range(g, columns, 1, AxisKind::Loop);
  const Id in = load(g, param(g, 1, rows * columns, false), affine(g, i, columns, j));
  store(ast, param(g, 0, rows * columns, true), affine(g, j, rows, i), in);
  return ast;
}

/// c[j, i] = sum over k of a[k, i] * b[k, j]
Ast turned_product(int64_t m, int64_t n, int64_t k) {
  Ast ast;
  Graph& g = ast.graph;
  const Id j = make_range(g, n, 0, AxisKind::Loop), i = make_range(g, m, 1, AxisKind::Loop);
  const Id l = make_range(g, k, 2, AxisKind::Reduce);
  const Id a = load(g, param(g, 1, m * k, false), affine(g, l, m, i));
  const Id b = load(g, param(g, 2, k * n, false), affine(g, l, n, j));
  store(ast, param(g, 0, m * n, true), affine(g, j, m, i),
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {l}));
  return ast;
}

void expect_transposed(const KernelCode& code, int64_t rows, int64_t columns) {
  std::vector<float> in(static_cast<size_t>(rows * columns)), out(in.size(), -1);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  run(code, {&out, &in});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      ASSERT_EQ(out[static_cast<size_t>(j * rows + i)], static_cast<float>(i * columns + j))
          << rows << " x " << columns << " at " << i << ", " << j;
}

std::vector<float> transposed_product(const KernelCode& code, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a = small_integers(m * k, 1), b = small_integers(k * n, 2);
  std::vector<float> c(static_cast<size_t>(m * n), -99);
  run(code, {&c, &a, &b});
  return c;
}

TEST(TransposedStores, neighbours_are_stored_together_whatever_their_number) {
  for (uint32_t lanes : {2u, 4u, 8u, 16u})
    for (int64_t rows : {1, 2, 3, 4, 7, 8, 16})
      expect_transposed(build_transposed(transposition(rows, 16),
                                         "upcast(0, " + std::to_string(rows) + ") vectorize(0, " +
                                             std::to_string(lanes) + ")",
                                         lanes),
                        rows, 16);
  const std::map<uint32_t, size_t> square = {{4, 4}}, seven = {{4, 4}, {2, 4}, {1, 4}};
  EXPECT_EQ(stores(build_transposed(transposition(4, 16), "upcast(0, 4) vectorize(0, 4)")), square);
  EXPECT_EQ(stores(build_transposed(transposition(7, 16), "upcast(0, 7) vectorize(0, 4)")), seven);
}

/// Whether each 16 bytes of every shuffled vector of f32 are a whole block of 16 bytes, or elements
/// of the blocks at the same place.
bool shuffles_within_blocks(const KernelCode& code) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  for (uint32_t number = 0; number < ir.insts().size(); ++number) {
    const auto lanes = ir.sources(number);
    if (ir.insts()[number].op != PGR_OP_VECTOR || lanes.size() == 1) continue;
    for (size_t i = 0; i < lanes.size(); ++i) {
      const uint32_t first = lanes[i / 4 * 4];
      const uint64_t from = ir.insts()[lanes[i]].arg, block = ir.insts()[first].arg;
      const bool is_whole =
          ir.source(lanes[i], 0) == ir.source(first, 0) && block % 4 == 0 && from == block + i % 4;
      if (!is_whole && from / 4 != i / 4) return false;
    }
  }
  return true;
}

TEST(TransposedStores, shuffles_stay_within_blocks_of_16_bytes) {
  for (uint32_t lanes : {4u, 8u, 16u})
    for (uint32_t rows : {2u, 4u, lanes})
      EXPECT_TRUE(shuffles_within_blocks(build_transposed(
          transposition(rows, 16),
          "upcast(0, " + std::to_string(rows) + ") vectorize(0, " + std::to_string(lanes) + ")",
          lanes)))
          << rows << " rows of " << lanes;
}

TEST(TransposedStores, are_chosen_for_a_transposition) {
  for (uint32_t lanes : {4u, 8u})
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{64, 64}, {37, 50}, {3, 100}, {100, 3}})
      expect_transposed(choose(transposition(rows, columns), lanes), rows, columns);
  EXPECT_THAT(stores(choose(transposition(64, 64))), ElementsAre(Key(4)));
}

TEST(StagedResult, waits_in_scratch_and_is_stored_in_whole_vectors) {
  const int64_t m = 24, n = 20, k = 5;
  const std::vector<float> expected =
      transposed_product(build_transposed(turned_product(m, n, k), ""), m, n, k);
  for (const char* list :
       {"vectorize(0, 4) stage(0, 0)", "vectorize(0, 4) block(1, 4) stage(0, 2)", "stage(0, 1)",
        "vectorize(0, 8) upcast(1, 3) block(1, 4) stage(0, 2) thread(0, 0)",
        "vectorize(0, 4) block(1, 7) stage(0, 2) thread(0, 0)", "vectorize(1, 4) stage(0, 1)"})
    EXPECT_EQ(transposed_product(build_transposed(turned_product(m, n, k), list), m, n, k),
              expected)
        << list;
  const KernelCode code =
      build_transposed(turned_product(m, n, k), "vectorize(0, 4) block(1, 4) stage(0, 2)");
  EXPECT_THAT(stores(code), ElementsAre(Key(4)));
}

std::string transpose_refusal(const Ast& ast, const std::string& list) {
  try {
    build_transposed(ast, list);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(StagedResult, is_refused_where_it_would_be_read_too_early_or_does_not_vary) {
  const Ast ast = turned_product(8, 8, 16);
  EXPECT_THAT(transpose_refusal(ast, "block(2, 4) accumulate(2, 0) stage(0, 2)"),
              HasSubstr("the kernel reads it too"));
  EXPECT_THAT(transpose_refusal(ast, "stage(0, 2)"),
              HasSubstr("no stored value of the parameter varies inside"));
  EXPECT_THAT(transpose_refusal(ast, "thread(0, 0) stage(0, 0)"), HasSubstr("is no loop"));
  EXPECT_THAT(transpose_refusal(turned_product(1 << 10, 1 << 10, 4), "stage(0, 0)"),
              HasSubstr("bytes, the device has"));
}

}  // namespace
}  // namespace plugrad::test
