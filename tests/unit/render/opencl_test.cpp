// The rendered OpenCL C of a kernel: its frame, its differences from C, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/sdk/ir_builder.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {
namespace {

using sdk::IrBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kReadOnly = PGR_PARAM_READ | PGR_PARAM_NO_ALIAS;
constexpr uint32_t kWritten = PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS;

class OpenclC : public ::testing::Test {
 protected:
  pgr_status try_render(const IrBuilder& builder) {
    const std::vector<std::byte> block = builder.finish();
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = sdk::to_pgr("dialect");
    option.value = sdk::to_pgr("opencl");
    pgr_render_desc desc;
    PGR_INIT(desc, RENDER_DESC);
    desc.ir = block.data();
    desc.ir_bytes = block.size();
    desc.options = &option;
    desc.option_count = 1;
    desc.option_stride = sizeof option;
    pgr_blob out;
    PGR_INIT(out, BLOB);
    const pgr_status status = renderer_->render(nullptr, &desc, &out, &error_.error);
    source_ = out.data ? take(out) : std::string();
    return status;
  }
  std::string render(const IrBuilder& builder) {
    EXPECT_EQ(try_render(builder), PGR_STATUS_OK) << error_.text();
    return source_;
  }

  const pgr_renderer_api* renderer_ =
      static_cast<const pgr_renderer_api*>(open_component(PLUGRAD_RENDER_LIBRARY, "pgr.renderer"));
  ErrorText error_;
  std::string source_;
};

TEST_F(OpenclC, ElementwiseKernel_IsThisText) {
  IrBuilder b("E_4_8");
  b.set_groups(4);
  const auto out = b.buffer(PGR_DTYPE_F32, 32, kWritten),
             in = b.buffer(PGR_DTYPE_F32, 32, kReadOnly);
  const auto at =
      b.alu(PGR_OP_MUL, {b.group_id(0, PGR_DTYPE_I64), b.constant_int(PGR_DTYPE_I64, 8)});
  const auto relu = b.alu(PGR_OP_MAX, {b.load(in, at, 8), b.constant_float(PGR_DTYPE_F32, 0)});
  b.store(out, at, b.alu(PGR_OP_MUL, {relu, b.constant_float(PGR_DTYPE_F32, 2)}));
  const std::string want = R"(#pragma OPENCL FP_CONTRACT OFF
static inline float8 max_float8(float8 a, float8 b) { // NaN if either is; one instruction where b is a constant
  const float8 larger = b > a ? b : a;
  return b != b ? b + b : larger;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_E_4_8(__global float *restrict data0, __global const float *restrict data1) {
  const long gidx0 = get_group_id(0);
  const long alu0 = gidx0 * 8;
  vstore8(max_float8(vload8(0, data1 + alu0), (float8)0.0f) * 2.0f, 0, data0 + alu0);
}
)";
  EXPECT_EQ(render(b), want);
}

// Overflow of signed integers is undefined in C, and wraps in kernel IR.
TEST_F(OpenclC, SignedArithmetic_IsDoneUnsigned) {
  IrBuilder b("wrap");
  const auto out = b.buffer(PGR_DTYPE_I32, 16);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  const auto x = b.load(out, zero), wide = b.load(out, zero, 4);
  b.store(out, zero, b.alu(PGR_OP_ADD, {x, b.constant_int(PGR_DTYPE_I32, 3)}));
  b.store(out, zero, b.alu(PGR_OP_MUL, {wide, wide}));
  b.store(out, zero, b.alu(PGR_OP_NEG, {wide}));
  render(b);
  EXPECT_THAT(source_, HasSubstr("(int)((uint)data0[0] + 3)"));
  EXPECT_THAT(source_, HasSubstr("as_int4(as_uint4(val0) * as_uint4(val0))"));
  EXPECT_THAT(source_, HasSubstr("as_int4(-as_uint4(val0))"));
}

TEST_F(OpenclC, NegativesOfConstants_AreNoDecrements) {
  IrBuilder b("negatives");
  const auto out = b.buffer(PGR_DTYPE_I8, 1, kWritten);
  b.store(out, b.constant_int(PGR_DTYPE_I32, 0),
          b.alu(PGR_OP_NEG, {b.constant_int(PGR_DTYPE_I8, -3)}));
  EXPECT_THAT(render(b), HasSubstr("(char)(-(-3))"));
}

// PoCL's trunc of a constant NaN is 0.
TEST_F(OpenclC, TruncationLeavesNaN) {
  IrBuilder b("truncation");
  const auto out = b.buffer(PGR_DTYPE_F32, 1, kWritten);
  b.store(out, b.constant_int(PGR_DTYPE_I32, 0),
          b.alu(PGR_OP_TRUNC, {b.constant_bits(PGR_DTYPE_F32, 0x7fc00000)}));
  EXPECT_THAT(render(b), HasSubstr("return x != x ? x : trunc(x);"));
}

TEST_F(OpenclC, ScalarsBesideNarrowVectors_AreRepeated) {
  IrBuilder b("narrow");
  const auto out = b.buffer(PGR_DTYPE_U8, 16);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  b.store(out, zero, b.alu(PGR_OP_AND, {b.load(out, zero, 16), b.constant_int(PGR_DTYPE_U8, 7)}));
  EXPECT_THAT(render(b), HasSubstr("vload16(0, data0 + 0) & (uchar16)7"));
}

TEST_F(OpenclC, Lanes_AreNamedByHexadecimalDigits) {
  IrBuilder b("lanes");
  const auto out = b.buffer(PGR_DTYPE_F32, 32);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  const auto wide = b.load(out, zero, 16);
  b.store(out, zero, b.lane(wide, 11));
  b.store(out, zero, b.lane(wide, 8, 4));
  render(b);
  EXPECT_THAT(source_, HasSubstr(".sb;"));
  EXPECT_THAT(source_, HasSubstr(".s89ab"));
}

TEST_F(OpenclC, LocalArraysAndBarriers_AreOfTheGroup) {
  IrBuilder b("exchange");
  b.set_local(64);
  const auto out = b.buffer(PGR_DTYPE_F32, 64);
  const auto tile = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 64);
  const auto me = b.local_id(0, PGR_DTYPE_I32);
  b.store(tile, me, b.load(out, me));
  b.barrier();
  b.store(out, me, b.load(tile, me));
  render(b);
  EXPECT_THAT(source_, HasSubstr("reqd_work_group_size(64, 1, 1)"));
  EXPECT_THAT(source_, HasSubstr("__local float buf0[64]"));
  EXPECT_THAT(source_, HasSubstr("const int lidx0 = get_local_id(0);"));
  EXPECT_THAT(source_, HasSubstr("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"));
}

