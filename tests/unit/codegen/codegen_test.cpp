// Kernels are correct under every loop transformation: each is compared with plain nested loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "gpu.h"
#include "kernels.h"
#include "plugrad/error.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::generate;
using Floats = std::vector<float>;

codegen::KernelCode build_for_cpu(const Ast& ast, codegen::Options options = {},
                                  uint32_t lanes = 4) {
  const pgr_device_caps caps = small_cpu(lanes);
  return generate(ast.graph, ast.sink, caps, options);
}

Floats conv_loops(const Floats& in, const Floats& w, const ConvShape& s) {
  const int64_t oh = s.h - s.k + 1, ow = s.w - s.k + 1;
  Floats out(static_cast<size_t>(s.n * s.o * oh * ow));
  for (int64_t at = 0; at < static_cast<int64_t>(out.size()); ++at) {
    const int64_t x = at % ow, y = at / ow % oh, o = at / ow / oh % s.o, n = at / ow / oh / s.o;
    for (int64_t c = 0; c < s.c; ++c)
      for (int64_t p = 0; p < s.k; ++p)
        for (int64_t q = 0; q < s.k; ++q)
          out[at] += in[((n * s.c + c) * s.h + y + p) * s.w + x + q] *
                     w[((o * s.c + c) * s.k + p) * s.k + q];
  }
  return out;
}

class Elementwise : public testing::TestWithParam<int64_t> {};

TEST_P(Elementwise, add_is_right_for_any_length_and_writes_nothing_else) {
  const int64_t n = GetParam();
  const Ast ast = add(n);
  for (bool no_opt : {false, true}) {
    const auto code = build_for_cpu(ast, {.no_opt = no_opt});
    Floats out(static_cast<size_t>(n), -99), a = small_integers(n, 1), b = small_integers(n, 2);
    run(code, {&out, &a, &b});
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(out[i], a[i] + b[i]) << "element " << i << " of " << n;
  }
}
INSTANTIATE_TEST_SUITE_P(lengths, Elementwise,
                         testing::Values(1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 64, 65, 127, 1003,
                                         65537));

struct Sizes {
  int64_t m, n, k;
};
class Matmul : public testing::TestWithParam<Sizes> {};

TEST_P(Matmul, equals_three_loops) {
  const auto [m, n, k] = GetParam();
  Floats a = small_integers(m * k, 1), b = small_integers(k * n, 2);
  const Floats expected = matmul_loops(a, b, m, n, k);
  for (uint32_t lanes : {1u, 4u, 16u}) {
    Floats c(static_cast<size_t>(m * n));
    run(build_for_cpu(matmul(m, n, k), {}, lanes), {&c, &a, &b});
    EXPECT_EQ(c, expected) << lanes << " lanes";
  }
}
INSTANTIATE_TEST_SUITE_P(sizes, Matmul,
                         testing::Values(Sizes{1, 1, 1}, Sizes{1, 7, 3}, Sizes{7, 1, 5},
                                         Sizes{16, 16, 16}, Sizes{24, 48, 10}, Sizes{17, 19, 23},
                                         Sizes{64, 64, 64}, Sizes{67, 129, 31}, Sizes{2, 300, 5}));

TEST(Convolution, forward_equals_seven_loops) {
  for (const ConvShape& s :
       {ConvShape{2, 3, 9, 9, 4, 3}, ConvShape{1, 1, 12, 28, 8, 5}, ConvShape{3, 4, 7, 7, 6, 1}}) {
    Floats in = small_integers(s.n * s.c * s.h * s.w, 3),
           w = small_integers(s.o * s.c * s.k * s.k, 4);
    const Floats expected = conv_loops(in, w, s);
    Floats out(expected.size());
    run(build_for_cpu(conv2d(s)), {&out, &in, &w});
    EXPECT_EQ(out, expected);
  }
}

