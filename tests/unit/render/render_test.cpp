// The rendered C of a kernel: users read it, so the whole text is compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/sdk/ir_builder.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {
namespace {

using sdk::IrBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kRead = PGR_PARAM_READ | PGR_PARAM_NO_ALIAS;
constexpr uint32_t kWrite = PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS;

class Renderer : public ::testing::Test {
 protected:
  pgr_status try_render(const std::vector<std::byte>& block, const char* dialect = "c") {
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = sdk::to_pgr("dialect");
    option.value = sdk::to_pgr(dialect);
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
    EXPECT_EQ(try_render(builder.finish()), PGR_STATUS_OK) << error_.text();
    return source_;
  }

  const pgr_renderer_api* renderer_ =
      static_cast<const pgr_renderer_api*>(open_component(PLUGRAD_RENDER_LIBRARY, "pgr.renderer"));
  ErrorText error_;
  std::string source_;
};

// out[g * 8 + 0..8] = max(a, 0) * 2, lanes at a time.
IrBuilder scaled_relu() {
  IrBuilder b("E_4_8");
  b.set_groups(4);
  const auto out = b.buffer(PGR_DTYPE_F32, 32, kWrite), in = b.buffer(PGR_DTYPE_F32, 32, kRead);
  const auto at =
      b.alu(PGR_OP_MUL, {b.group_id(0, PGR_DTYPE_I64), b.constant_int(PGR_DTYPE_I64, 8)});
  const auto relu = b.alu(PGR_OP_MAX, {b.load(in, at, 8), b.constant_float(PGR_DTYPE_F32, 0)});
  b.store(out, at, b.alu(PGR_OP_MUL, {relu, b.constant_float(PGR_DTYPE_F32, 2)}));
  return b;
}

TEST_F(Renderer, ElementwiseKernel_IsThisText) {
  const std::string want = R"(#pragma clang fp contract(off)
typedef __INT64_TYPE__ i64;
_Static_assert(sizeof(i64) == 8, "this compiler has i64 of another size");
typedef __UINT64_TYPE__ u64;
_Static_assert(sizeof(u64) == 8, "this compiler has u64 of another size");
typedef float f32;
_Static_assert(sizeof(f32) == 4, "this compiler has f32 of another size");
typedef f32 f32x8 __attribute__((ext_vector_type(8)));
_Static_assert(sizeof(f32x8) == 32, "this compiler has f32x8 of another size: dialect c_gcc is for GCC");
typedef f32x8 f32x8u __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x8 max_f32x8(f32x8 a, f32x8 b) { // NaN if either is; one instruction where b is a constant
  const f32x8 larger = b > a ? b : a;
  return b != b ? b + b : larger;
}

static __attribute__((noinline)) void E_4_8_groups(f32 *restrict data0, const f32 *restrict data1, u64 begin, u64 end) {
  for (u64 group = begin; group < end; ++group) {
    const i64 gidx0 = group;
    const i64 alu0 = gidx0 * 8;
    *(f32x8u *)(data0 + alu0) = max_f32x8(*(const f32x8u *)(data1 + alu0), (f32x8)0.0f) * 2.0f;
  }
}

void E_4_8(void *const *buffers, const u64 *scalars, u64 begin, u64 end) {
  E_4_8_groups(buffers[0], buffers[1], begin, end);
}
)";
  EXPECT_EQ(render(scaled_relu()), want);
}

