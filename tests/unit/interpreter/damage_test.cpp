// Kernels with damaged bytes: the decoder refuses them or the interpreter runs them, and neither
// accesses memory outside the kernel's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plugrad/sdk/guard.h"
#include "run_op.h"

namespace plugrad::sdk {
namespace {

constexpr uint64_t kElements = 64;

// Something of everything: lanes from the operand table, arrays, a loop, a gate, a barrier, a
// scalar.
std::vector<std::byte> rich_kernel() {
  IrBuilder b("rich");
  b.set_groups(2);
  b.set_local(4);
  auto out = b.buffer(F32, kElements), in = b.buffer(F32, kElements);
  auto n = b.scalar(I32, 0, 8);
  auto tile = b.array(PGR_SPACE_LOCAL, F32, 16, 4), sum = b.array(PGR_SPACE_PRIVATE, F32, 1);
  auto id = b.local_id(0), zero = b.constant_int(I32, 0), four = b.constant_int(I32, 4);
  auto at = b.alu(PGR_OP_MUL, {id, four});
  auto x = b.load(in, at, 4);
  b.store(tile, at, b.alu(PGR_OP_SQRT, {x}));
  b.store(sum, zero, b.constant_float(F32, 0));
  b.barrier();
  auto i = b.loop(zero, n);
  auto gate = b.alu(PGR_OP_CMPLT, {i, four});
  auto y = b.load_gated(in, i, gate, b.constant_float(F32, 1));
  b.store(sum, zero, b.alu(PGR_OP_FMA, {y, y, b.load(sum, zero)}));
  b.end_loop(i);
  auto block = b.begin_if(b.alu(PGR_OP_CMPNE, {id, zero}));
  auto total = b.load(sum, zero);
  auto wide = b.vector({total, y = b.load(in, id), total, y, b.lane(x, 2, 2), b.lane(x, 0, 2)});
  b.store(out, at, wide);
  b.end_if(block);
  return b.finish();
}

// Damage to a size is not worth gigabytes of memory here.
bool is_small(const IrView& ir) {
  uint64_t items = 1, elements = 0;
  for (uint32_t size : ir.header().local_size) items *= size;
  for (const pgr_ir_array& array : ir.arrays()) elements = std::max(elements, array.elem_count);
  return items <= 256 && elements <= 4096;
}

std::string outcome(std::span<const std::byte> block) {
  std::vector<float> out(kElements), in(kElements, 2.0f);
  const InterpreterBuffer buffers[] = {{out.data(), kElements * 4}, {in.data(), kElements * 4}};
  const uint64_t scalars[] = {5};
  try {
    IrView ir = decode_ir(block);
    const pgr_ir_header h = ir.header();
    if (!is_small(ir)) return "not run";
    const Interpreter interpreter(std::move(ir));
    InterpreterLaunch launch{buffers, scalars};
    for (int axis = 0; axis < 3; ++axis) {
      launch.group_count[axis] = std::min<uint64_t>(h.group_count[axis], 2);
      launch.local_size[axis] = h.local_size[axis];
    }
    launch.iteration_limit = 1000;
    interpreter.run(launch);
  } catch (const StatusError& e) {
    return e.status() == PGR_STATUS_INTERNAL ? "INTERNAL" : e.what();
  }
  return "ran";
}

TEST(Damage, TheKernelItselfRuns) {
  EXPECT_EQ(outcome(rich_kernel()), "ran");
}

TEST(Damage, AnyDamageIsAnErrorOrRuns) {
  const std::vector<std::byte> good = rich_kernel();
  std::mt19937 generator(7);
  const auto random = [&] { return static_cast<uint32_t>(generator()); };
  int ran = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> block = good;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      // Small numbers are likelier to be valid somewhere else than random bytes.
      const uint32_t value = random() % 2 ? random() % 48 : random();
      block[random() % block.size()] = std::byte(value);
    }
    const std::string what = outcome(block);
    ASSERT_NE(what, "INTERNAL") << "round " << round;
    ++(what == "ran" ? ran : refused);
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(refused, 1000);
}

TEST(Damage, EndlessLoopsEndAtTheLimit) {
  IrBuilder b("k");
  auto zero = b.constant_int(PGR_DTYPE_I64, 0), huge = b.constant_int(PGR_DTYPE_I64, INT64_MAX);
  b.end_loop(b.loop(zero, huge));
  const Interpreter interpreter(decode_ir(b.finish()));
  InterpreterLaunch launch;
  launch.iteration_limit = 1000;
  try {
    interpreter.run(launch);
    FAIL();
  } catch (const StatusError& e) {
    EXPECT_EQ(e.status(), PGR_STATUS_TIMED_OUT);
    EXPECT_THAT(e.what(), testing::HasSubstr("more iterations than the limit"));
  }
}

TEST(Damage, GroupsLargerThanMemoryAreRefused) {
  IrBuilder b("k");
  b.set_local(65536, 4096);
  try {
    const Interpreter interpreter(decode_ir(b.finish()));
    FAIL();
  } catch (const StatusError& e) {
    EXPECT_EQ(e.status(), PGR_STATUS_LIMIT_EXCEEDED);
    EXPECT_THAT(e.what(), testing::HasSubstr("a group of 268435456 work-items"));
  }
}

}  // namespace
}  // namespace plugrad::sdk