TEST_F(OpenclC, BoolScalar_IsPassedAsAByte) {
  IrBuilder b("flag");
  const auto out = b.buffer(PGR_DTYPE_I32, 1);
  const auto flag = b.scalar(PGR_DTYPE_BOOL, 0, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  b.store(out, zero, b.cast(flag, PGR_DTYPE_I32));
  render(b);
  EXPECT_THAT(source_, HasSubstr("const uchar arg1"));
  EXPECT_THAT(source_, HasSubstr("arg1 != 0"));
}

TEST_F(OpenclC, AtomicAddOfFloats_ComparesAndExchanges_InTheMemorysOwnSpace) {
  IrBuilder b("sum");
  const auto out = b.buffer(PGR_DTYPE_F32, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  b.atomic_add(out, zero, b.constant_float(PGR_DTYPE_F32, 1));
  render(b);
  EXPECT_THAT(source_, HasSubstr("atomic_add_global_float(data0 + 0, 1.0f);"));
  EXPECT_THAT(source_, HasSubstr("volatile __global uint *bits"));
}

TEST_F(OpenclC, WhatItLacks_IsNamed) {
  IrBuilder b("wide");
  const auto out = b.buffer(PGR_DTYPE_U8, 64);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  b.store(out, zero, b.load(out, zero, 32));
  EXPECT_EQ(try_render(b), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect opencl has vectors of up to 16 lanes, not of 32"));
  IrBuilder narrow("narrow_atomic");
  const auto bytes = narrow.buffer(PGR_DTYPE_U8, 64);
  narrow.atomic_add(bytes, narrow.constant_int(PGR_DTYPE_I64, 0),
                    narrow.constant_int(PGR_DTYPE_U8, 1));
  EXPECT_EQ(try_render(narrow), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("no ATOMIC_ADD of u8"));
}

}  // namespace
}  // namespace plugrad::testing