TEST(Convolution, weight_gradient_equals_seven_loops) {
  const ConvShape s{3, 2, 9, 13, 4, 3};
  const int64_t oh = s.h - s.k + 1, ow = s.w - s.k + 1;
  Floats in = small_integers(s.n * s.c * s.h * s.w, 3),
         grad = small_integers(s.n * s.o * oh * ow, 4);
  Floats expected(static_cast<size_t>(s.o * s.c * s.k * s.k)), out(expected.size());
  for (int64_t at = 0; at < static_cast<int64_t>(expected.size()); ++at) {
    const int64_t q = at % s.k, p = at / s.k % s.k, c = at / s.k / s.k % s.c,
                  o = at / s.k / s.k / s.c;
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t x = 0; x < ow; ++x)
          expected[at] += in[((n * s.c + c) * s.h + y + p) * s.w + x + q] *
                          grad[((n * s.o + o) * oh + y) * ow + x];
  }
  run(build_for_cpu(conv2d_weight_gradient(s)), {&out, &in, &grad});
  EXPECT_EQ(out, expected);
}

TEST(Pooling, maximum_of_2_by_2_windows) {
  Floats in = small_integers(2 * 6 * 10, 5), out(2 * 3 * 5);
  run(build_for_cpu(max_pool2(2, 6, 10)), {&out, &in});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 5; ++x) {
        const float* corner = &in[(n * 6 + 2 * y) * 10 + 2 * x];
        EXPECT_EQ(out[(n * 3 + y) * 5 + x],
                  std::max({corner[0], corner[1], corner[10], corner[11]}));
      }
}

TEST(Bounds, a_loop_runs_over_the_values_between_them_alone) {
  for (const auto& [below, above] :
       {std::pair<int64_t, int64_t>{2, 3}, {0, 1}, {100, 100}, {0, -2}}) {
    const int64_t m = 21, n = 35, k = 17;
    Floats a = small_integers(m * k, 1), b = small_integers(k * n, 2), banded = a;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l)
        if (l < i - below || l >= i + above) {
          a[i * k + l] = NAN;  // never read
          banded[i * k + l] = 0;
        }
    const Floats expected = matmul_loops(banded, b, m, n, k);
    for (const bool no_opt : {false, true}) {
      Floats c(static_cast<size_t>(m * n));
      run(build_for_cpu(band_matmul(m, n, k, below, above), {.no_opt = no_opt}), {&c, &a, &b});
      EXPECT_EQ(c, expected) << below << ", " << above;
    }
  }
}

TEST(Bounds, taps_outside_of_an_image_are_no_iterations) {
  const ConvShape s{24, 5, 7, 6, 16, 3};
  const int64_t pad = 2, oh = s.h + 2, ow = s.w + 2;
  Floats in = small_integers(s.n * s.c * s.h * s.w, 3),
         w = small_integers(s.o * s.c * s.k * s.k, 4);
  Floats expected(static_cast<size_t>(s.n * s.o * oh * ow)), out(expected.size());
  for (int64_t at = 0; at < static_cast<int64_t>(out.size()); ++at) {
    const int64_t o = at % s.o, x = at / s.o % ow, y = at / s.o / ow % oh, n = at / s.o / ow / oh;
    for (int64_t p = 0; p < s.k; ++p)
      for (int64_t q = 0; q < s.k; ++q) {
        const int64_t h = y + p - pad, v = x + q - pad;
        if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
        for (int64_t c = 0; c < s.c; ++c)
          expected[at] +=
              in[((n * s.h + h) * s.w + v) * s.c + c] * w[((p * s.k + q) * s.c + c) * s.o + o];
      }
  }
  const auto code = build_for_cpu(padded_conv2d(s, pad));
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  int tests = 0, gates = 0;
  for (const pgr_ir_inst& inst : ir.insts()) {
    tests +=
        inst.op == PGR_OP_WHERE && sdk::dtype_size(inst.dtype) == 4 && inst.dtype == PGR_DTYPE_F32;
    gates += inst.op == PGR_OP_LOAD && inst.src_count > 2;
  }
  EXPECT_EQ(tests + gates, 0) << codegen::to_string(code.schedule);
  run(code, {&out, &in, &w});
  EXPECT_EQ(out, expected);
  for (const char* text :
       {"", "vectorize(2, 4)", "upcast(1, 2) vectorize(3, 4)", "unroll(5, 3) upcast(0, 2)"}) {
    const auto list = codegen::parse_schedule(text);
    Floats again(expected.size());
    run(build_for_cpu(padded_conv2d(s, pad), {.schedule = &list}), {&again, &in, &w});
    EXPECT_EQ(again, expected) << text;
  }
}

