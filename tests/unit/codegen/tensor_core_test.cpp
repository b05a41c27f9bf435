// tensor_core(axis, n) on made-up capabilities: the same numbers as without, in every shape, and
// what is refused.
#include "plugrad/sdk/tensor_core.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/check.h"
#include "codegen/transforms/transforms.h"
#include "gpu.h"
#include "kernels.h"
#include "plugrad/sdk/float_bits.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::KernelCode;
using ::testing::HasSubstr;

const std::vector<pgr_tensor_core>& cores() {
  static const std::vector<pgr_tensor_core> all = {sdk::make_warp_core(PGR_DTYPE_F16),
                                                   sdk::make_warp_core(PGR_DTYPE_BF16),
                                                   sdk::make_warp_core(PGR_DTYPE_F32)};
  return all;
}

// No vectors, as on a GPU: only operands of tensor cores have lanes.
pgr_device_caps with_cores() {
  pgr_device_caps caps = with_async_copies(gpu(32, 4, 128));
  caps.tensor_cores = cores().data();
  caps.tensor_core_count = static_cast<uint32_t>(cores().size());
  caps.tensor_core_stride = sizeof(pgr_tensor_core);
  return caps;
}

struct Shape {
  int64_t batch = 1, m, n, k;
  bool a_transposed = false, b_transposed = false;
};

// c[b, i, j] = relu(sum over l of a[b, i, l] * b[b, l, j]) + j; with `rounds`, products are rounded
// to `dtype`.
Ast core_product(const Shape& s, DType dtype, bool rounds = false) {
  Ast ast;
  Graph& g = ast.graph;
  const Id batch = make_range(g, s.batch, 0, AxisKind::Loop);
  const Id i = make_range(g, s.m, 1, AxisKind::Loop), j = make_range(g, s.n, 2, AxisKind::Loop);
  const Id l = make_range(g, s.k, 3, AxisKind::Reduce);
  const Id at_a = s.a_transposed ? affine(g, affine(g, batch, s.k, l), s.m, i)
                                 : affine(g, affine(g, batch, s.m, i), s.k, l);
  const Id at_b = s.b_transposed ? affine(g, affine(g, batch, s.n, j), s.k, l)
                                 : affine(g, affine(g, batch, s.k, l), s.n, j);
  const Id a = load(g, param(g, 1, s.batch * s.m * s.k, false, dtype), at_a);
  const Id b = load(g, param(g, 2, s.batch * s.k * s.n, false, dtype), at_b);
  const Id value = dtype == DType::F32 ? g.binary(Op::Mul, a, b)
                   : rounds            ? g.cast(g.binary(Op::Mul, a, b), DType::F32)
                            : g.binary(Op::Mul, g.cast(a, DType::F32), g.cast(b, DType::F32));
  const Id relu = g.binary(Op::Max, reduce(g, Op::Add, value, {l}), g.constant(DType::F32, 0.0));
  store(ast, param(g, 0, s.batch * s.m * s.n, true), affine(g, affine(g, batch, s.m, i), s.n, j),
        g.binary(Op::Add, relu, g.cast(j, DType::F32)));
  return ast;
}

std::vector<std::byte> packed(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> out(values.size() * size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = sdk::encode_float(static_cast<uint32_t>(dtype), values[i]);
    std::memcpy(&out[i * size_of(dtype)], &bits, size_of(dtype));
  }
  return out;
}

std::vector<float> run_product(const KernelCode& code, const Shape& s, DType dtype,
                               std::span<const pgr_tensor_core> table = cores()) {
  std::vector<std::byte> a = packed(small_integers(s.batch * s.m * s.k, 1), dtype);
  std::vector<std::byte> b = packed(small_integers(s.batch * s.k * s.n, 2), dtype);
  std::vector<float> c(static_cast<size_t>(s.batch * s.m * s.n), -1);
  const std::vector<sdk::InterpreterBuffer> memory = {
      {c.data(), c.size() * 4}, {a.data(), a.size()}, {b.data(), b.size()}};
  sdk::InterpreterLaunch launch;
  launch.buffers = memory;
  std::copy_n(code.group_count, 3, launch.group_count.begin());
  std::copy_n(code.local_size, 3, launch.local_size.begin());
  sdk::Interpreter(sdk::decode_ir(code.ir), table).run(launch);
  return c;
}

