// Work-items of a group: shared reductions, ranges that the group size does not divide, launches
// beyond a device's limit along one axis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gpu.h"
#include "kernels.h"
#include "plugrad/error.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::generate;

codegen::KernelCode build_grouped(const Ast& ast, const char* text,
                                  const pgr_device_caps& caps = with_groups(64, 4096)) {
  const auto list = codegen::parse_schedule(text);
  return generate(ast.graph, ast.sink, caps, {.schedule = &list});
}

std::string message(const Ast& ast, const char* text,
                    const pgr_device_caps& caps = with_groups(64, 4096)) {
  try {
    build_grouped(ast, text, caps);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    return e.what();
  }
  return "no error";
}

template <class T>
void run_typed(const codegen::KernelCode& code, std::vector<T>& out, std::vector<T>& in) {
  run_buffers(code, {{out.data(), out.size() * sizeof(T)}, {in.data(), in.size() * sizeof(T)}});
}

// out[r] = in[r, 0] op in[r, 1] op …
Ast rows(Op op, DType dtype, int64_t rows, int64_t columns) {
  Ast ast;
  Graph& g = ast.graph;
  const Id r = make_range(g, rows, 0, AxisKind::Loop),
           k = make_range(g, columns, 1, AxisKind::Reduce);
  const Id x = load(g, param(g, 1, rows * columns, false, dtype), affine(g, r, columns, k));
  store(ast, param(g, 0, rows, true, dtype), r, reduce(g, op, x, {k}));
  return ast;
}

// out[r, c] = in[r, c] - most + the sum over k of (in[r, k] - most), where most is the largest
// in[r, k]
Ast needs_maximum(int64_t rows, int64_t columns) {
  Ast ast;
  Graph& g = ast.graph;
  const Id r = make_range(g, rows, 0, AxisKind::Loop),
           c = make_range(g, columns, 1, AxisKind::Loop);
  const Id k = make_range(g, columns, 2, AxisKind::Reduce),
           l = make_range(g, columns, 3, AxisKind::Reduce);
  const Id in = param(g, 1, rows * columns, false);
  const auto at = [&](Id column) { return load(g, in, affine(g, r, columns, column)); };
  const Id most = reduce(g, Op::Max, at(k), {k});
  const auto below = [&](Id x) { return g.binary(Op::Sub, x, most); };
  store(ast, param(g, 0, rows * columns, true), affine(g, r, columns, c),
        g.binary(Op::Add, below(at(c)), reduce(g, Op::Add, below(at(l)), {l})));
  return ast;
}

template <class T>
void check_rows(Op op, DType dtype, T (*combine)(T, T)) {
  for (int64_t columns : {15, 16, 61, 64, 200}) {
    std::vector<T> in, out(3, T(99));
    for (float v : small_integers(3 * columns, 4))
      in.push_back(static_cast<T>(op == Op::Mul ? (v < 0 ? -1 : 1) : v));
    for (const char* text : {"group(1, 1)", "group(1, 7)", "group(1, 5) group(1, 3)",
                             "thread(0, 0) group(1, 6)", "local(0, 2) group(2, 4)"}) {
      run_typed(build_grouped(rows(op, dtype, 3, columns), text), out, in);
      for (int64_t r = 0; r < 3; ++r)
        ASSERT_EQ(out[r], std::accumulate(&in[r * columns + 1], &in[(r + 1) * columns],
                                          in[r * columns], combine))
            << text << ", row " << r << " of " << columns;
    }
  }
}

TEST(GroupReductions, combine_what_the_items_found_for_each_op_and_dtype) {
  check_rows<float>(Op::Add, DType::F32, [](float a, float b) { return a + b; });
  check_rows<double>(Op::Mul, DType::F64, [](double a, double b) { return a * b; });
  check_rows<int64_t>(Op::Add, DType::I64, [](int64_t a, int64_t b) { return a + b; });
  check_rows<int8_t>(Op::Max, DType::I8, [](int8_t a, int8_t b) { return std::max(a, b); });
  check_rows<float>(Op::Max, DType::F32, [](float a, float b) { return std::max(a, b); });
}