TEST(Reduction, sum_of_relu_over_lengths_that_lanes_do_not_divide) {
  for (int64_t n : {1, 3, 16, 67, 1000, 4099}) {
    Floats a = small_integers(n, 6), out(1, -1);
    float expected = 0;
    for (float v : a) expected += std::max(v, 0.0f);
    run(build_for_cpu(relu_sum(n)), {&out, &a});
    EXPECT_EQ(out[0], expected) << n;
  }
}

TEST(Borders, a_padded_row_has_no_condition_in_its_loops_and_every_piece_is_in_lanes) {
  // out[y, x] = in[y, x - 3] where 3 <= x < 203, else 0
  Ast ast;
  Graph& g = ast.graph;
  const Id y = make_range(g, 700, 0, AxisKind::Loop), x = make_range(g, 240, 1, AxisKind::Loop);
  const Id inside =
      g.binary(Op::And, g.binary(Op::CmpLt, g.index(2), x), g.binary(Op::CmpLt, x, g.index(203)));
  const Id from = param(g, 1, 700 * 200, false), zero = g.constant(DType::F32, 0.0);
  const Id index = affine(g, y, 200, g.binary(Op::Add, x, g.index(-3)));
  store(ast, param(g, 0, 700 * 240, true), affine(g, y, 240, x),
        g.add(Op::Load, DType::F32, {from, index, inside, zero}));
  const auto code = build_for_cpu(ast);
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  for (const pgr_ir_inst& inst : ir.insts()) {
    EXPECT_NE(inst.op, PGR_OP_CMPLT);
    EXPECT_TRUE(inst.op != PGR_OP_LOAD || inst.src_count <= 2);
  }
  Floats in = small_integers(700 * 200, 7), out(700 * 240, -99);
  run(code, {&out, &in});
  for (int64_t i = 0; i < 700 * 240; ++i) {
    const int64_t row = i / 240, column = i % 240;
    ASSERT_EQ(out[i], column >= 3 && column < 203 ? in[row * 200 + column - 3] : 0)
        << row << ", " << column;
  }
}

TEST(Borders, pieces_without_a_common_loop_share_the_groups) {
  // out[x] = x < 40001 ? in[x] : in[x] * 2, long enough for threads
  Ast ast;
  Graph& g = ast.graph;
  const int64_t n = 100003;
  const Id x = make_range(g, n, 0, AxisKind::Loop), a = load(g, param(g, 1, n, false), x);
  const Id first = g.binary(Op::CmpLt, x, g.index(40001));
  store(ast, param(g, 0, n, true), x,
        g.where(first, a, g.binary(Op::Mul, a, g.constant(DType::F32, 2.0))));
  const auto code = build_for_cpu(ast);
  EXPECT_GT(code.group_count[0], 8u);
  Floats in = small_integers(n, 7), out(static_cast<size_t>(n), -99);
  run(code, {&out, &in});
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], i < 40001 ? in[i] : in[i] * 2) << i;
}

TEST(Optimisations, any_legal_list_gives_the_same_numbers_and_is_reported) {
  Floats a = small_integers(24 * 10, 1), b = small_integers(10 * 48, 2);
  const Floats expected = matmul_loops(a, b, 24, 48, 10);
  for (const char* text :
       {"upcast(0, 5)", "vectorize(1, 48)", "vectorize(1, 20) upcast(0, 7)", "unroll(2, 3)",
        "vectorize(2, 4)", "vectorize(2, 10) upcast(0, 2) upcast(1, 3)",
        "swap(0, 1) vectorize(0, 16)", "block(1, 20) block(2, 4)", "block(2, 3) accumulate(2, 0)",
        "block(2, 4) accumulate(2, 1) stage(2, 2)", "stage(1, 0) stage(2, 1)",
        "upcast(0, 5) vectorize(1, 16) swap(0, 1) stage(2, 1) thread(0, 0)",
        "upcast(0, 7) vectorize(1, 20) unroll(2, 2) block(2, 2) accumulate(2, 0) stage(2, 1) "
        "block(1, 2) stage(1, 2)",
        "vectorize(1, 16) stage(1, 0) upcast(2, 4) stage(2, 0)", "thread(0, 0) thread(1, 0)",
        "upcast(0, 5) thread(0, 0)", "thread(1, 0) vectorize(0, 4)"}) {
    const auto list = codegen::parse_schedule(text);
    const auto code = build_for_cpu(matmul(24, 48, 10), {.schedule = &list});
    Floats c(expected.size());
    run(code, {&c, &a, &b});
    EXPECT_EQ(c, expected) << text;
    EXPECT_EQ(codegen::to_string(code.schedule), text);
  }
}