size_t count_wmma(const KernelCode& code) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  return static_cast<size_t>(std::ranges::count_if(
      ir.insts(), [](const pgr_ir_inst& inst) { return inst.op == PGR_OP_WMMA; }));
}

KernelCode build_on_cores(const Ast& ast, std::string_view changes, bool tf32 = false,
                          bool contract = true) {
  const auto list = codegen::parse_schedule(changes);
  EXPECT_EQ(codegen::to_string(list), changes);
  return codegen::generate(ast.graph, ast.sink, with_cores(),
                           {.contract = contract, .tf32 = tf32, .schedule = &list});
}

void expect_same(const Shape& s, DType dtype, std::string_view changes) {
  const Ast ast = core_product(s, dtype);
  const KernelCode plain = codegen::generate(ast.graph, ast.sink, with_cores(), {.no_opt = true});
  const KernelCode tiled = build_on_cores(ast, changes, dtype == DType::F32);
  EXPECT_GT(count_wmma(tiled), 0u) << changes;
  EXPECT_EQ(run_product(tiled, s, dtype), run_product(plain, s, dtype)) << changes;
}

// An invented layout of 8 x 4 x 8 for 16 work-items: two work-items hold each element of A, and the
// columns of B are scattered.
pgr_tensor_core made_up_core() {
  pgr_tensor_core core;
  PGR_INIT(core, TENSOR_CORE);
  core.m = 8, core.n = 4, core.k = 8;
  core.threads = 16;
  core.dtype_in = PGR_DTYPE_F16;
  core.dtype_out = PGR_DTYPE_F32;
  core.elems_a = 8, core.elems_b = 2, core.elems_c = 2;
  sdk::set_layout(core.layout_a, "m2 k0 k2 | - m0 k1 m1");
  sdk::set_layout(core.layout_b, "n1 | k2 n0 k0 k1");
  sdk::set_layout(core.layout_c, "m1 | n1 m2 m0 n0");
  EXPECT_EQ(sdk::problem_of(core), "");
  return core;
}

TEST(TensorCores, of_any_layout_multiply) {
  const pgr_tensor_core made_up[] = {made_up_core()};
  pgr_device_caps caps = with_cores();
  caps.tensor_cores = made_up;
  caps.tensor_core_count = 1;
  const auto list = codegen::parse_schedule("tensor_core(2, 0)");
  for (const Shape& s : {Shape{1, 24, 8, 32}, Shape{1, 21, 7, 19}}) {
    const Ast ast = core_product(s, DType::F16);
    const KernelCode plain = codegen::generate(ast.graph, ast.sink, caps, {.no_opt = true});
    const KernelCode tiled = codegen::generate(ast.graph, ast.sink, caps, {.schedule = &list});
    EXPECT_GT(count_wmma(tiled), 0u);
    EXPECT_EQ(run_product(tiled, s, DType::F16, made_up), run_product(plain, s, DType::F16));
  }
}

TEST(TensorCores, that_are_no_tensor_cores_are_not_found) {
  const auto is_found = [](void (*change)(pgr_tensor_core&)) {
    pgr_tensor_core core = made_up_core();
    change(core);
    pgr_device_caps caps = with_cores();
    caps.tensor_cores = &core;
    caps.tensor_core_count = 1;
    return codegen::find_tensor_core(caps, 0).has_value();
  };
  EXPECT_TRUE(is_found([](pgr_tensor_core&) {}));
  EXPECT_FALSE(is_found([](auto& core) { core.kind = 1; }));
  EXPECT_FALSE(is_found([](auto& core) { core.dtype_out = PGR_DTYPE_F16; }));
  EXPECT_FALSE(is_found([](auto& core) { core.m = 16; }));
  EXPECT_FALSE(is_found([](auto& core) { core.elems_a = 6; }));
  EXPECT_FALSE(is_found([](auto& core) { core.elems_b = 1u << 31; }));
  EXPECT_FALSE(is_found([](auto& core) { core.layout_b[0] = core.layout_b[1]; }));
  EXPECT_FALSE(is_found([](auto& core) { core.layout_c[0] = 0; }));
}