TEST_F(Renderer, Accumulator_IsAVariable_AndItsSumOneLine) {
  IrBuilder b("r_16");
  b.set_contract(true);
  const auto out = b.buffer(PGR_DTYPE_F32, 1, kWrite), in = b.buffer(PGR_DTYPE_F32, 16, kRead);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto acc = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, 1);
  b.store(acc, zero, b.constant_float(PGR_DTYPE_F32, 0));
  const auto i = b.loop(zero, b.constant_int(PGR_DTYPE_I32, 16));
  const auto x = b.load(in, i);
  b.store(acc, zero, b.alu(PGR_OP_ADD, {b.load(acc, zero), b.alu(PGR_OP_MUL, {x, x})}));
  b.end_loop(i);
  b.store(out, zero, b.load(acc, zero));
  EXPECT_THAT(render(b), Not(HasSubstr("#pragma")));  // the compile option decides
  EXPECT_THAT(source_, HasSubstr(R"(    f32 acc0;
    acc0 = 0.0f;
    for (i32 idx0 = 0; idx0 < 16; ++idx0) {
      const f32 val0 = data1[idx0];
      acc0 = acc0 + val0 * val0;
    }
    data0[0] = acc0;
)"));
}

// `vectors` sums in a loop of three iterations inside one of 16.
IrBuilder sums(int vectors) {
  IrBuilder b("r_16_3");
  const auto out = b.buffer(PGR_DTYPE_F32, 64, kWrite), in = b.buffer(PGR_DTYPE_F32, 64, kRead);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  std::vector<IrBuilder::Value> arrays;
  for (int i = 0; i < vectors; ++i) {
    arrays.push_back(b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, 4, 4));
    b.store(arrays.back(), zero, b.load(in, zero, 4));
  }
  const auto outer = b.loop(zero, b.constant_int(PGR_DTYPE_I32, 16));
  const auto inner = b.loop(zero, b.constant_int(PGR_DTYPE_I32, 3));
  const auto x = b.load(in, inner, 4);
  for (const auto& array : arrays)
    b.store(array, zero, b.alu(PGR_OP_ADD, {b.load(array, zero, 4), x}));
  b.end_loop(inner);
  b.end_loop(outer);
  for (const auto& array : arrays) b.store(out, zero, b.load(array, zero, 4));
  return b;
}

TEST_F(Renderer, LoopOfARegisterTile_IsNotUnrolledByClang) {
  const char* const held = "#pragma clang loop unroll(disable)\n";
  EXPECT_THAT(render(sums(8)), HasSubstr(std::string(held) + "      for (i32 idx1"));
  EXPECT_THAT(source_, Not(HasSubstr(std::string(held) + "    for (i32 idx0")));
  EXPECT_THAT(render(sums(7)), Not(HasSubstr(held)));  // unrolled iterations hide their latency
  EXPECT_EQ(try_render(sums(8).finish(), "c_gcc"), PGR_STATUS_OK);
  EXPECT_THAT(source_, Not(HasSubstr(held)));
}

TEST_F(Renderer, AReadBeforeAWriteOfTheSameMemory_StaysBeforeIt) {
  IrBuilder b("swap");
  const auto data = b.buffer(PGR_DTYPE_I32, 2);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0), one = b.constant_int(PGR_DTYPE_I64, 1);
  const auto first = b.load(data, zero), second = b.load(data, one);
  b.store(data, zero, second);
  b.store(data, one, first);
  EXPECT_THAT(render(b), HasSubstr(R"(    const i32 val0 = data0[0];
    data0[0] = data0[1];
    data0[1] = val0;
)"));
}

TEST_F(Renderer, Constants_KeepTheirValue) {
  IrBuilder b("constants");
  const auto out = b.buffer(PGR_DTYPE_F32, 4, kWrite), ints = b.buffer(PGR_DTYPE_I64, 2, kWrite);
  const auto at = [&](int64_t index) { return b.constant_int(PGR_DTYPE_I64, index); };
  b.store(out, at(0), b.constant_float(PGR_DTYPE_F32, 0.1f));
  b.store(out, at(1), b.constant_float(PGR_DTYPE_F32, -0.0));
  b.store(out, at(2), b.constant_bits(PGR_DTYPE_F32, 0xff800000));
  b.store(out, at(3), b.constant_float(PGR_DTYPE_F32, 16777216));
  b.store(ints, at(0), b.constant_int(PGR_DTYPE_I64, INT64_MIN));
  render(b);
  EXPECT_THAT(source_, HasSubstr("data0[0] = 0.1f;"));
  EXPECT_THAT(source_, HasSubstr("data0[1] = -0.0f;"));
  EXPECT_THAT(source_, HasSubstr("data0[2] = __builtin_bit_cast(f32, (u32)0xff800000);"));
  EXPECT_THAT(source_, HasSubstr("data0[3] = 16777216.0f;"));
  EXPECT_THAT(source_, HasSubstr("data1[0] = (-9223372036854775807l - 1);"));
}