TEST(Optimisations, the_page_s_lists_give_the_same_numbers) {
  std::ifstream page(PLUGRAD_OPTIMISATIONS_PAGE);
  Floats a = small_integers(256 * 512, 1), b = small_integers(512 * 100, 2);
  const Floats expected = matmul_loops(a, b, 256, 100, 512);
  pgr_device_caps caps = small_cpu(16);
  caps.private_bytes = 512 << 10;
  pgr_device_caps in_step = with_async_copies(with_groups(64, 32 << 10));
  in_step.subgroup_size = 8;
  int lists = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("    ")) continue;
    const auto list = codegen::parse_schedule(line);
    const Ast ast = matmul(256, 100, 512);
    const bool has_items = line.find("local(") != std::string::npos;
    const auto code =
        generate(ast.graph, ast.sink, has_items ? in_step : caps, {.schedule = &list});
    Floats c(expected.size());
    run(code, {&c, &a, &b});
    EXPECT_EQ(c, expected) << line;
    ++lists;
  }
  EXPECT_EQ(lists, 5);
}

size_t count_of(const codegen::KernelCode& code, uint16_t op) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  return static_cast<size_t>(
      std::ranges::count_if(ir.insts(), [&](const pgr_ir_inst& inst) { return inst.op == op; }));
}

TEST(Optimisations, what_is_kept_of_a_row_is_computed_once_and_waits_in_the_output) {
  constexpr int64_t kRows = 5, kColumns = 37;
  Floats x = small_integers(kRows * kColumns, 1), expected(x.size());
  for (int64_t i = 0; i < kRows; ++i) {
    const auto row = std::span(x).subspan(static_cast<size_t>(i * kColumns), kColumns);
    float sum = 0;
    for (float v : row) sum += std::exp2(v - std::ranges::max(row));
    for (size_t j = 0; j < row.size(); ++j)
      expected[static_cast<size_t>(i * kColumns) + j] =
          std::exp2(row[j] - std::ranges::max(row)) / sum;
  }
  const Ast ast = softmax2(kRows, kColumns);
  for (const char* text :
       {"", "keep(2, 1)", "keep(2, 1) vectorize(1, 8)", "keep(2, 0)", "keep(2, 1) upcast(0, 2)",
        "keep(2, 1) unroll(3, 4) vectorize(1, 16) thread(0, 0)"}) {
    const auto list = codegen::parse_schedule(text);
    const auto code = build_for_cpu(ast, {.schedule = &list});
    EXPECT_EQ(codegen::to_string(code.schedule), text);
    if (std::string_view(text).size() <= 10) {
      EXPECT_EQ(count_of(code, PGR_OP_EXP2), list.empty() ? 2u : 1u) << text;
    }
    Floats y(x.size());
    run(code, {&y, &x});
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], expected[i], 1e-6 * expected[i]) << text << " at " << i;
  }
}

TEST(Optimisations, nothing_is_stored_over_rows_that_wait_in_the_output) {
  for (const char* text : {"keep(2, 1) swap(0, 1)", "keep(2, 1) thread(1, 0)",
                           "keep(2, 1) block(0, 2)", "keep(2, 1) accumulate(3, 1)"}) {
    const auto list = codegen::parse_schedule(text);
    EXPECT_THROW(build_for_cpu(softmax2(6, 32), {.schedule = &list}), Error) << text;
  }
}

TEST(Optimisations, a_window_is_staged_once_for_all_its_taps) {
  const ConvShape s{3, 2, 9, 11, 4, 3};
  Floats in = small_integers(s.n * s.c * s.h * s.w, 3),
         w = small_integers(s.o * s.c * s.k * s.k, 4);
  const Floats expected = conv_loops(in, w, s);
  for (const char* text :
       {"stage(1, 0)", "stage(1, 1) stage(2, 0)",
        "upcast(3, 3) vectorize(1, 4) stage(1, 1) stage(2, 0)",
        "block(4, 1) accumulate(4, 1) stage(1, 2)", "upcast(0, 2) stage(1, 0) thread(1, 0)"}) {
    const auto list = codegen::parse_schedule(text);
    const auto code = build_for_cpu(conv2d(s), {.schedule = &list});
    Floats out(expected.size());
    run(code, {&out, &in, &w});
    EXPECT_EQ(out, expected) << text;
  }
  // The whole image of a channel: 9 rows of 11 and no copy for each tap.
  const auto list = codegen::parse_schedule("stage(1, 2)");
  const auto code = build_for_cpu(conv2d(s), {.schedule = &list});
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  uint64_t largest = 0;
  for (const pgr_ir_array& array : ir.arrays()) largest = std::max(largest, array.elem_count);
  EXPECT_EQ(largest, static_cast<uint64_t>(s.c * s.h * s.w));
}

