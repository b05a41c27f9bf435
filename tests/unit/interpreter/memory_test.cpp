#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plugrad/sdk/guard.h"
#include "run_op.h"

namespace plugrad::sdk {
namespace {

std::string error_of(const IrBuilder& b, std::vector<InterpreterBuffer> buffers) {
  try {
    run_kernel(b, std::move(buffers));
  } catch (const StatusError& e) {
    EXPECT_EQ(e.status(), PGR_STATUS_LAUNCH_FAILED);
    return e.what();
  }
  return "no error";
}

TEST(Memory, EveryDtypeIsMovedUnchanged) {
  for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
    IrBuilder b("copy");
    auto out = b.buffer(dtype, 4), in = b.buffer(dtype, 4);
    auto zero = b.constant_int(I32, 0);
    b.store(out, zero, b.load(in, zero, 4));
    const uint32_t size = dtype_size(dtype);
    std::vector<uint8_t> from(size * 4), to(size * 4, 0xee);
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = dtype == PGR_DTYPE_BOOL ? i % 2 : static_cast<uint8_t>(0xf1 - 3 * i);
    run_kernel(b, {{to.data(), to.size()}, {from.data(), from.size()}});
    EXPECT_EQ(from, to) << dtype_name(dtype);
  }
}

TEST(Memory, IndexOutsideIsAnErrorWithItsLimits) {
  IrBuilder b("k");
  b.set_groups(5);
  auto out = b.buffer(I32, 4);
  auto g = b.group_id(0);
  b.store(out, g, g);
  int32_t memory[5] = {};
  EXPECT_EQ(error_of(b, {{memory, sizeof memory}}),
            "kernel k, group (4, 0, 0), instruction 2 (STORE): index 4 is outside [0, 4) of "
            "parameter 0");
  EXPECT_EQ(memory[4], 0);
}

TEST(Memory, NegativeIndexAndLastLaneAreChecked) {
  IrBuilder b("k");
  auto in = b.buffer(I32, 4);
  b.load(in, b.constant_int(I32, -1));
  int32_t memory[4] = {};
  EXPECT_THAT(error_of(b, {{memory, 16}}), testing::HasSubstr("index -1 is outside [0, 4)"));
  IrBuilder v("v");
  auto vin = v.buffer(I32, 4);
  v.load(vin, v.constant_int(I32, 2), 4);
  EXPECT_THAT(error_of(v, {{memory, 16}}),
              testing::HasSubstr("index 2 + lane 2 is outside [0, 4)"));
}

TEST(Memory, ClosedGatesReadNothingAndGiveTheOtherValue) {
  IrBuilder b("k");
  auto out = b.buffer(I32, 4), in = b.buffer(I32, 2);
  auto zero = b.constant_int(I32, 0);
  auto lanes =
      b.vector({zero, b.constant_int(I32, 1), b.constant_int(I32, 2), b.constant_int(I32, 3)});
  auto gate = b.alu(PGR_OP_CMPLT, {lanes, b.constant_int(I32, 2)});
  b.store(out, zero, b.load_gated(in, zero, gate, b.constant_int(I32, -5), 4));
  int32_t to[4], from[2] = {7, 8};
  run_kernel(b, {{to, 16}, {from, 8}});
  EXPECT_EQ(std::vector(to, to + 4), (std::vector{7, 8, -5, -5}));
}

TEST(Memory, ALaneBeforeTheMemoryMayBeClosed) {
  for (const int first : {1, 0}) {  // the first enabled lane
    IrBuilder b("k");
    auto out = b.buffer(I32, 4), in = b.buffer(I32, 3);
    auto zero = b.constant_int(I32, 0);
    auto lanes =
        b.vector({zero, b.constant_int(I32, 1), b.constant_int(I32, 2), b.constant_int(I32, 3)});
    auto gate = b.alu(PGR_OP_CMPLT, {b.constant_int(I32, first - 1), lanes});
    b.store(out, zero, b.load_gated(in, b.constant_int(I32, -1), gate, zero, 4));
    int32_t to[4], from[3] = {7, 8, 9};
    const std::vector<InterpreterBuffer> memory = {{to, 16}, {from, 12}};
    if (first == 0) {
      EXPECT_THAT(error_of(b, memory), testing::HasSubstr("index -1 is outside [0, 3)"));
      continue;
    }
    run_kernel(b, memory);
    EXPECT_EQ(std::vector(to, to + 4), (std::vector{0, 7, 8, 9}));
  }
}

TEST(Memory, ClosedGatesWriteNothing) {
  IrBuilder b("k");
  b.set_groups(8);
  auto out = b.buffer(I32, 4);
  auto g = b.group_id(0);
  b.store_gated(out, g, g, b.alu(PGR_OP_CMPLT, {g, b.constant_int(I32, 4)}));
  int32_t memory[4];
  run_kernel(b, {{memory, 16}});
  EXPECT_EQ(std::vector(memory, memory + 4), (std::vector{0, 1, 2, 3}));
}

TEST(Memory, AtomicAddCollectsAllGroups) {
  IrBuilder b("k");
  b.set_groups(10);
  b.set_local(10);
  auto out = b.buffer(F32, 1);
  b.atomic_add(out, b.constant_int(I32, 0), b.cast(b.local_id(0), F32));
  float memory = 1;
  run_kernel(b, {{&memory, 4}});
  EXPECT_EQ(memory, 451);
}

TEST(Memory, AnUnwrittenArrayReadsAsNan) {
  IrBuilder b("k");
  auto out = b.buffer(F32, 1);
  auto array = b.array(PGR_SPACE_PRIVATE, F32, 4);
  auto zero = b.constant_int(I32, 0);
  b.store(out, zero, b.load(array, zero));
  float memory = 1;
  run_kernel(b, {{&memory, 4}});
  EXPECT_TRUE(std::isnan(memory));
}

TEST(Memory, PrivateArraysBelongToOneWorkItem) {
  IrBuilder b("k");
  b.set_local(4);
  auto out = b.buffer(I32, 4);
  auto array = b.array(PGR_SPACE_PRIVATE, I32, 1);
  auto id = b.local_id(0), zero = b.constant_int(I32, 0);
  b.store(array, zero, id);
  b.barrier();
  b.store(out, id, b.load(array, zero));
  int32_t memory[4];
  run_kernel(b, {{memory, 16}});
  EXPECT_EQ(std::vector(memory, memory + 4), (std::vector{0, 1, 2, 3}));
}

TEST(Memory, UnalignedGroupOfAnArrayIsAnError) {
  IrBuilder b("k");
  auto array = b.array(PGR_SPACE_PRIVATE, I32, 8, 4);
  b.load(array, b.constant_int(I32, 2), 4);
  EXPECT_THAT(error_of(b, {}),
              testing::HasSubstr("index 2 is not a multiple of the array's 4 lanes"));
}

}  // namespace
}  // namespace plugrad::sdk