// Sums of i32 over a grid of `groups`: of ids, and of loaded values.
IrBuilder integer_sums(uint64_t groups) {
  IrBuilder b("sums");
  b.set_groups(groups);
  const auto out = b.buffer(PGR_DTYPE_I32, 4096, kWrite), in = b.buffer(PGR_DTYPE_I32, 4096, kRead);
  const auto at = b.alu(PGR_OP_MUL, {b.group_id(0), b.constant_int(PGR_DTYPE_I32, 4)});
  const auto i = b.loop(b.constant_int(PGR_DTYPE_I32, 0), b.constant_int(PGR_DTYPE_I32, 4));
  const auto index = b.alu(PGR_OP_ADD, {at, i});
  b.store(out, index, b.alu(PGR_OP_ADD, {b.load(in, index), b.constant_int(PGR_DTYPE_I32, 1)}));
  b.end_loop(i);
  return b;
}

// Overflow is undefined in C: plain C arithmetic is valid only if overflow is impossible.
TEST_F(Renderer, SumsOfIndices_ArePlain_AndThoseOfDataWrap) {
  EXPECT_THAT(render(integer_sums(1024)), HasSubstr("gidx0 * 4;"));
  EXPECT_THAT(source_, HasSubstr("alu0 + idx0;"));
  EXPECT_THAT(source_, HasSubstr("(i32)((u32)data1[alu1] + (u32)1);"));
}

TEST_F(Renderer, IndexThatMayOverflow_Wraps) {
  EXPECT_THAT(render(integer_sums(uint64_t{1} << 29)), HasSubstr("gidx0 * 4;"));
  EXPECT_THAT(render(integer_sums((uint64_t{1} << 29) + 1)),
              HasSubstr("(i32)((u32)gidx0 * (u32)4)"));
}

TEST_F(Renderer, DivisionByAConstant_NeedsNoGuard) {
  IrBuilder b("divide");
  const auto out = b.buffer(PGR_DTYPE_I32, 2);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  const auto x = b.load(out, zero);
  b.store(out, zero, b.alu(PGR_OP_IDIV, {x, b.constant_int(PGR_DTYPE_I32, 7)}));
  EXPECT_THAT(render(b), HasSubstr("/ 7"));
  EXPECT_THAT(source_, Not(HasSubstr("idiv")));
  b.store(out, zero, b.alu(PGR_OP_IDIV, {x, b.constant_int(PGR_DTYPE_I32, -1)}));
  EXPECT_THAT(render(b), HasSubstr("idiv_i32("));
}

TEST_F(Renderer, ScalarAndAlignment_AreAssumed) {
  IrBuilder b("bounded");
  const auto out = b.buffer(PGR_DTYPE_I32, 64, kWrite);
  const auto n = b.scalar(PGR_DTYPE_I32, 1, 64);
  const auto i = b.loop(b.constant_int(PGR_DTYPE_I32, 0), n);
  b.store(out, i, i);
  b.end_loop(i);
  EXPECT_THAT(render(b), HasSubstr("__builtin_assume(arg1 >= 1 && arg1 <= 64);"));
  EXPECT_THAT(source_, HasSubstr("for (i32 idx0 = 0; idx0 < arg1; ++idx0)"));
  EXPECT_THAT(source_,
              HasSubstr("bounded_groups(buffers[0], *(const i32 *)(scalars + 0), begin, end)"));
}

