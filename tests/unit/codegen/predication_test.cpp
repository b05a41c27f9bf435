// Sums over padded image windows with copies along the image: elements outside are guarded by a
// branch, and no factor is selected by a mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels.h"
#include "plugrad/sdk/ir_view.h"
#include "run.h"

namespace plugrad::test {
namespace {

constexpr int64_t kWidth = 8, kTaps = 3, kChannels = 4, kInputs = 5;
constexpr float kInf = std::numeric_limits<float>::infinity();

// out[x, k] = op over c and t with 0 <= x + t - 1 < 8 of in[c, x + t - 1] * w[c, t, k]
Ast predicated_windows(Op op) {
  Ast ast;
  Graph& g = ast.graph;
  const Id x = make_range(g, kWidth, 0, AxisKind::Loop),
           k = make_range(g, kChannels, 1, AxisKind::Loop);
  const Id c = make_range(g, kInputs, 2, AxisKind::Reduce),
           t = make_range(g, kTaps, 3, AxisKind::Reduce);
  const Id place = g.binary(Op::Add, g.binary(Op::Add, x, t), g.index(-1));
  const Id inside = g.binary(Op::And, g.binary(Op::CmpLt, g.index(-1), place),
                             g.binary(Op::CmpLt, place, g.index(kWidth)));
  const Id pixel = g.add(Op::Load, DType::F32,
                         {param(g, 1, kInputs * kWidth, false), affine(g, c, kWidth, place), inside,
                          g.constant(DType::F32, 0.0)});
  const Id weight = load(g, param(g, 2, kInputs * kTaps * kChannels, false),
                         affine(g, affine(g, c, kTaps, t), kChannels, k));
  const Id nothing = g.constant(DType::F32, op == Op::Add ? 0.0 : -double{kInf});
  const Id term = g.where(inside, g.binary(Op::Mul, pixel, weight), nothing);
  store(ast, param(g, 0, kWidth * kChannels, true), affine(g, x, kChannels, k),
        reduce(g, op, term, {c, t}));
  return ast;
}

std::vector<float> loops(Op op, const std::vector<float>& in, const std::vector<float>& w) {
  std::vector<float> out;
  for (int64_t x = 0; x < kWidth; ++x)
    for (int64_t k = 0; k < kChannels; ++k) {
      float all = op == Op::Add ? 0 : -kInf;
      for (int64_t c = 0; c < kInputs; ++c)
        for (int64_t t = 0; t < kTaps; ++t) {
          const int64_t place = x + t - 1;
          if (place < 0 || place >= kWidth) continue;
          const float term = in[static_cast<size_t>(c * kWidth + place)] *
                             w[static_cast<size_t>((c * kTaps + t) * kChannels + k)];
          all = op == Op::Add ? all + term : std::max(all, term);
        }
      out.push_back(all);
    }
  return out;
}

codegen::KernelCode build_predicated(const Ast& ast, const std::string& text,
                                     const pgr_device_caps& caps) {
  const auto list = codegen::parse_schedule(text);
  return codegen::generate(ast.graph, ast.sink, caps, {.schedule = &list});
}

size_t count(const codegen::KernelCode& code, uint16_t op, uint32_t lanes) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  return static_cast<size_t>(std::ranges::count_if(
      ir.insts(), [&](const pgr_ir_inst& inst) { return inst.op == op && inst.lanes == lanes; }));
}

std::vector<float> result(const codegen::KernelCode& code, std::vector<float> in,
                          std::vector<float> w) {
  std::vector<float> out(kWidth * kChannels, -1);
  run(code, {&out, &in, &w});
  return out;
}

class TermBlocks : public testing::TestWithParam<Op> {};
std::string op_name(const testing::TestParamInfo<Op>& tested) {
  return tested.param == Op::Add ? "Sum" : "Maximum";
}
INSTANTIATE_TEST_SUITE_P(SumsAndMaxima, TermBlocks, testing::Values(Op::Add, Op::Max), op_name);

TEST_P(TermBlocks, AreBranchesWhereAllLanesHaveOneCondition) {
  const std::vector<float> in = small_integers(kInputs * kWidth, 1),
                           w = small_integers(kInputs * kTaps * kChannels, 2);
  for (const char* list :
       {"vectorize(1, 4) upcast(0, 4)", "vectorize(1, 4) upcast(0, 8)",
        "vectorize(1, 4) upcast(0, 3)", "unroll(2, 5) vectorize(1, 4) upcast(0, 2)"}) {
    const auto code = build_predicated(predicated_windows(GetParam()), list, small_cpu());
    EXPECT_GT(count(code, PGR_OP_IF, 1), 0u) << list;
    EXPECT_EQ(count(code, PGR_OP_WHERE, 4), 0u) << list;
    EXPECT_EQ(result(code, in, w), loops(GetParam(), in, w)) << list;
  }
}

TEST_P(TermBlocks, AreMasksWhereLanesDiffer) {
  const std::vector<float> in = small_integers(kInputs * kWidth, 3),
                           w = small_integers(kInputs * kTaps * kChannels, 4);
  const auto code =
      build_predicated(predicated_windows(GetParam()), "vectorize(0, 4) upcast(1, 2)", small_cpu());
  EXPECT_EQ(count(code, PGR_OP_IF, 1), 0u);
  EXPECT_EQ(result(code, in, w), loops(GetParam(), in, w));
}

// The taps outside of the image for the first and the last pixel.
TEST(TermBlocks, WhatIsOutsideIsInNoProduct) {
  const std::vector<float> in = small_integers(kInputs * kWidth, 5);
  std::vector<float> w = small_integers(kInputs * kTaps * kChannels, 6);
  w[0] = kInf;                           // tap 0 of channel 0
  w[2 * kChannels + 1] = std::nanf("");  // tap 2 of channel 1
  const std::vector<float> expected = loops(Op::Add, in, w);
  const auto out = result(
      build_predicated(predicated_windows(Op::Add), "vectorize(1, 4) upcast(0, 4)", small_cpu()),
      in, w);
  EXPECT_TRUE(std::isfinite(expected[0]));
  EXPECT_TRUE(std::isfinite(expected[7 * kChannels + 1]));
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_TRUE(out[i] == expected[i] || (std::isnan(out[i]) && std::isnan(expected[i])))
        << i << ": " << out[i] << " and not " << expected[i];
}

}  // namespace
}  // namespace plugrad::test
