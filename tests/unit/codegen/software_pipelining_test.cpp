// ahead(slot, n), software pipelining: tiles are copied into local memory asynchronously, n
// iterations before their use. The interpreter overwrites a copy's destination when the copy starts
// and writes the data at the wait, so that a missing wait or barrier gives wrong numbers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/check.h"
#include "gpu.h"
#include "kernels.h"

namespace plugrad::test {
namespace {

using codegen::KernelCode;
using ::testing::HasSubstr;

constexpr const char* kStaged = "local(0, 4) local(1, 8) block(4, 8) stage(1, 5) stage(2, 5)";

pgr_device_caps gpu_with_copies() {
  pgr_device_caps caps = with_async_copies(with_groups(64, 8192));
  caps.subgroup_size = 8;
  return caps;
}

KernelCode build_pipelined(const Ast& ast, const std::string& text,
                           const pgr_device_caps& caps = gpu_with_copies()) {
  const auto list = codegen::parse_schedule(text);
  EXPECT_EQ(codegen::to_string(list), text);
  return codegen::generate(ast.graph, ast.sink, caps, {.schedule = &list});
}

std::vector<pgr_ir_inst> all(const KernelCode& code, uint16_t op) {
  std::vector<pgr_ir_inst> out;
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  std::ranges::copy_if(ir.insts(), std::back_inserter(out),
                       [&](const pgr_ir_inst& inst) { return inst.op == op; });
  return out;
}

struct PipelineSizes {
  int64_t m, n, k;
};

std::vector<float> pipelined_product(const PipelineSizes& s, const KernelCode& code) {
  std::vector<float> a = small_integers(s.m * s.k, 1), b = small_integers(s.k * s.n, 2);
  std::vector<float> c(static_cast<size_t>(s.m * s.n), -99);
  run(code, {&c, &a, &b});
  return c;
}
std::vector<float> pipelined_product(const PipelineSizes& s, const std::string& text,
                                     const pgr_device_caps& caps = gpu_with_copies()) {
  return pipelined_product(s, build_pipelined(matmul(s.m, s.n, s.k), text, caps));
}

TEST(SoftwarePipelining, run_beside_the_use_of_the_tile_before) {
  const PipelineSizes s{16, 32, 32};
  const std::string text =
      fmt::format("{} ahead(1, 1) ahead(2, 1) thread(0, 0) thread(1, 0)", kStaged);
  const KernelCode code = build_pipelined(matmul(s.m, s.n, s.k), text);
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  std::vector<uint64_t> shared;
  for (const pgr_ir_array& array : ir.arrays())
    if (array.space == PGR_SPACE_LOCAL) shared.push_back(array.elem_count);
  EXPECT_THAT(shared, testing::UnorderedElementsAre(2 * 4 * 8, 2 * 8 * 8));
  EXPECT_FALSE(all(code, PGR_OP_ASYNC_COPY).empty());
  EXPECT_EQ(all(code, PGR_OP_BARRIER).size(), 1u);
  EXPECT_EQ(all(code, PGR_OP_ASYNC_COMMIT).size(), 2u);  // before the loop and in it
  const auto waits = all(code, PGR_OP_ASYNC_WAIT);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].arg, 0u);
  EXPECT_EQ(pipelined_product(s, text), pipelined_product(s, ""));
}

TEST(SoftwarePipelining, by_several_iterations_leave_as_many_copies_in_flight) {
  const PipelineSizes s{16, 32, 56};
  for (int iterations : {1, 2, 3, 6}) {
    const std::string text =
        fmt::format("{} ahead(1, {}) ahead(2, {})", kStaged, iterations, iterations);
    const KernelCode code = build_pipelined(matmul(s.m, s.n, s.k), text);
    EXPECT_EQ(all(code, PGR_OP_ASYNC_WAIT)[0].arg, static_cast<uint64_t>(iterations - 1));
    EXPECT_EQ(pipelined_product(s, code), pipelined_product(s, "")) << iterations;
  }
  for (const char* ahead :
       {"ahead(1, 3) ahead(2, 1)", "ahead(2, 2)", "ahead(1, 7) ahead(2, 2)", "ahead(1, 1)"})
    EXPECT_EQ(pipelined_product(s, fmt::format("{} {}", kStaged, ahead)), pipelined_product(s, ""))
        << ahead;
}