// A group of 8 sums its elements through local memory: item 0 writes the sum.
IrBuilder group_sum() {
  IrBuilder b("r_4_8");
  b.set_groups(4);
  b.set_local(8);
  const auto out = b.buffer(PGR_DTYPE_F32, 4, kWrite), in = b.buffer(PGR_DTYPE_F32, 32, kRead);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0), eight = b.constant_int(PGR_DTYPE_I32, 8);
  const auto group = b.group_id(0), item = b.local_id(0);
  const auto part = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 8);
  const auto at = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {group, eight}), item});
  b.store(part, item, b.load(in, at));
  b.barrier();
  const auto acc = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, 1);
  b.store(acc, zero, b.constant_float(PGR_DTYPE_F32, 0));
  const auto i = b.loop(zero, eight);
  b.store(acc, zero, b.alu(PGR_OP_ADD, {b.load(acc, zero), b.load(part, i)}));
  b.end_loop(i);
  b.store_gated(out, group, b.load(acc, zero), b.alu(PGR_OP_CMPEQ, {item, zero}));
  return b;
}

TEST_F(Renderer, GroupOfACudaKernel_IsThisText) {
  ASSERT_EQ(try_render(group_sum().finish(), "cuda"), PGR_STATUS_OK) << error_.text();
  const std::string want = R"(#pragma clang fp contract(off)
typedef int i32;
typedef float f32;

extern "C" __global__ void __launch_bounds__(8) r_4_8(f32 *restrict data0, const f32 *restrict data1) {
  alignas(64) __shared__ f32 buf0[8];
  f32 acc1;
  const i32 gidx0 = blockIdx.x;
  const i32 lidx0 = threadIdx.x;
  buf0[lidx0] = data1[gidx0 * 8 + lidx0];
  __syncthreads();
  acc1 = 0.0f;
  for (i32 idx0 = 0; idx0 < 8; ++idx0) {
    acc1 = acc1 + buf0[idx0];
  }
  if (lidx0 == 0) {
    data0[gidx0] = acc1;
  }
}
)";
  EXPECT_THAT(source_, HasSubstr(want));
  EXPECT_EQ(try_render(scaled_relu().finish(), "cuda"), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect cuda has no MAX of several lanes"));
}

// out[item] = lane 0 of A * B + C, with the item's lanes all alike.
IrBuilder tile_product(uint32_t dtype, uint32_t lanes_a, uint32_t lanes_b) {
  IrBuilder b("tile");
  b.set_local(32);
  const auto out = b.buffer(PGR_DTYPE_F32, 32), in = b.buffer(dtype, 32);
  const auto item = b.local_id(0), x = b.load(in, item);
  const auto c = b.splat(b.constant_float(PGR_DTYPE_F32, 1), 4);
  const auto d =
      b.emit(PGR_OP_WMMA, PGR_DTYPE_F32, 4, {b.splat(x, lanes_a), b.splat(x, lanes_b), c});
  b.store(out, item, b.lane(d, 0));
  return b;
}

// out[0..4] = lanes of the vectors at 0, 4 and 8 of `in`, by their numbers there.
IrBuilder picked_lanes(std::initializer_list<uint32_t> lanes, uint32_t dtype = PGR_DTYPE_F32) {
  IrBuilder b("picked");
  const auto out = b.buffer(dtype, 4, kWrite), in = b.buffer(dtype, 12, kRead);
  const auto at = [&](int64_t index) { return b.constant_int(PGR_DTYPE_I32, index); };
  const IrBuilder::Value from[] = {b.load(in, at(0), 4), b.load(in, at(4), 4),
                                   b.load(in, at(8), 4)};
  std::vector<IrBuilder::Value> picked;
  for (const uint32_t lane : lanes) picked.push_back(b.lane(from[lane / 4], lane % 4));
  b.store(out, at(0), b.vector({picked[0], picked[1], picked[2], picked[3]}));
  return b;
}

