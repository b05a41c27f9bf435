// Adjacent elements are loaded as whole vectors, and lanes are extracted from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels.h"
#include "plugrad/sdk/ir_view.h"
#include "run.h"

namespace plugrad::test {
namespace {

struct Picked {
  std::vector<float> values;
  std::vector<uint32_t> lanes;  // of each load
};

// out[i] = in[first + stride * i] for four lanes; `in` ends with the last element needed, and the
// interpreter rejects a load beyond it.
Picked pick(int64_t first, int64_t stride) {
  Ast ast;
  Graph& g = ast.graph;
  const int64_t needed = first + (stride > 0 ? 3 * stride : 0) + 1;
  const Id i = make_range(g, 4, 0, AxisKind::Loop);
  const Id at = g.binary(Op::Add, g.binary(Op::Mul, i, g.index(stride)), g.index(first));
  store(ast, param(g, 0, 4, true), i, load(g, param(g, 1, needed, false), at));
  const auto list = codegen::parse_schedule("vectorize(0, 4)");
  const auto code = codegen::generate(g, ast.sink, small_cpu(), {.schedule = &list});
  Picked out;
  out.values.resize(4);
  std::vector<float> in;
  for (int64_t k = 0; k < needed; ++k) in.push_back(static_cast<float>(k));
  run(code, {&out.values, &in});
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  for (const pgr_ir_inst& inst : ir.insts())
    if (inst.op == PGR_OP_LOAD) out.lanes.push_back(inst.lanes);
  return out;
}

TEST(PickedLanes, ComeFromWholeVectorsThatEndWithTheLastElement) {
  using testing::ElementsAre;
  const Picked second = pick(1, 2), third = pick(0, 3), reversed = pick(3, -1), back = pick(6, -2);
  EXPECT_THAT(second.values, ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(second.lanes, ElementsAre(4, 4));  // 1 to 4 and 4 to 7
  EXPECT_THAT(third.values, ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(third.lanes, ElementsAre(4, 4, 4));
  EXPECT_THAT(reversed.values, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(reversed.lanes, ElementsAre(4));
  EXPECT_THAT(back.values, ElementsAre(6, 4, 2, 0));
  EXPECT_THAT(back.lanes, ElementsAre(4, 4));
}

}  // namespace
}  // namespace plugrad::test
