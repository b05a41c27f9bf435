// The rendered GLSL of a kernel: its frame, buffer access, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/sdk/ir_builder.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {
namespace {

using sdk::IrBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

class Glsl : public ::testing::Test {
 protected:
  pgr_status try_render(const IrBuilder& builder) {
    const std::vector<std::byte> block = builder.finish();
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = sdk::to_pgr("dialect");
    option.value = sdk::to_pgr("glsl");
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

TEST_F(Glsl, Kernel_IsThisText) {
  IrBuilder b("scale");
  b.set_groups(4);
  b.set_local(8);
  const auto out = b.buffer(PGR_DTYPE_F32, 32), in = b.buffer(PGR_DTYPE_F32, 32);
  const auto by = b.scalar(PGR_DTYPE_F32, 0, 9);
  const auto first = b.alu(PGR_OP_MUL, {b.group_id(0), b.constant_int(PGR_DTYPE_I32, 8)});
  const auto at = b.alu(PGR_OP_ADD, {first, b.local_id(0)});
  b.store(out, at, b.alu(PGR_OP_MUL, {b.load(in, at), by}));
  EXPECT_THAT(render(b), HasSubstr(R"(
layout(buffer_reference, std430, buffer_reference_align = 4) buffer P_f32 { float v; };

#pragma kernel(scale, 2, 1, 0, 0)
layout(local_size_x = 8, local_size_y = 1, local_size_z = 1) in;
)"));
  EXPECT_THAT(source_, HasSubstr(R"(
void main() {
  const uint64_t data0 = params.slots[0];
  const uint64_t data1 = params.slots[1];
  const float arg2 = uintBitsToFloat(uint(params.slots[2]));
  const int gidx0 = int(gl_WorkGroupID[0]);
  const int lidx0 = int(gl_LocalInvocationID[0]);
  const int alu0 = gidx0 * 8 + lidx0;
  P_f32(data0 + uint64_t(alu0) * 4ul).v = P_f32(data1 + uint64_t(alu0) * 4ul).v * arg2;
}
)"));
}

TEST_F(Glsl, LocalArrays_StandOutsideMain_AndTheirBytesAreTold) {
  IrBuilder b("shared_one");
  b.set_local(16);
  const auto out = b.buffer(PGR_DTYPE_F32, 16);
  const auto local = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 16);
  const auto id = b.local_id(0, PGR_DTYPE_I64);
  b.store(local, id, b.load(out, id));
  b.barrier();
  b.store(out, id, b.load(local, b.constant_int(PGR_DTYPE_I64, 3)));
  const std::string text = render(b);
  EXPECT_THAT(text, HasSubstr("#pragma kernel(shared_one, 1, 0, 64, 0)"));
  EXPECT_LT(text.find("shared float buf0[16];"), text.find("void main()"));
  EXPECT_THAT(text, HasSubstr("buf0[int(lidx0)] = "));
  EXPECT_THAT(text, HasSubstr("barrier();"));
}

TEST_F(Glsl, Conversions_AreWritten) {
  IrBuilder b("convert");
  const auto flags = b.buffer(PGR_DTYPE_BOOL, 4), bytes = b.buffer(PGR_DTYPE_I8, 4),
             floats = b.buffer(PGR_DTYPE_F32, 4);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0), one = b.constant_int(PGR_DTYPE_I32, 1);
  const auto byte = b.load(bytes, zero);
  b.store(bytes, one, b.alu(PGR_OP_ADD, {byte, b.constant_int(PGR_DTYPE_I8, -5)}));
  b.store(flags, zero, b.alu(PGR_OP_CMPLT, {byte, b.constant_int(PGR_DTYPE_I8, 7)}));
  b.store(floats, zero, b.bitcast(b.constant_int(PGR_DTYPE_I32, 1), PGR_DTYPE_F32));
  b.store(floats, one, b.constant_bits(PGR_DTYPE_F32, 0x7f800000));
  render(b);
  EXPECT_THAT(source_, HasSubstr("val0 + int8_t(-5);"));
  EXPECT_THAT(source_, HasSubstr("uint8_t(val0 < int8_t(7));"));
  EXPECT_THAT(source_, HasSubstr("uintBitsToFloat(uint(1));"));
  EXPECT_THAT(source_, HasSubstr("uintBitsToFloat(0x7f800000u);"));
}

TEST_F(Glsl, SignedRemainder_IsNotTheOperator_WhichIsUndefinedBelowZero) {
  IrBuilder b("remainder");
  const auto out = b.buffer(PGR_DTYPE_I32, 2), unsigned_out = b.buffer(PGR_DTYPE_U32, 2);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  b.store(out, zero, b.alu(PGR_OP_MOD, {b.load(out, zero), b.constant_int(PGR_DTYPE_I32, 7)}));
  EXPECT_THAT(render(b), Not(HasSubstr("%")));
  EXPECT_THAT(source_, HasSubstr("val0 - val0 / 7 * 7"));
  b.store(unsigned_out, zero,
          b.alu(PGR_OP_MOD, {b.load(unsigned_out, zero), b.constant_int(PGR_DTYPE_U32, 7)}));
  EXPECT_THAT(render(b), HasSubstr("% 7"));
}

// llvmpipe folds x / 0 to an arbitrary value and 0 / x to 0 if the constant is visible.
TEST_F(Glsl, Quotients_HideAConstantZero) {
  IrBuilder b("quotients");
  const auto out = b.buffer(PGR_DTYPE_F32, 8);
  const auto x = b.load(out, b.constant_int(PGR_DTYPE_I32, 0));
  int place = 1;
  const auto keep = [&](auto value) {
    b.store(out, b.constant_int(PGR_DTYPE_I32, place++), value);
  };
  keep(b.alu(PGR_OP_FDIV, {x, b.constant_bits(PGR_DTYPE_F32, 0)}));
  keep(b.alu(PGR_OP_FDIV, {b.constant_bits(PGR_DTYPE_F32, 0x80000000), x}));
  keep(b.alu(PGR_OP_RECIP, {b.constant_bits(PGR_DTYPE_F32, 0)}));
  keep(b.alu(PGR_OP_FDIV, {x, b.constant_bits(PGR_DTYPE_F32, 0x40000000)}));
  EXPECT_THAT(render(b), HasSubstr("hide_float(val0) / hide_float(0.0f);"));
  EXPECT_THAT(source_, HasSubstr("hide_float(-0.0f) / hide_float(val0);"));
  EXPECT_THAT(source_, HasSubstr("float(1) / hide_float(0.0f);"));
  EXPECT_THAT(source_, HasSubstr("val0 / 2.0f;"));
}

// glslang would fold these casts itself: to f16 rounding towards zero, and to f64 from the decimal
// text.
TEST_F(Glsl, CastsOfConstants_AreHidden) {
  IrBuilder b("casts");
  const auto half = b.buffer(PGR_DTYPE_F16, 1);
  const auto wide = b.buffer(PGR_DTYPE_F64, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  b.store(half, zero, b.cast(b.constant_int(PGR_DTYPE_I16, 32767), PGR_DTYPE_F16));
  b.store(wide, zero, b.cast(b.constant_float(PGR_DTYPE_F32, 0.1f), PGR_DTYPE_F64));
  EXPECT_THAT(render(b), HasSubstr("float16_t(float(hide_int16_t(int16_t(32767))))"));
  EXPECT_THAT(source_, HasSubstr("double(hide_float(0.1f))"));
}

// out[0] = a sum over `turns` iterations (a scalar argument if 0) times 100.
IrBuilder nested_sum(int64_t turns) {
  IrBuilder b("sum");
  const auto out = b.buffer(PGR_DTYPE_I32, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto end = turns ? b.constant_int(PGR_DTYPE_I32, turns) : b.scalar(PGR_DTYPE_I32, 0, 9999);
  const auto acc = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_I32, 1);
  b.store(acc, zero, zero);
  const auto i = b.loop(zero, end);
  const auto j = b.loop(zero, b.constant_int(PGR_DTYPE_I32, 100));
  b.store(acc, zero, b.alu(PGR_OP_ADD, {b.load(acc, zero), j}));
  b.end_loop(j);
  b.end_loop(i);
  b.store(out, zero, b.load(acc, zero));
  return b;
}

TEST_F(Glsl, LoopsThatTurnTooOften_AreUnrolled) {
  EXPECT_THAT(render(nested_sum(500)), HasSubstr("for (int idx1 = 0; idx1 < 100; ++idx1) {"));
  EXPECT_THAT(render(nested_sum(5000)), HasSubstr(R"(
    for (int idx1_0 = 0; idx1_0 < 100; idx1_0 += 50) {
      {
      const int idx1 = idx1_0;
      acc0 = acc0 + idx1;
      }
      {
      const int idx1 = idx1_0 + 1;
      acc0 = acc0 + idx1;
      }
)"));
  EXPECT_THAT(source_, HasSubstr("#pragma kernel(sum, 1, 0, 0, 0)"));
}

// Groups sum from 0 to a bound that depends on the group id, at most 7 and 3 iterations.
TEST_F(Glsl, BoundsThatDependOnTheGroup_CountAsTheirLargestValue) {
  IrBuilder b("sum");
  b.set_groups(8);
  const auto out = b.buffer(PGR_DTYPE_I32, 8);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto group = b.group_id(0);
  const auto acc = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_I32, 1);
  b.store(acc, zero, zero);
  const auto i = b.loop(zero, group);
  const auto j = b.loop(zero, b.constant_int(PGR_DTYPE_I32, 3));
  b.store(acc, zero, b.alu(PGR_OP_ADD, {b.load(acc, zero), j}));
  b.end_loop(j);
  b.end_loop(i);
  b.store(out, group, b.load(acc, zero));
  EXPECT_THAT(render(b), HasSubstr("#pragma kernel(sum, 1, 0, 0, 0)"));  // without a check
  EXPECT_THAT(source_, HasSubstr("for (int idx1 = 0; idx1 < 3; ++idx1) {"));
}

TEST_F(Glsl, BoundsThatMemoryGives_AreChecked) {
  IrBuilder b("sum");
  const auto out = b.buffer(PGR_DTYPE_I32, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto i = b.loop(zero, b.load(out, zero));
  b.store(out, zero, i);
  b.end_loop(i);
  EXPECT_THAT(render(b), HasSubstr("#pragma kernel(sum, 1, 0, 0, 1)"));
}

TEST_F(Glsl, LoopsThatMayTurnTooOftenStill_AreChecked) {
  EXPECT_THAT(render(nested_sum(90'000'000)), HasSubstr("#pragma kernel(sum, 1, 0, 0, 1)"));
  EXPECT_THAT(source_, HasSubstr("if (idx0 < 90000000) P_u32(params.slots[1]).v = 1u;"));
  // A scalar bound: with 100 unrolled iterations, 9999 are within the limit.
  EXPECT_THAT(render(nested_sum(0)), HasSubstr("#pragma kernel(sum, 1, 1, 0, 0)"));
}

TEST_F(Glsl, Contraction_ChangesNothing) {
  IrBuilder b("contract");
  const auto out = b.buffer(PGR_DTYPE_F32, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto x = b.load(out, zero);
  b.store(out, zero, b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {x, x}), x}));
  const std::string rounded_twice = render(b);
  b.set_contract(true);
  EXPECT_EQ(render(b), rounded_twice);
}

TEST_F(Glsl, WhatItLacks_IsNamed) {
  IrBuilder vectors("vectors");
  const auto data = vectors.buffer(PGR_DTYPE_F32, 8);
  const auto zero = vectors.constant_int(PGR_DTYPE_I32, 0);
  vectors.store(data, zero, vectors.load(data, zero, 4));
  EXPECT_EQ(try_render(vectors), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect glsl has no vectors"));
  IrBuilder fused("fused");
  const auto out = fused.buffer(PGR_DTYPE_F32, 8);
  const auto x = fused.load(out, fused.constant_int(PGR_DTYPE_I32, 0));
  fused.store(out, fused.constant_int(PGR_DTYPE_I32, 0), fused.alu(PGR_OP_FMA, {x, x, x}));
  EXPECT_EQ(try_render(fused), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect glsl has no FMA of f32"));
}

}  // namespace
}  // namespace plugrad::testing