TEST_F(Renderer, LanesOfTwoVectors_AreAShuffle) {
  EXPECT_THAT(render(picked_lanes({4, 0, 5, 1})),
              HasSubstr("(f32x4)__builtin_shufflevector(val1, val0, 0, 4, 1, 5)"));
  EXPECT_THAT(source_, Not(HasSubstr("val2")));
  EXPECT_THAT(render(picked_lanes({11, 10, 9, 8})),
              HasSubstr("(f32x4)__builtin_shufflevector(val0, val0, 3, 2, 1, 0)"));
  EXPECT_THAT(render(picked_lanes({0, 4, 8, 9})),
              HasSubstr("(f32x4)__builtin_shufflevector("
                        "(f32x2)__builtin_shufflevector(val1, val2, 0, 4), "
                        "(f32x2)__builtin_shufflevector(val0, val0, 0, 1), 0, 1, 2, 3)"));
  EXPECT_THAT(render(picked_lanes({4, 0, 5, 1}, PGR_DTYPE_BOOL)), Not(HasSubstr("shuffle")));
  ASSERT_EQ(try_render(picked_lanes({4, 0, 5, 1}).finish(), "opencl"), PGR_STATUS_OK);
  EXPECT_THAT(source_, HasSubstr("(float4)(val1.s0, val0.s0, val1.s1, val0.s1)"));
}

// An index that is a multiple of the load's size allows one vector load.
TEST_F(Renderer, LanesOfCuda_AreLoadedTogetherWhereTheyAreAligned) {
  for (const int64_t stride : {2, 3}) {
    IrBuilder b("pairs");
    b.set_local(8);
    const auto out = b.buffer(PGR_DTYPE_F16, 64);
    b.add_param({PGR_PARAM_BUFFER, PGR_DTYPE_F16, PGR_PARAM_READ, 256, 64, 0, 0});
    const auto in = b.emit(PGR_OP_PARAM, PGR_DTYPE_F16, 1, {}, 1);
    const auto item = b.local_id(0);
    const auto at = b.alu(PGR_OP_MUL, {item, b.constant_int(PGR_DTYPE_I32, stride)});
    b.store(out, item, b.lane(b.load(in, at, 2), 1));
    ASSERT_EQ(try_render(b.finish(), "cuda"), PGR_STATUS_OK) << error_.text();
    EXPECT_EQ(source_.find("aligned<f16x2, 4>") != source_.npos, stride == 2) << source_;
  }
}

