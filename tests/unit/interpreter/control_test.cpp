#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/sdk/guard.h"
#include "run_op.h"

namespace plugrad::sdk {
namespace {

std::string control_error(const IrBuilder& b, std::vector<InterpreterBuffer> buffers,
                          std::vector<uint64_t> scalars = {}) {
  try {
    run_kernel(b, std::move(buffers), std::move(scalars));
  } catch (const StatusError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Control, LoopsCountFromBeginUpToEnd) {
  IrBuilder b("sum");
  auto out = b.buffer(I32, 1);
  auto sum = b.array(PGR_SPACE_PRIVATE, I32, 1);
  auto zero = b.constant_int(I32, 0), three = b.constant_int(I32, 3), six = b.constant_int(I32, 6);
  b.store(sum, zero, zero);
  auto i = b.loop(three, six);  // 3, 4, 5
  auto j = b.loop(zero, i);     // i times
  b.store(sum, zero, b.alu(PGR_OP_ADD, {b.load(sum, zero), j}));
  b.end_loop(j);
  b.end_loop(i);
  auto never = b.loop(six, three);
  b.store(sum, zero, never);
  b.end_loop(never);
  b.store(out, zero, b.load(sum, zero));
  int32_t memory = 0;
  run_kernel(b, {{&memory, 4}});
  EXPECT_EQ(memory, (0 + 1 + 2) + (0 + 1 + 2 + 3) + (0 + 1 + 2 + 3 + 4));
}

TEST(Control, IfRunsItsBlockOnlyWhereTrue) {
  IrBuilder b("k");
  b.set_groups(4);
  auto out = b.buffer(I32, 4);
  auto g = b.group_id(0), two = b.constant_int(I32, 2);
  auto block = b.begin_if(b.alu(PGR_OP_CMPLT, {g, two}));
  b.store(out, g, two);
  b.end_if(block);
  int32_t memory[4] = {9, 9, 9, 9};
  run_kernel(b, {{memory, sizeof memory}});
  EXPECT_EQ(std::vector(memory, memory + 4), (std::vector{2, 2, 9, 9}));
}

TEST(Control, GroupIdsCoverAllAxes) {
  IrBuilder b("k");
  b.set_groups(2, 3, 4);
  auto out = b.buffer(I32, 24);
  auto x = b.group_id(0), y = b.group_id(1), z = b.group_id(2);
  auto zy = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {z, b.constant_int(I32, 3)}), y});
  auto index = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {zy, b.constant_int(I32, 2)}), x});
  b.store(out, index, index);
  std::vector<int32_t> memory(24, -1);
  run_kernel(b, {{memory.data(), 96}});
  for (int i = 0; i < 24; ++i) EXPECT_EQ(memory[i], i);
}

// Each work-item writes its id to local memory and reads its neighbour's, in both directions of a
// loop.
IrBuilder rotate_kernel(bool with_barrier) {
  IrBuilder b("rotate");
  b.set_local(8);
  auto out = b.buffer(I32, 8);
  auto tile = b.array(PGR_SPACE_LOCAL, I32, 8);
  auto id = b.local_id(0), zero = b.constant_int(I32, 0), rounds = b.constant_int(I32, 3);
  auto one = b.constant_int(I32, 1), mask = b.constant_int(I32, 7);
  b.store(tile, id, id);
  auto i = b.loop(zero, rounds);
  if (with_barrier) b.barrier();
  auto next = b.alu(PGR_OP_AND, {b.alu(PGR_OP_ADD, {id, one}), mask});
  auto value = b.load(tile, next);
  if (with_barrier) b.barrier();
  b.store(tile, id, value);
  b.end_loop(i);
  b.store(out, id, b.load(tile, id));
  return b;
}

TEST(Control, BarriersOrderTheWorkItemsOfAGroup) {
  int32_t memory[8];
  run_kernel(rotate_kernel(true), {{memory, sizeof memory}});
  EXPECT_EQ(std::vector(memory, memory + 8), (std::vector{3, 4, 5, 6, 7, 0, 1, 2}));
  run_kernel(rotate_kernel(false), {{memory, sizeof memory}});
  EXPECT_NE(std::vector(memory, memory + 8), (std::vector{3, 4, 5, 6, 7, 0, 1, 2}));
}

TEST(Control, ABarrierThatSomeItemsMissIsAnError) {
  IrBuilder b("k");
  b.set_local(2);
  auto id = b.local_id(0), one = b.constant_int(I32, 1);
  auto block = b.begin_if(b.alu(PGR_OP_CMPLT, {id, one}));
  b.barrier();
  b.end_if(block);
  EXPECT_THAT(control_error(b, {}),
              testing::HasSubstr("(BARRIER): work-items of one group do not all"));
}

TEST(Control, ScalarsArriveAndAreChecked) {
  IrBuilder b("k");
  auto out = b.buffer(I32, 1);
  auto n = b.scalar(I32, 1, 100);
  b.store(out, b.constant_int(I32, 0), n);
  int32_t memory = 0;
  run_kernel(b, {{&memory, 4}}, {42});
  EXPECT_EQ(memory, 42);
  EXPECT_EQ(control_error(b, {{&memory, 4}}, {101}),
            "kernel k: parameter 1 is 101, was built for 1 to 100");
  EXPECT_EQ(control_error(b, {{&memory, 4}}), "kernel k: parameter 1 has no value");
  EXPECT_EQ(control_error(b, {{&memory, 2}}, {1}),
            "kernel k: parameter 0 has a buffer of 2 bytes, needs 4");
  EXPECT_EQ(control_error(b, {}, {1}), "kernel k: parameter 0 has no buffer");
}

TEST(Control, OtherLaunchSizesAreRefused) {
  IrBuilder b("k");
  b.set_groups(2);
  const Interpreter interpreter(decode_ir(b.finish()));
  EXPECT_NO_THROW(interpreter.run({{}, {}, {1, 1, 1}, {1, 1, 1}}));
  EXPECT_NO_THROW(interpreter.run({{}, {}, {0, 1, 1}, {1, 1, 1}}));
  EXPECT_THROW(interpreter.run({{}, {}, {3, 1, 1}, {1, 1, 1}}), StatusError);
  EXPECT_THROW(interpreter.run({{}, {}, {1, 1, 1}, {2, 1, 1}}), StatusError);
}

TEST(Control, WmmaIsUnsupported) {
  IrBuilder b("k");
  auto c = b.constant_float(F32, 1);
  b.emit(PGR_OP_WMMA, F32, 1, {c, c, c});
  try {
    Interpreter interpreter(decode_ir(b.finish()));
    FAIL();
  } catch (const StatusError& e) {
    EXPECT_EQ(e.status(), PGR_STATUS_UNSUPPORTED);
    EXPECT_STREQ(e.what(), "kernel k, instruction 1: WMMA by tensor core 0 of a device that has 0");
  }
}

}  // namespace
}  // namespace plugrad::sdk