// Fails if the interpreter writes the data when the copy starts, in which case the tests above
// would detect nothing.
TEST(SoftwarePipelining, a_wait_that_is_too_short_gives_other_numbers) {
  const PipelineSizes s{16, 32, 32};
  KernelCode code =
      build_pipelined(matmul(s.m, s.n, s.k), fmt::format("{} ahead(1, 1) ahead(2, 1)", kStaged));
  const std::vector<float> right = pipelined_product(s, code);
  const pgr_ir_inst wait = all(code, PGR_OP_ASYNC_WAIT)[0];
  const auto at = std::ranges::search(code.ir, std::as_bytes(std::span(&wait, 1)));
  ASSERT_FALSE(at.empty());
  const uint64_t later = wait.arg + 1;
  std::memcpy(&at.front() + offsetof(pgr_ir_inst, arg), &later, sizeof later);
  EXPECT_NE(pipelined_product(s, code), right);
}

TEST(SoftwarePipelining, of_whole_vectors_where_the_device_moves_them) {
  pgr_device_caps caps = gpu_with_copies();
  caps.vector_lanes[PGR_DTYPE_F32] = 4;
  const PipelineSizes s{16, 32, 64};
  const std::string text = fmt::format("{} ahead(1, 1) ahead(2, 1)", kStaged);
  const KernelCode code = build_pipelined(matmul(s.m, s.n, s.k), text, caps);
  for (const pgr_ir_inst& copy : all(code, PGR_OP_ASYNC_COPY)) EXPECT_EQ(copy.lanes, 4u);
  EXPECT_EQ(pipelined_product(s, code), pipelined_product(s, ""));
  caps.async_copy_bytes = 4 | 8;  // copies by ordinary loads and stores
  const KernelCode plain = build_pipelined(matmul(s.m, s.n, s.k), text, caps);
  EXPECT_TRUE(all(plain, PGR_OP_ASYNC_COPY).empty());
  EXPECT_TRUE(all(plain, PGR_OP_ASYNC_WAIT).empty());
  EXPECT_EQ(pipelined_product(s, plain), pipelined_product(s, ""));
}

// Every dtype is copied as it is stored; elements of 2 bytes are too small for an asynchronous
// copy, and those of 8 bytes are pairs of i32 on some devices.
TEST(SoftwarePipelining, of_any_dtype_and_where_indices_have_64_bits) {
  for (DType dtype : {DType::F16, DType::I32, DType::I64, DType::F64, DType::U8}) {
    for (const bool has_wide : {true, false}) {
      if (dtype == DType::I64 && !has_wide) continue;
      pgr_device_caps caps = gpu_with_copies();
      if (!has_wide)
        for (uint32_t& dtypes : caps.op_dtypes)
          dtypes &= ~(1u << PGR_DTYPE_I64 | 1u << PGR_DTYPE_U64);
      Ast ast;
      Graph& g = ast.graph;
      const Id i = make_range(g, 12, 0, AxisKind::Loop), l = make_range(g, 40, 1, AxisKind::Reduce);
      const Id a = load(g, param(g, 1, 40 * 12, false, dtype), affine(g, l, 12, i));
      const Id b = load(g, param(g, 2, 40, false, dtype), l);
      store(ast, param(g, 0, 12, true, dtype), i, reduce(g, Op::Max, g.binary(Op::Add, a, b), {l}));
      std::vector<std::byte> in(40 * 12 * size_of(dtype)), row(40 * size_of(dtype));
      for (size_t n = 0; n < in.size(); ++n)
        in[n] = static_cast<std::byte>(n % size_of(dtype) == 0 ? n * 7 % 64 : 0);
      for (size_t n = 0; n < row.size(); ++n)
        row[n] = static_cast<std::byte>(n % size_of(dtype) == 0 ? n * 5 % 64 : 0);
      const auto result = [&](const char* text) {
        std::vector<std::byte> out(12 * size_of(dtype));
        run_buffers(build_pipelined(ast, text, caps),
                    {{out.data(), out.size()}, {in.data(), in.size()}, {row.data(), row.size()}});
        return out;
      };
      EXPECT_EQ(result("local(0, 4) block(2, 8) stage(1, 3) stage(2, 3) ahead(1, 2) ahead(2, 1)"),
                result(""))
          << name_of(dtype) << has_wide;
    }
  }
}