TEST(TensorCores, multiply_in_every_dtype) {
  const Shape s{.batch = 1, .m = 32, .n = 16, .k = 32};
  expect_same(s, DType::F16, "tensor_core(2, 0)");
  expect_same(s, DType::BF16, "tensor_core(2, 1)");
  expect_same(s, DType::F32, "tensor_core(2, 2)");
}

TEST(TensorCores, multiply_every_transposition_batches_and_ragged_sizes) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      expect_same({1, 32, 24, 48, a_transposed, b_transposed}, DType::F16,
                  "tensor_core(2, 0) upcast(0, 2) upcast(0, 3)");
      expect_same({3, 19, 13, 21, a_transposed, b_transposed}, DType::F16, "tensor_core(3, 0)");
      expect_same({2, 33, 40, 8, a_transposed, b_transposed}, DType::BF16,
                  "tensor_core(3, 1) local(1, 2) thread(0, 0)");
    }
  expect_same({1, 5, 3, 2}, DType::F16, "tensor_core(2, 0)");
  expect_same({1, 50, 70, 100}, DType::F16,
              "tensor_core(2, 0) upcast(0, 2) upcast(1, 3) local(1, 2) thread(0, 0)");
}

TEST(TensorCores, add_to_their_sums) {
  const KernelCode code = build_on_cores(core_product({1, 64, 32, 64}, DType::F16),
                                         "tensor_core(2, 0) upcast(0, 2) upcast(1, 2)");
  EXPECT_EQ(count_wmma(code), 4u);
  EXPECT_EQ(
      count_wmma(build_on_cores(core_product({1, 60, 32, 64}, DType::F16), "tensor_core(2, 0)")),
      1u);
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  for (uint32_t i = 0; i < ir.insts().size(); ++i)
    if (ir.inst(i).op == PGR_OP_WMMA) {
      EXPECT_EQ(ir.inst(ir.source(i, 2)).op, PGR_OP_LOAD);
    }
}

// A's rows are contiguous along k, in memory and in lane pairs; B's columns only if B is
// transposed.
TEST(TensorCores, load_neighbours_together) {
  const auto pairs = [](const Shape& s) {
    const KernelCode code = build_on_cores(core_product(s, DType::F16), "tensor_core(2, 0)");
    const sdk::IrView ir = sdk::decode_ir(code.ir);
    return std::ranges::count_if(ir.insts(), [](const pgr_ir_inst& inst) {
      return inst.op == PGR_OP_LOAD && inst.dtype == PGR_DTYPE_F16 && inst.lanes == 2;
    });
  };
  EXPECT_EQ(pairs({1, 64, 32, 64}), 4);
  EXPECT_EQ(pairs({1, 64, 32, 64, false, true}), 6);
  EXPECT_EQ(pairs({1, 64, 32, 64, true, false}), 0);
  EXPECT_EQ(pairs({1, 60, 32, 64}), 2);  // the other loads have gates
  EXPECT_EQ(pairs({1, 64, 32, 60}), 2);
}

