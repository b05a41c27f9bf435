// Tests the generator of random kernels: its kernels are valid, run, use the claims and can be
// compared bitwise; kernels that cannot be compared are recognised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "conformance/kernels/random/random_kernel.h"
#include "plugrad/sdk/interpreter.h"

namespace plugrad::conformance {
namespace {

using ::testing::HasSubstr;

// A device that claims everything, like the reference plugin.
pgr_device_caps all_caps() {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (uint32_t& dtypes : caps.op_dtypes) dtypes = 0xfffe;
  caps.storage_dtypes = 0xfffe;
  for (uint32_t& lanes : caps.vector_lanes) lanes = 64;
  caps.has_local = 1;
  caps.max_local_total = 1024;
  for (uint32_t& size : caps.max_local_size) size = 1024;
  caps.local_bytes = 65536;
  return caps;
}

void run(const sdk::IrView& ir) {
  std::vector<Bytes> memory;
  std::vector<sdk::InterpreterBuffer> buffers;
  std::vector<uint64_t> scalars;
  for (const pgr_ir_param& param : ir.params())
    if (param.kind == PGR_PARAM_SCALAR)
      scalars.push_back(static_cast<uint64_t>(param.max));
    else
      memory.emplace_back(param.elem_count * sdk::dtype_size(param.dtype));
  for (Bytes& bytes : memory) buffers.push_back({bytes.data(), bytes.size()});
  sdk::InterpreterLaunch launch;
  launch.buffers = buffers;
  launch.scalars = scalars;
  std::copy_n(ir.header().group_count, 3, launch.group_count.begin());
  std::copy_n(ir.header().local_size, 3, launch.local_size.begin());
  sdk::Interpreter(ir).run(launch);
}

TEST(RandomKernels, AreValidAndCanBeCompared) {
  const pgr_device_caps caps = all_caps();
  std::set<uint32_t> ops, dtypes, lanes;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const sdk::IrView ir = sdk::decode_ir(make_random_kernel(caps, random));
    ASSERT_EQ(make_comparison(ir, caps).obstacle, "") << "seed " << seed << "\n" << print_ir(ir);
    ASSERT_NO_THROW(run(ir)) << "seed " << seed << "\n" << print_ir(ir);
    for (const pgr_ir_inst& inst : ir.insts()) {
      ops.insert(inst.op);
      dtypes.insert(inst.dtype);
      lanes.insert(inst.lanes);
    }
  }
  for (const sdk::OpInfo& op : sdk::all_ops()) {
    const bool is_used =
        op.number != PGR_OP_NOP && (op.number < PGR_OP_WMMA || op.number > PGR_OP_ASYNC_WAIT);
    EXPECT_EQ(ops.contains(op.number), is_used) << op.name;
  }
  EXPECT_EQ(dtypes.size(), size_t{PGR_DTYPE_COUNT});
  EXPECT_EQ(lanes.size(), 7u);
}

TEST(RandomKernels, UseWhatIsClaimedAlone) {
  pgr_device_caps caps = all_caps();
  for (uint32_t& width : caps.vector_lanes) width = 1;
  caps.has_local = 0;
  caps.op_dtypes[PGR_OP_EXP2] = caps.op_dtypes[PGR_OP_ATOMIC_ADD] = 0;
  caps.op_dtypes[PGR_OP_SQRT] = 1u << PGR_DTYPE_F32;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const sdk::IrView ir = sdk::decode_ir(make_random_kernel(caps, random));
    for (const pgr_ir_inst& inst : ir.insts()) {
      ASSERT_EQ(inst.lanes, 1) << print_ir(ir);
      ASSERT_TRUE(inst.op != PGR_OP_EXP2 && inst.op != PGR_OP_ATOMIC_ADD &&
                  inst.op != PGR_OP_BARRIER)
          << print_ir(ir);
      ASSERT_TRUE(inst.op != PGR_OP_SQRT || inst.dtype == PGR_DTYPE_F32) << print_ir(ir);
    }
  }
}

// The obstacle of a kernel that stores the result of `make` on a loaded f32.
std::string obstacle_of(uint32_t dtype, Value (*make)(IrBuilder& ir, Value loaded)) {
  IrBuilder ir("k");
  const Value input = ir.buffer(PGR_DTYPE_F32, 4, kInput), output = ir.buffer(dtype, 4, kOutput);
  const Value zero = index_constant(ir, 0);
  ir.store(output, zero, make(ir, ir.load(input, zero)));
  return make_comparison(sdk::decode_ir(ir.finish()), all_caps()).obstacle;
}

TEST(RandomKernels, ThatADeviceMayComputeOtherwiseAreRecognised) {
  EXPECT_THAT(obstacle_of(PGR_DTYPE_I32,
                          [](IrBuilder& ir, Value x) {
                            const Value sum = ir.alu(PGR_OP_ADD, {x, x});
                            return ir.bitcast(sum, PGR_DTYPE_I32);
                          }),
              HasSubstr("any NaN"));
  EXPECT_THAT(
      obstacle_of(PGR_DTYPE_I32, [](IrBuilder& ir, Value x) { return ir.cast(x, PGR_DTYPE_I32); }),
      HasSubstr("out of the integer's range"));
  EXPECT_THAT(obstacle_of(PGR_DTYPE_F32,
                          [](IrBuilder& ir, Value x) {
                            const Value near = ir.alu(PGR_OP_EXP2, {x});
                            return ir.alu(PGR_OP_ADD, {near, x});
                          }),
              HasSubstr("exact to a few ulp"));
  EXPECT_THAT(
      obstacle_of(PGR_DTYPE_F32, [](IrBuilder& ir, Value x) { return ir.alu(PGR_OP_MAX, {x, x}); }),
      HasSubstr("one zero from the other"));
  EXPECT_THAT(obstacle_of(PGR_DTYPE_F32,
                          [](IrBuilder& ir, Value) {
                            const Value array = ir.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, 2);
                            return ir.load(array, index_constant(ir, 0));
                          }),
              HasSubstr("nothing has been stored"));
  EXPECT_EQ(
      obstacle_of(PGR_DTYPE_F32, [](IrBuilder& ir, Value x) { return ir.alu(PGR_OP_EXP2, {x}); }),
      "");
}

}  // namespace
}  // namespace plugrad::conformance