TEST(GroupReductions, work_on_devices_without_64_bit_integers_and_maxima) {
  pgr_device_caps caps = with_groups(64, 4096);
  for (uint32_t& dtypes : caps.op_dtypes) dtypes &= ~(1u << PGR_DTYPE_I64 | 1u << PGR_DTYPE_U64);
  caps.op_dtypes[PGR_OP_MAX] = 0;
  std::vector<int64_t> in(200), out(1), most(1);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int64_t>(i * 7919 % 200) << 33;
  run_typed(build_grouped(rows(Op::Add, DType::I64, 1, 200), "group(0, 16)", caps), out, in);
  run_typed(build_grouped(rows(Op::Max, DType::I64, 1, 200), "group(0, 16)", caps), most, in);
  EXPECT_EQ(out[0], std::accumulate(in.begin(), in.end(), int64_t{0}));
  EXPECT_EQ(most[0], int64_t{199} << 33);
}

// The second reduction needs the first one's result in all work-items; in a loop over rows both
// reuse their arrays.
TEST(GroupReductions, that_need_one_another_and_run_in_loops) {
  const int64_t count = 5, columns = 30;
  std::vector<float> in = small_integers(count * columns, 3), expected(in.size());
  for (int64_t r = 0; r < count; ++r) {
    const float* row = &in[r * columns];
    const float most = *std::max_element(row, row + columns);
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c] - most;
    for (int64_t c = 0; c < columns; ++c) expected[r * columns + c] = row[c] - most + sum;
  }
  for (const char* text :
       {"group(2, 8)", "group(3, 8)", "group(2, 8) group(3, 8)",
        "group(2, 8) group(3, 8) local(1, 8)", "thread(0, 0) group(2, 8) group(3, 8) local(1, 8)",
        "local(0, 2) group(3, 8) group(4, 8)", "local(0, 2) group(3, 3) group(4, 4) upcast(1, 2)",
        "upcast(0, 2) group(2, 8) group(3, 7)", "thread(0, 0) local(1, 8)"}) {
    std::vector<float> out(in.size(), -99);
    const auto code = build_grouped(needs_maximum(count, columns), text);
    run(code, {&out, &in});
    EXPECT_EQ(out, expected) << text;
    EXPECT_EQ(codegen::to_string(code.schedule), text);
  }
}

TEST(GroupReductions, ranges_that_no_value_needs_together_share_an_axis_of_the_group) {
  const auto code = build_grouped(needs_maximum(5, 30), "group(2, 8) group(3, 8) local(1, 8)");
  EXPECT_THAT(code.local_size, testing::ElementsAre(8, 1, 1));
}

TEST(GroupReductions, over_two_axes_of_items_are_one) {
  const ConvShape s{2, 3, 7, 6, 4, 3};
  std::vector<float> in = small_integers(s.n * s.c * s.h * s.w, 3),
                     w = small_integers(s.o * s.c * s.k * s.k, 4);
  std::vector<float> expected(2 * 4 * 5 * 4), out(expected.size(), -99);
  run(build_grouped(conv2d(s), ""), {&expected, &in, &w});
  const auto code = build_grouped(conv2d(s), "group(4, 3) group(4, 3) group(4, 3)");
  EXPECT_THAT(code.local_size, testing::ElementsAre(3, 3, 3));
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  EXPECT_EQ(std::ranges::count(ir.insts(), PGR_OP_BARRIER, &pgr_ir_inst::op), 5);
  run(code, {&out, &in, &w});
  EXPECT_EQ(out, expected);
}

TEST(GroupReductions, more_than_local_memory_holds_at_once_take_turns) {
  pgr_device_caps caps = with_groups(64, 4096);
  caps.local_bytes = 300;  // one array of 64 floats
  std::vector<float> a = small_integers(24 * 100, 1), b = small_integers(100 * 48, 2);
  std::vector<float> c(24 * 48), expected(24 * 48);
  run(build_grouped(matmul(24, 48, 100), ""), {&expected, &a, &b});
  run(build_grouped(matmul(24, 48, 100), "upcast(0, 4) group(2, 64)", caps), {&c, &a, &b});
  EXPECT_EQ(c, expected);
  caps.local_bytes = 255;
  EXPECT_THAT(message(matmul(24, 48, 100), "group(2, 64)", caps),
              testing::HasSubstr(
                  "what 64 work-items share needs 256 bytes of local memory, the device has 255"));
}