TEST(Optimisations, what_is_done_to_a_blocked_sum_is_done_once) {
  Ast ast;
  Graph& g = ast.graph;
  const Id k = make_range(g, 23, 1, AxisKind::Reduce), i = make_range(g, 6, 0, AxisKind::Loop);
  const Id sum = reduce(g, Op::Add, load(g, param(g, 1, 6 * 23, false), affine(g, i, 23, k)), {k});
  store(ast, param(g, 0, 6, true), i,
        g.binary(Op::Mul, g.binary(Op::Add, sum, g.constant(DType::F32, 1.0)),
                 g.constant(DType::F32, 2.0)));
  const auto by_row = codegen::parse_schedule("block(1, 5) accumulate(1, 0)");
  const auto code = build_for_cpu(ast, {.schedule = &by_row});
  Floats in = small_integers(6 * 23, 5), out(6, -9);
  run(code, {&out, &in});
  for (int64_t row = 0; row < 6; ++row) {
    float expected = 1;
    for (int64_t at = 0; at < 23; ++at) expected += in[row * 23 + at];
    EXPECT_EQ(out[row], 2 * expected) << row;
  }
}

// out[i] = the sum of 4 over 40 iterations, for every third i: no value varies along the summed
// axes.
Ast sum_of_what_is_the_same() {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 10, 0, AxisKind::Loop);
  const Id k = make_range(g, 5, 1, AxisKind::Reduce), l = make_range(g, 8, 2, AxisKind::Reduce);
  const Id is_third = g.binary(Op::CmpEq, g.binary(Op::Mod, i, g.index(3)), g.index(1));
  const Id value = g.add(Op::Where, DType::F32,
                         {is_third, g.constant(DType::F32, 4.0), g.constant(DType::F32, 0.0)});
  store(ast, param(g, 0, 10, true), i, reduce(g, Op::Add, value, {k, l}));
  return ast;
}

TEST(Optimisations, a_sum_of_what_is_the_same_has_lanes_along_one_axis) {
  for (const char* text :
       {"", "vectorize(0, 5)", "vectorize(1, 3)", "vectorize(1, 8) unroll(1, 5)"}) {
    const auto list = codegen::parse_schedule(text);
    Floats out(10, -9);
    run(build_for_cpu(sum_of_what_is_the_same(), {.schedule = &list}), {&out});
    for (size_t i = 0; i < 10; ++i)
      EXPECT_EQ(out[i], i % 3 == 1 ? 160 : 0) << text << ", element " << i;
  }
  for (const char* text : {"vectorize(0, 5) vectorize(1, 3)", "vectorize(1, 3) vectorize(0, 5)",
                           "vectorize(1, 8) vectorize(1, 5)"}) {
    const auto list = codegen::parse_schedule(text);
    EXPECT_THROW(build_for_cpu(sum_of_what_is_the_same(), {.schedule = &list}), Error) << text;
  }
}