// A mask becomes the gate of the copy: masked elements are 0, and the copy does not read an address
// outside of the buffer.
TEST(SoftwarePipelining, behind_closed_gates_have_zeros) {
  const PipelineSizes s{16, 24, 40};
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, s.m, 0, AxisKind::Loop), j = make_range(g, s.n, 1, AxisKind::Loop);
  const Id l = make_range(g, s.k, 2, AxisKind::Reduce);
  const Id third = g.binary(Op::FloorMod, g.binary(Op::Add, l, i), g.index(3));
  const Id gate = g.binary(Op::CmpLt, third, g.index(2));
  const Id place = g.where(gate, affine(g, i, s.k, l), g.index(1 << 20));
  const Id a = g.add(Op::Load, DType::F32,
                     {param(g, 1, s.m * s.k, false), place, gate, g.constant(DType::F32, 0.0)});
  const Id b = load(g, param(g, 2, s.k * s.n, false), affine(g, l, s.n, j));
  store(ast, param(g, 0, s.m * s.n, true), affine(g, i, s.n, j),
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {l}));
  const KernelCode code = build_pipelined(ast, fmt::format("{} ahead(1, 2) ahead(2, 1)", kStaged));
  EXPECT_TRUE(std::ranges::any_of(all(code, PGR_OP_ASYNC_COPY),
                                  [](const auto& copy) { return copy.src_count == 5; }));
  EXPECT_EQ(pipelined_product(s, code), pipelined_product(s, build_pipelined(ast, "")));
}

std::string pipelining_refusal(const std::string& text,
                               const pgr_device_caps& caps = gpu_with_copies()) {
  try {
    build_pipelined(matmul(16, 32, 32), text, caps);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    return e.what();
  }
  return "no error";
}

TEST(SoftwarePipelining, are_refused_where_they_cannot_be) {
  pgr_device_caps caps = gpu_with_copies();
  caps.async_copy_bytes = 0;
  EXPECT_THAT(pipelining_refusal(fmt::format("{} ahead(1, 1)", kStaged), caps),
              HasSubstr("ahead(1, 1): the device has no asynchronous copies"));
  EXPECT_THAT(pipelining_refusal("ahead(1, 1)"),
              HasSubstr("nothing of parameter 1 is copied into local memory"));
  EXPECT_THAT(pipelining_refusal(fmt::format("{} ahead(3, 1)", kStaged)),
              HasSubstr("nothing of parameter 3 is copied"));
  EXPECT_THAT(pipelining_refusal(fmt::format("{} ahead(1, 0)", kStaged)),
              HasSubstr("0 iterations ahead; 1 to 7 are possible"));
  EXPECT_THAT(pipelining_refusal(fmt::format("{} ahead(1, 8)", kStaged)),
              HasSubstr("1 to 7 are possible"));
  EXPECT_THAT(pipelining_refusal(fmt::format("{} ahead(1, 1) ahead(1, 1)", kStaged)),
              HasSubstr("it is copied ahead already"));
  EXPECT_THAT(pipelining_refusal("local(1, 8) stage(2, 0) ahead(2, 1)"),
              HasSubstr("not copied inside a reduce loop"));
  caps = gpu_with_copies();
  caps.local_bytes = 1000;  // 384 for one tile of each
  EXPECT_EQ(pipelining_refusal(fmt::format("{} ahead(1, 1) ahead(2, 1)", kStaged), caps),
            "no error");
  EXPECT_THAT(pipelining_refusal(fmt::format("{} ahead(1, 1) ahead(2, 2)", kStaged), caps),
              HasSubstr("bytes of local memory, the device has 1000"));
}