std::string core_refusal(const Ast& ast, std::string_view changes, bool tf32 = false,
                         bool contract = true) {
  try {
    build_on_cores(ast, changes, tf32, contract);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(TensorCores, are_refused_where_they_do_not_fit) {
  const Ast halves = core_product({1, 16, 8, 16}, DType::F16),
            singles = core_product({1, 16, 8, 16}, DType::F32);
  EXPECT_THAT(core_refusal(halves, "tensor_core(1, 0)"),
              HasSubstr("tensor_core(1, 0): axis 1 is no reduce loop"));
  EXPECT_THAT(core_refusal(halves, "tensor_core(2, 3)"),
              HasSubstr("the device has no such tensor core"));
  EXPECT_THAT(core_refusal(halves, "tensor_core(2, -1)"),
              HasSubstr("the device has no such tensor core"));
  EXPECT_THAT(core_refusal(halves, "tensor_core(2, 1)"),
              HasSubstr("not of products in the tensor core's dtype"));
  EXPECT_THAT(core_refusal(singles, "tensor_core(2, 2)"), HasSubstr("TF32=1"));
  EXPECT_EQ(core_refusal(singles, "tensor_core(2, 2)", true), "no error");
  const Ast rounded = core_product({1, 16, 8, 16}, DType::F16, true);
  EXPECT_EQ(core_refusal(rounded, "tensor_core(2, 0)"), "no error");
  EXPECT_THAT(core_refusal(rounded, "tensor_core(2, 0)", false, false),
              HasSubstr("not of products"));
  const Ast deep = core_product({1, 64, 64, 48}, DType::F16);
  EXPECT_THAT(core_refusal(deep, "tensor_core(2, 0) unroll(3, 2)"),
              HasSubstr("leaves a remainder"));
  EXPECT_THAT(core_refusal(deep, "tensor_core(2, 0) group(3, 3)"),
              HasSubstr("not after a tensor_core"));
  EXPECT_THAT(core_refusal(deep, "tensor_core(2, 0) vectorize(0, 2)"),
              HasSubstr("not after a tensor_core"));
}

// The local arrays of a kernel, in elements.
std::vector<uint64_t> local_arrays(const KernelCode& code) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  std::vector<uint64_t> counts;
  for (const pgr_ir_array& array : ir.arrays())
    if (array.space == PGR_SPACE_LOCAL) counts.push_back(array.elem_count);
  return counts;
}

bool has_local_array(const KernelCode& code) {
  return !local_arrays(code).empty();
}

// Lanes of each store to a local array.
std::vector<uint32_t> copied_lanes(const KernelCode& code) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  std::vector<uint32_t> lanes;
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    if (ir.inst(i).op != PGR_OP_STORE) continue;
    const pgr_ir_inst& pointer = ir.inst(ir.source(i, 0));
    if (pointer.op == PGR_OP_ARRAY && ir.arrays()[pointer.arg].space == PGR_SPACE_LOCAL)
      lanes.push_back(ir.inst(i).lanes);
  }
  return lanes;
}

// No loop remains around the products: each takes the previous one as its accumulator.
TEST(TensorCores, add_to_one_another_where_the_loop_is_unrolled) {
  expect_same({1, 64, 32, 64}, DType::F16, "tensor_core(2, 0) unroll(3, 4)");
  expect_same({1, 64, 32, 64}, DType::F16,
              "tensor_core(2, 0) upcast(0, 2) stage(1, 3) unroll(3, 4)");
}

TEST(TensorCores, are_fed_from_tiles_in_local_memory) {
  const std::string list =
      "tensor_core(2, 0) upcast(1, 2) upcast(0, 2) local(0, 2) local(1, 2) block(5, 2) stage(1, 6) "
      "stage(2, 6)";
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      expect_same({1, 128, 64, 128, a_transposed, b_transposed}, DType::F16,
                  list + " unroll(8, 2)");
      expect_same({1, 120, 60, 124, a_transposed, b_transposed}, DType::F16, list);
      expect_same({1, 115, 59, 121, a_transposed, b_transposed}, DType::F16, list);
    }
  const KernelCode code = build_on_cores(core_product({1, 128, 64, 128}, DType::F16), list);
  // 64 rows of 32 along k and 32 columns, padded so that all banks are used.
  EXPECT_THAT(local_arrays(code), testing::UnorderedElementsAre(64 * 40, 32 * 40));
  EXPECT_THAT(copied_lanes(code), testing::ElementsAre(8, 8, 8));
}