TEST_F(Renderer, TensorCoresOfCuda_AreFoundByTheirOperands) {
  ASSERT_EQ(try_render(tile_product(PGR_DTYPE_F16, 8, 4).finish(), "cuda"), PGR_STATUS_OK);
  EXPECT_THAT(source_, HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
  ASSERT_EQ(try_render(tile_product(PGR_DTYPE_F32, 4, 2).finish(), "cuda"), PGR_STATUS_OK);
  EXPECT_THAT(source_, HasSubstr("mma_tf32("));
  EXPECT_EQ(try_render(tile_product(PGR_DTYPE_F16, 4, 4).finish(), "cuda"), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect cuda has no WMMA of 4, 4 and 4 lanes on f16"));
  EXPECT_EQ(try_render(tile_product(PGR_DTYPE_F16, 8, 4).finish(), "opencl"),
            PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect opencl has no WMMA"));
}

// Copies two floats and the next two, and waits for the first pair.
IrBuilder copies() {
  IrBuilder b("copies");
  b.set_local(8);
  const auto out = b.buffer(PGR_DTYPE_F32, 64, kWrite);
  const auto in = b.buffer(PGR_DTYPE_F32, 64, kRead, 16);
  const auto array = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 64, 1, 16);
  const auto item = b.local_id(0), two = b.constant_int(PGR_DTYPE_I32, 2);
  const auto at = b.alu(PGR_OP_MUL, {item, two});
  const auto before = b.load(array, item);
  b.async_copy(array, at, in, at, 2);
  b.async_commit();
  const auto gate = b.alu(PGR_OP_CMPLT, {item, two});
  b.async_copy_gated(array, b.alu(PGR_OP_ADD, {at, b.constant_int(PGR_DTYPE_I32, 16)}), in, at,
                     gate, 4);
  b.async_commit();
  b.async_wait(1);
  b.store(out, item, b.alu(PGR_OP_ADD, {before, b.load(array, item)}));
  return b;
}

TEST_F(Renderer, AsynchronousCopies_AreOfCudaAlone) {
  ASSERT_EQ(try_render(copies().finish(), "cuda"), PGR_STATUS_OK) << error_.text();
  const auto place = [&](const char* text) {
    const size_t at = source_.find(text);
    EXPECT_NE(at, source_.npos) << text << " in\n" << source_;
    return at;
  };
  const size_t read = place("val0 = buf0["), copy = place("  async_copy<8>(buf0 + "),
               gated = place("  async_copy_if<16>(buf0 + "), wait = place("  async_wait<1>();");
  EXPECT_LT(read, copy);
  EXPECT_LT(copy, gated);
  EXPECT_LT(gated, wait);
  EXPECT_LT(wait, source_.rfind("buf0["));
  EXPECT_THAT(source_, HasSubstr("cp.async.cg.shared.global"));
  for (const char* dialect : {"opencl", "glsl"}) {
    EXPECT_EQ(try_render(copies().finish(), dialect), PGR_STATUS_UNSUPPORTED) << dialect;
    EXPECT_THAT(error_.text(), HasSubstr("has no asynchronous copies"));
  }
}

// out[0] = a * b + c, and where the product has a second use, out[1] = a * b.
IrBuilder product_and_sum(bool contract, bool has_second_use) {
  IrBuilder b("fused");
  b.set_contract(contract);
  const auto out = b.buffer(PGR_DTYPE_F32, 2, kWrite), in = b.buffer(PGR_DTYPE_F32, 3, kRead);
  const auto at = [&](int64_t index) { return b.constant_int(PGR_DTYPE_I64, index); };
  const auto product = b.alu(PGR_OP_MUL, {b.load(in, at(0)), b.load(in, at(1))});
  b.store(out, at(0), b.alu(PGR_OP_ADD, {b.load(in, at(2)), product}));
  if (has_second_use) b.store(out, at(1), product);
  return b;
}

TEST_F(Renderer, ProductOfACudaSum_MayRoundWithIt_WhereNothingElseUsesIt) {
  ASSERT_EQ(try_render(product_and_sum(true, false).finish(), "cuda"), PGR_STATUS_OK);
  EXPECT_THAT(source_, HasSubstr("data0[0] = mul_add(data1[0], data1[1], data1[2]);"));
  for (const bool contract : {true, false}) {
    ASSERT_EQ(try_render(product_and_sum(contract, contract).finish(), "cuda"), PGR_STATUS_OK);
    EXPECT_THAT(source_, Not(HasSubstr("mul_add")));
    EXPECT_THAT(source_, HasSubstr("#pragma clang fp contract(off)"));
  }
}

TEST_F(Renderer, SameBlock_GivesTheSameBytes) {
  const std::string first = render(scaled_relu());
  EXPECT_EQ(render(scaled_relu()), first);
}

TEST_F(Renderer, WhatItLacks_IsNamed) {
  IrBuilder b("sine");
  const auto out = b.buffer(PGR_DTYPE_F32, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  b.store(out, zero, b.alu(PGR_OP_SIN, {b.load(out, zero)}));
  EXPECT_EQ(try_render(b.finish()), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("dialect c has no SIN of f32"));
  EXPECT_EQ(try_render(scaled_relu().finish(), "cobol"), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("\"cobol\""));
  auto block = scaled_relu().finish();
  block.resize(block.size() / 2);
  EXPECT_EQ(try_render(block), PGR_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace plugrad::testing