// The inner loop's bound depends on the outer loop; the copied tile is that of the inner loop's
// iteration.
TEST(SoftwarePipelining, of_the_inner_of_two_loops_that_a_count_ends) {
  const int64_t m = 16, n = 32, k = 64;
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, m, 0, AxisKind::Loop), j = make_range(g, n, 1, AxisKind::Loop);
  const Id l = make_range(g, k, 2, AxisKind::Reduce);
  const Id a = load(g, param(g, 1, m * k, false), affine(g, i, k, l));
  const Id b = load(g, param(g, 2, k * n, false), affine(g, l, n, j));
  const Id count = load(g, param(g, 3, 1, false, DType::I32), g.index(0));
  const Id inside = g.binary(Op::CmpLt, g.cast(l, DType::I32), count);
  const Id term = g.where(inside, g.binary(Op::Mul, a, b), g.constant(DType::F32, 0.0));
  store(ast, param(g, 0, m * n, true), affine(g, i, n, j), reduce(g, Op::Add, term, {l}));
  const KernelCode code =
      build_pipelined(ast,
                      "local(0, 4) local(1, 8) block(4, 32) block(5, 8) stage(1, 6) "
                      "stage(2, 6) ahead(1, 1) ahead(2, 1)");
  const KernelCode plain = build_pipelined(ast, "");
  std::vector<float> x = small_integers(m * k, 1), y = small_integers(k * n, 2);
  for (int32_t terms : {0, 1, 7, 8, 9, 31, 33, 40, 63, 64, 99}) {
    const auto result = [&](const KernelCode& kernel) {
      std::vector<float> out(static_cast<size_t>(m * n), -99);
      const auto bytes = [](auto& values) {
        return sdk::InterpreterBuffer{values.data(), values.size() * 4};
      };
      run_buffers(kernel, {bytes(out), bytes(x), bytes(y), {&terms, sizeof terms}});
      return out;
    };
    EXPECT_EQ(result(code), result(plain)) << terms << " terms";
  }
}

// The sum over k runs inside the one over j, whose part has the larger axis.
TEST(SoftwarePipelining, are_refused_in_loops_of_two_reductions) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 8, 0, AxisKind::Loop);
  const Id j = make_range(g, 16, 1, AxisKind::Reduce), k = make_range(g, 16, 2, AxisKind::Reduce);
  const Id a = load(g, param(g, 1, 8 * 16, false), affine(g, i, 16, k));
  const Id b = load(g, param(g, 2, 16 * 16, false), affine(g, k, 16, j));
  const Id product = reduce(g, Op::Add, g.binary(Op::Mul, a, b), {k});
  store(ast, param(g, 0, 8, true), i, reduce(g, Op::Add, g.binary(Op::Mul, product, product), {j}));
  const std::string staged = "local(0, 4) block(2, 8) block(3, 8) stage(2, 5)";
  build_pipelined(ast, staged);
  try {
    build_pipelined(ast, staged + " ahead(2, 1)");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("copied in loops of two reductions"));
  }
}

TEST(SoftwarePipelining, random_lists_give_the_same_numbers) {
  std::mt19937 random(17);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int legal = 0, asynchronous = 0;
  for (int round = 0; round < 4000; ++round) {
    const PipelineSizes s{1 + pick(40), 1 + pick(40), 1 + pick(60)};
    std::string text;
    const auto add = [&](const char* kind, int axis, int amount) {
      text += fmt::format("{}{}({}, {})", text.empty() ? "" : " ", kind, axis, amount);
    };
    for (int axis : {0, 1})
      if (pick(4) > 0) add("local", axis, 2 + pick(5));
    if (pick(2) == 0) add("upcast", pick(2), 2 + pick(2));
    if (pick(4) > 0) add("block", 3 + pick(3), 2 + pick(12));
    const int first = 1 + pick(2);
    for (int slot : {first, 3 - first})
      if (slot == first || pick(2) == 0) {
        add("stage", slot, 4 + pick(3));
        if (pick(3) > 0) add("ahead", slot, 1 + pick(3));
      }
    const char* after[] = {"thread", "unroll", "swap"};
    for (int i = pick(3); i-- > 0;) add(after[pick(3)], pick(6), pick(4));
    pgr_device_caps caps = gpu_with_copies();
    caps.vector_lanes[PGR_DTYPE_F32] = 1u << pick(3);
    std::vector<float> got;
    try {
      const KernelCode code = build_pipelined(matmul(s.m, s.n, s.k), text, caps);
      got = pipelined_product(s, code);
      asynchronous += all(code, PGR_OP_ASYNC_COPY).empty() ? 0 : 1;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::User) << text << ": " << e.what();
      continue;
    }
    ++legal;
    ASSERT_EQ(got, pipelined_product(s, ""))
        << text << " of " << s.m << " x " << s.n << " x " << s.k;
  }
  EXPECT_GT(legal, 40);
  EXPECT_GT(asynchronous, 20);
}

}  // namespace
}  // namespace plugrad::test