TEST(TensorCores, are_fed_from_tiles_that_are_copied_ahead) {
  const std::string list =
      "tensor_core(2, 0) upcast(1, 2) upcast(0, 2) local(0, 2) local(1, 2) block(5, 2) stage(1, 6) "
      "stage(2, 6)";
  const auto copies = [](const KernelCode& code) {
    std::vector<uint32_t> lanes;
    const sdk::IrView ir = sdk::decode_ir(code.ir);
    for (const pgr_ir_inst& inst : ir.insts())
      if (inst.op == PGR_OP_ASYNC_COPY) lanes.push_back(inst.lanes);
    return lanes;
  };
  for (const char* ahead :
       {" ahead(1, 1) ahead(2, 1)", " ahead(1, 2) ahead(2, 2) unroll(8, 2)", " ahead(2, 1)"})
    for (const DType dtype : {DType::F16, DType::BF16}) {
      std::string text = list + ahead;
      text[15] = dtype == DType::F16 ? '0' : '1';
      SCOPED_TRACE(text);
      expect_same({1, 128, 64, 128}, dtype, text);
      expect_same({1, 120, 56, 128, true, true}, dtype, text);
    }
  expect_same({1, 115, 59, 121}, DType::F16,
              list + " ahead(1, 1)");  // 2-byte copies are not asynchronous
  const KernelCode code = build_on_cores(core_product({1, 128, 64, 128}, DType::F16),
                                         list + " ahead(1, 1) ahead(2, 1)");
  EXPECT_THAT(local_arrays(code), testing::UnorderedElementsAre(2 * 64 * 40, 2 * 32 * 40));
  EXPECT_FALSE(copies(code).empty());
  EXPECT_THAT(copies(code), testing::Each(8u));  // 16 bytes
  EXPECT_TRUE(copied_lanes(code).empty());
  expect_same(
      {1, 64, 64, 128}, DType::F32,
      "tensor_core(2, 2) local(0, 2) block(4, 2) stage(1, 5) stage(2, 5) ahead(1, 1) ahead(2, 2)");
}

// Half of the lanes store the rows of half a tile, all lanes the others; both are copied.
TEST(TensorCores, are_fed_from_tiles_that_stores_with_other_gates_need) {
  for (const char* list :
       {"tensor_core(2, 0) local(0, 2) local(1, 2) block(5, 2) stage(1, 6) stage(2, 6) ahead(1, 1)",
        "tensor_core(2, 0) local(0, 2) block(4, 2) stage(1, 5) stage(2, 5)"})
    for (const bool turned : {false, true}) {
      expect_same({1, 40, 24, 64, turned, turned}, DType::F16, list);
      expect_same({1, 72, 20, 60, turned, turned}, DType::F16, list);
    }
  // Sizes without power-of-two divisors get tiles in local memory too, one array per operand.
  for (const int64_t size : {200, 520, 1000}) {
    const Ast ast = core_product({1, size, size, size}, DType::F16);
    const KernelCode code = codegen::generate(ast.graph, ast.sink, with_cores(), {});
    EXPECT_EQ(local_arrays(code).size(), 2u) << codegen::to_string(code.schedule);
  }
}

// A row whose length is not a multiple of the vector is copied element by element.
TEST(TensorCores, copy_in_vectors_what_is_aligned) {
  const char* list = "tensor_core(2, 0) stage(1, 3) stage(2, 3)";
  const auto lanes = [&](const Shape& s) {
    return copied_lanes(build_on_cores(core_product(s, DType::F16), list));
  };
  EXPECT_THAT(lanes({1, 64, 32, 64}), testing::Each(8u));
  EXPECT_THAT(lanes({1, 60, 24, 56}), testing::Each(8u));
  EXPECT_THAT(lanes({1, 60, 28, 60}), testing::Each(4u));
  EXPECT_THAT(lanes({1, 61, 27, 61}), testing::Each(1u));
}