TEST(LocalAxes, and_shared_reductions_are_in_the_name_of_the_kernel) {
  EXPECT_EQ(build_grouped(matmul(16, 16, 64), "local(1, 4) group(3, 8)").name, "r_16_4_4_8_8");
}

TEST(LocalAxes, may_run_past_the_end) {
  std::vector<float> a = small_integers(19 * 23, 1), b = small_integers(23 * 17, 2);
  std::vector<float> expected(19 * 17);
  run(build_grouped(matmul(19, 17, 23), ""), {&expected, &a, &b});
  for (const char* text :
       {"local(1, 8)", "local(0, 4) local(1, 8)", "local(1, 8) thread(0, 0) thread(1, 0)",
        "local(1, 8) upcast(1, 2)", "upcast(1, 4) local(0, 8) local(1, 2)",
        "local(0, 4) local(1, 8) group(4, 2)", "upcast(0, 3) local(1, 8) group(3, 4)"}) {
    std::vector<float> c(expected.size(), -99);
    run(build_grouped(matmul(19, 17, 23), text), {&c, &a, &b});
    EXPECT_EQ(c, expected) << text;
  }
}

TEST(LocalAxes, are_refused_where_the_device_has_fewer_items) {
  EXPECT_THAT(message(matmul(128, 128, 8), "local(0, 65)"),
              testing::HasSubstr("a group of 65 work-items along axis 0, the device allows 64"));
  EXPECT_THAT(message(matmul(128, 128, 8), "local(0, 16) local(1, 8)"),
              testing::HasSubstr("a group of 128 work-items, the device allows 64"));
  EXPECT_THAT(message(add(64), "local(0, 8)", small_cpu(1)),
              testing::HasSubstr("the device has no groups of work-items"));
}

// 4 of 16 rows are a remainder, which has a group of its own and no loop but that over the columns.
TEST(Groups, a_rest_shares_out_columns_as_the_other_rows_do) {
  pgr_device_caps caps = small_cpu(4);
  caps.vector_registers = 16;
  const Ast ast = matmul(16, 64, 8);
  const auto code =
      build_grouped(ast, "upcast(0, 6) vectorize(1, 8) thread(0, 0) thread(1, 0)", caps);
  EXPECT_EQ(code.group_count[0] * code.group_count[1] * code.group_count[2], 3u * 8);
  std::vector<float> a = small_integers(16 * 8, 1), b = small_integers(8 * 64, 2), c(16 * 64, -99);
  run(code, {&c, &a, &b});
  EXPECT_EQ(c, matmul_loops(a, b, 16, 64, 8));
}

TEST(Groups, more_than_an_axis_counts_or_of_more_than_three_axes_are_counted_in_one_number) {
  pgr_device_caps caps = with_groups(64, 4096);
  for (uint64_t& most : caps.max_groups) most = 7;
  const ConvShape s{2, 3, 7, 6, 4, 3};
  std::vector<float> in = small_integers(s.n * s.c * s.h * s.w, 3),
                     w = small_integers(s.o * s.c * s.k * s.k, 4);
  std::vector<float> expected(2 * 4 * 5 * 4), out(expected.size(), -99);
  run(build_grouped(conv2d(s), ""), {&expected, &in, &w});
  const auto code = build_grouped(
      conv2d(s), "thread(0, 0) thread(1, 0) thread(2, 0) thread(3, 0) group(4, 3)", caps);
  for (uint64_t count : code.group_count) EXPECT_LE(count, 7u);
  run(code, {&out, &in, &w});
  EXPECT_EQ(out, expected);
  EXPECT_THAT(message(add(400), "thread(0, 0)", caps),
              testing::HasSubstr("a kernel of 400 groups; the device launches at most 7 x 7 x 7"));
}

}  // namespace
}  // namespace plugrad::test