TEST(Optimisations, an_illegal_change_names_itself_and_the_axis) {
  const auto message = [](const char* text) -> std::string {
    try {
      const auto list = codegen::parse_schedule(text);
      build_for_cpu(matmul(24, 48, 10), {.schedule = &list});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::User);
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("upcast(7, 2)"), testing::HasSubstr("upcast(7, 2): the kernel has 3 axes"));
  EXPECT_THAT(message("upcast(0, 25)"), testing::HasSubstr("axis 0 has size 24"));
  EXPECT_THAT(message("unroll(0, 2)"), testing::HasSubstr("axis 0 is no reduce loop"));
  EXPECT_THAT(message("vectorize(0, 4) vectorize(1, 4)"),
              testing::HasSubstr("a value along the axis has a vector axis already"));
  EXPECT_THAT(message("swap(0, 2)"), testing::HasSubstr("cannot change places"));
  EXPECT_THAT(message("stage(3, 1)"), testing::HasSubstr("stage(3, 1): no load of parameter 3"));
  EXPECT_THAT(message("stage(0, 3)"),
              testing::HasSubstr("stage(0, 3): no stored value of the parameter varies inside"));
  EXPECT_THAT(message("stage(1, 9)"), testing::HasSubstr("the kernel has 3 axes"));
  EXPECT_THAT(message("keep(2, 1)"),
              testing::HasSubstr("keep(2, 1): no value along the axis is computed again"));
  EXPECT_THAT(message("keep(0, 9)"), testing::HasSubstr("the kernel has 3 axes"));
  EXPECT_THAT(message("accumulate(0, 0)"), testing::HasSubstr("axis 0 is no reduce loop"));
  EXPECT_THAT(message("accumulate(2, 3)"), testing::HasSubstr("there are 2 output loops"));
  EXPECT_THAT(message("stage(0, 0) accumulate(4, 0)"),
              testing::HasSubstr("a value made of the sum is in a local buffer"));
  EXPECT_THAT(message("block(1, 49)"), testing::HasSubstr("axis 1 has size 48"));
  const auto banded = [](const char* text) -> std::string {
    try {
      const auto list = codegen::parse_schedule(text);
      build_for_cpu(band_matmul(24, 48, 10, 2, 3), {.schedule = &list});
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(banded("unroll(2, 2)"), testing::HasSubstr("unroll(2, 2): axis 2 has bounds"));
  EXPECT_THAT(banded("upcast(0, 2)"), testing::HasSubstr("another axis is bounded by axis 0"));
  EXPECT_THAT(banded("stage(2, 1)"), testing::HasSubstr("an axis inside has bounds"));
  EXPECT_EQ(banded("vectorize(1, 4) swap(0, 1) thread(0, 0)"), "no error");
  EXPECT_THAT(message("upcats(0, 2)"), testing::HasSubstr("unknown optimisation \"upcats\""));
}

TEST(Names, tell_reduction_and_axes) {
  EXPECT_EQ(build_for_cpu(add(4)).name, "E_4");
  EXPECT_EQ(build_for_cpu(matmul(24, 48, 10), {.no_opt = true}).name, "r_24_48_10");
}

TEST(Estimates, count_operations_and_bytes_once) {
  const auto code = build_for_cpu(matmul(24, 48, 10));
  EXPECT_EQ(code.estimates.flops, 2 * 24 * 48 * 10);
  EXPECT_EQ(code.estimates.bytes, 4 * (24 * 10 + 10 * 48 + 24 * 48));
}

// out[i] = sum over c of x[c, i / 2] * w[c, i % 2], or without the sum with c = 0
Ast pairs(bool sums) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 8, 0, AxisKind::Loop), c = make_range(g, 3, 1, AxisKind::Reduce);
  const Id half = g.binary(Op::FloorDiv, i, g.index(2)),
           rest = g.binary(Op::FloorMod, i, g.index(2));
  const Id x = load(g, param(g, 1, 12, false), sums ? affine(g, c, 4, half) : half);
  const Id w = load(g, param(g, 2, 6, false), sums ? affine(g, c, 2, rest) : rest);
  const Id product = g.binary(Op::Mul, x, w);
  store(ast, param(g, 0, 8, true), i, sums ? reduce(g, Op::Add, product, {c}) : product);
  return ast;
}

// Vectors of sums are transposed in registers before the store, so lanes may run along i / 2; a
// value that is stored directly needs whole vectors of i.
TEST(DividedLoop, splits_where_only_stores_of_sums_want_it_whole) {
  const codegen::KernelCode sums = build_for_cpu(pairs(true), {.no_opt = true});
  EXPECT_EQ(sums.name, "r_4_2_3");
  EXPECT_EQ(build_for_cpu(pairs(false), {.no_opt = true}).name, "E_8");
  std::vector<float> out(8), x = small_integers(12, 1), w = small_integers(6, 2), expected(8);
  run(sums, {&out, &x, &w});
  for (size_t i = 0; i < 8; ++i)
    for (size_t c = 0; c < 3; ++c) expected[i] += x[c * 4 + i / 2] * w[c * 2 + i % 2];
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace plugrad::test