// Every legal schedule after it gives the same numbers.
TEST(TensorCores, random_lists_give_the_same_numbers) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int legal = 0, staged = 0, ahead = 0;
  for (int round = 0; round < 1500; ++round) {
    const Shape s{1 + pick(2),  1 + pick(70), 1 + pick(50),
                  1 + pick(60), pick(2) == 0, pick(2) == 0};
    const DType dtype = pick(2) ? DType::F16 : DType::BF16;
    const Ast ast = core_product(s, dtype);
    std::string changes =
        fmt::format("tensor_core({}, {})", s.batch > 1 ? 3 : 2, dtype == DType::F16 ? 0 : 1);
    const char* kinds[] = {"upcast", "unroll", "local", "thread", "swap", "block"};
    for (int i = pick(5); i-- > 0;)
      changes += fmt::format(" {}({}, {})", kinds[pick(6)], pick(5), 1 + pick(4));
    for (int slot = 1; slot <= 2; ++slot)
      if (pick(3) != 0) {
        changes += fmt::format(" stage({}, {})", slot, pick(7));
        if (pick(2) == 0) changes += fmt::format(" ahead({}, {})", slot, 1 + pick(2));
      }
    if (pick(3) == 0) changes += fmt::format(" unroll({}, 2)", 3 + pick(4));
    KernelCode tiled;
    try {
      tiled = build_on_cores(ast, changes);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::User) << changes << ": " << e.what();
      continue;
    }
    ++legal;
    staged += has_local_array(tiled);
    ahead += changes.find("ahead") != changes.npos;
    const KernelCode plain = codegen::generate(ast.graph, ast.sink, with_cores(), {.no_opt = true});
    ASSERT_EQ(run_product(tiled, s, dtype), run_product(plain, s, dtype))
        << changes << " of " << s.batch << " x " << s.m << " x " << s.n << " x " << s.k
        << (s.a_transposed ? ", A transposed" : "") << (s.b_transposed ? ", B transposed" : "");
  }
  EXPECT_GT(legal, 35);
  EXPECT_GT(staged, 20);
  EXPECT_GT(ahead, 5);
}

TEST(TensorCores, are_chosen_for_large_products) {
  const auto chosen = [](const Ast& ast, bool tf32 = false) {
    return codegen::generate(ast.graph, ast.sink, with_cores(), {.tf32 = tf32});
  };
  const Shape large{1, 256, 256, 128};
  const KernelCode code = chosen(core_product(large, DType::F16));
  EXPECT_EQ(count_wmma(code), 32u);
  EXPECT_EQ(code.local_size[0], 32u);
  EXPECT_EQ(code.local_size[1] * code.local_size[2], 8u);
  EXPECT_THAT(codegen::to_string(code.schedule), HasSubstr("stage(1, "));
  EXPECT_THAT(codegen::to_string(code.schedule), HasSubstr("stage(2, "));
  EXPECT_THAT(codegen::to_string(code.schedule), HasSubstr("ahead(1, "));
  EXPECT_THAT(codegen::to_string(code.schedule), HasSubstr("ahead(2, "));
  // If rows are not multiples of 4 bytes, each work-item copies its own elements.
  EXPECT_THAT(codegen::to_string(chosen(core_product({1, 256, 255, 128}, DType::F16)).schedule),
              testing::Not(HasSubstr("ahead(")));
  const Ast ast = core_product(large, DType::F16);
  EXPECT_EQ(run_product(code, large, DType::F16),
            run_product(codegen::generate(ast.graph, ast.sink, with_cores(), {.no_opt = true}),
                        large, DType::F16));
  EXPECT_GT(count_wmma(chosen(core_product({4, 100, 90, 70}, DType::BF16))), 0u);
  EXPECT_EQ(count_wmma(chosen(core_product(large, DType::F32))), 0u);
  EXPECT_GT(count_wmma(chosen(core_product(large, DType::F32), true)), 0u);
  EXPECT_EQ(count_wmma(chosen(core_product({1, 4, 4, 4}, DType::F16))), 0u);
}

}  // namespace
}  // namespace plugrad::test
