// The heuristic's schedules for a device without work-items, and correctness of the kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::generate;
using Floats = std::vector<float>;

pgr_device_caps with_small_caches() {
  pgr_device_caps caps = small_cpu(16);
  caps.vector_registers = 32;
  caps.private_bytes = 32 << 10;
  caps.cache_bytes[0] = 8 << 10;
  caps.cache_bytes[1] = 64 << 10;
  caps.cache_bytes[2] = 512 << 10;
  return caps;
}

TEST(Heuristic, the_lanes_operand_of_a_large_product_is_staged_and_only_its_loop_runs_in_parallel) {
  pgr_device_caps caps = with_small_caches();
  caps.private_bytes = 96 << 10;
  const Ast large = matmul(512, 500, 64), small = matmul(64, 64, 64);
  const auto code = generate(large.graph, large.sink, caps, {});
  EXPECT_THAT(codegen::to_string(code.schedule),
              testing::HasSubstr("swap(0, 1) stage(2, 1) thread(0, 0)"));
  EXPECT_THAT(codegen::to_string(generate(small.graph, small.sink, caps, {}).schedule),
              testing::Not(testing::HasSubstr("stage")));
  Floats a = small_integers(512 * 64, 1), b = small_integers(64 * 500, 2), c(512 * 500);
  run(code, {&c, &a, &b});
  EXPECT_EQ(c, matmul_loops(a, b, 512, 500, 64));
}

// The product of m x k and k x n with the heuristic's schedule, computed by the interpreter.
std::string check_product(const pgr_device_caps& caps, int64_t m, int64_t n, int64_t k, bool ta,
                          bool tb) {
  const Ast ast = matmul(m, n, k, ta, tb);
  const auto code = generate(ast.graph, ast.sink, caps, {});
  const Floats a = small_integers(m * k, 1), b = small_integers(k * n, 2);
  Floats own_a(a.size()), own_b(b.size()), c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      own_a[static_cast<size_t>(ta ? l * m + i : i * k + l)] = a[static_cast<size_t>(i * k + l)];
  for (int64_t l = 0; l < k; ++l)
    for (int64_t j = 0; j < n; ++j)
      own_b[static_cast<size_t>(tb ? j * k + l : l * n + j)] = b[static_cast<size_t>(l * n + j)];
  run(code, {&c, &own_a, &own_b});
  EXPECT_EQ(c, matmul_loops(a, b, m, n, k)) << codegen::to_string(code.schedule);
  return codegen::to_string(code.schedule);
}

TEST(Heuristic, rows_that_no_cache_holds_are_taken_block_by_block) {
  EXPECT_THAT(check_product(with_small_caches(), 512, 100, 256, false, false),
              testing::MatchesRegex("upcast.*vectorize.* accumulate\\(2, 0\\) block\\(1, .*\\) "
                                    "stage\\(2, 3\\) thread\\(1, 0\\)"));
}

TEST(Heuristic, operands_that_lie_the_other_way_round_are_staged) {
  const auto a = check_product(with_small_caches(), 512, 512, 256, true, false);
  EXPECT_THAT(a, testing::HasSubstr("stage(1, 2) stage(2, 3) thread(1, 0)"));
  const auto b = check_product(with_small_caches(), 200, 500, 64, false, true);
  EXPECT_THAT(b, testing::HasSubstr("swap(0, 1) stage(2, 1) thread(0, 0)"));
  check_product(with_small_caches(), 512, 144, 256, true, true);
}

// Sizes without divisors: remainders of rows, of columns and of the sum.
TEST(Heuristic, ragged_products_are_right) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      check_product(with_small_caches(), 509, 103, 251, ta, tb);
      check_product(with_small_caches(), 103, 509, 251, ta, tb);
    }
}

TEST(Heuristic, a_matrix_that_is_read_once_is_read_along_few_rows_at_a_time) {
  pgr_device_caps caps = small_cpu(16);
  caps.vector_registers = 32;
  const Ast ast = matmul(130, 1, 512);
  const auto code = generate(ast.graph, ast.sink, caps, {});
  EXPECT_THAT(codegen::to_string(code.schedule),
              testing::StartsWith("upcast(0, 4) vectorize(1, 16)"));
  Floats a = small_integers(130 * 512, 1), x = small_integers(512, 2), y(130);
  run(code, {&y, &a, &x});
  EXPECT_EQ(y, matmul_loops(a, x, 130, 1, 512));
}

TEST(Heuristic, the_rows_of_a_matrix_that_no_cache_holds_are_long_streams_apart) {
  struct Rows {
    uint32_t threads;
    int64_t rows;
    const char* list;
  };
  for (const auto& [threads, rows, list] :
       {Rows{1, 4096, "block(0, 2048) block(1, 512) upcast(1, 4) vectorize(2, 16)"},
        Rows{2, 4096, "block(0, 256) block(1, 64) upcast(1, 4) vectorize(2, 16) t"},
        Rows{2, 4099, "block(0, 256) block(1, 64) upcast(1, 4)"},
        Rows{1, 120, "upcast(0, 4) vectorize(1, 16)"}}) {  // 60 KiB
    pgr_device_caps caps = small_cpu(16);
    caps.vector_registers = 32, caps.cache_bytes[1] = 64 << 10, caps.threads = threads;
    const auto ast = matmul(rows, 1, 128);
    const auto code = generate(ast.graph, ast.sink, caps, {});
    EXPECT_THAT(codegen::to_string(code.schedule), testing::StartsWith(list)) << rows;
    Floats a = small_integers(rows * 128, 1), x = small_integers(128, 2),
           y(static_cast<size_t>(rows), 7.0f);
    run(code, {&y, &a, &x});
    EXPECT_EQ(y, matmul_loops(a, x, rows, 1, 128)) << rows;
  }
}

TEST(Heuristic, sums_of_columns_wait_in_the_output_while_rows_are_added) {
  for (const uint32_t threads : {1u, 2u}) {
    pgr_device_caps caps = small_cpu(16);
    caps.vector_registers = 32;
    caps.threads = threads;
    const Ast ast = matmul(1, 1500, 300);
    const auto code = generate(ast.graph, ast.sink, caps, {});
    EXPECT_THAT(codegen::to_string(code.schedule), testing::HasSubstr("accumulate"));
    EXPECT_EQ(code.group_count[0] > 1, threads > 1) << codegen::to_string(code.schedule);
    Floats x = small_integers(300, 1), a = small_integers(300 * 1500, 2), y(1500, 7.0f);
    run(code, {&y, &x, &a});
    EXPECT_EQ(y, matmul_loops(x, a, 1, 1500, 300)) << threads;
  }
}

// One row or few: a vector of columns, several rows of the matrix per iteration, also in the
// remainder of the columns.
TEST(Heuristic, sums_of_columns_of_a_matrix_that_no_cache_holds_take_one_vector_of_each_row) {
  for (const int64_t n : {1024, 1027}) {
    EXPECT_THAT(check_product(with_small_caches(), 1, n, 256, false, false),
                testing::HasSubstr("vectorize(0, 16) unroll(1, 8)"));
    EXPECT_THAT(check_product(with_small_caches(), 7, n, 256, false, false),
                testing::HasSubstr("upcast(0, 7) vectorize(0, 16) unroll(1, 8)"));
  }
  // A sum of prime length, and a matrix that fits the caches.
  EXPECT_THAT(check_product(with_small_caches(), 3, 1024, 257, false, false),
              testing::Not(testing::HasSubstr("accumulate")));
  EXPECT_THAT(check_product(with_small_caches(), 3, 112, 256, false, false),
              testing::Not(testing::HasSubstr("accumulate")));
}

// The accumulator is not in the output's dtype and stays in registers: 16 of 32 hold columns.
TEST(Heuristic, sums_of_columns_of_halves_are_as_wide_as_the_registers) {
  constexpr int64_t kRows = 256, kColumns = 2048;
  pgr_device_caps caps = with_small_caches();
  caps.vector_registers = 32;
  Ast ast;
  Graph& g = ast.graph;
  const Id j = make_range(g, kColumns, 0, AxisKind::Loop),
           k = make_range(g, kRows, 1, AxisKind::Reduce);
  const Id a = load(g, param(g, 1, kRows * kColumns, false, DType::F16), affine(g, k, kColumns, j));
  const Id sum = reduce(g, Op::Add, g.cast(a, DType::F32), {k});
  store(ast, param(g, 0, kColumns, true, DType::F16), j, g.cast(sum, DType::F16));
  const auto code = generate(ast.graph, ast.sink, caps, {});
  EXPECT_THAT(codegen::to_string(code.schedule), testing::StartsWith("vectorize(0, 256)"));
}

// out[n, w, c] = x[n, w, c] times the sum of its window over w: four strided elements.
TEST(Heuristic, lanes_run_across_rows_that_are_shorter_than_a_vector_and_lie_beside_each_other) {
  constexpr int64_t kImages = 40, kWindow = 4, kChannels = 32;
  Ast ast;
  Graph& g = ast.graph;
  const Id n = make_range(g, kImages, 0, AxisKind::Loop),
           w = make_range(g, kWindow, 1, AxisKind::Loop);
  const Id c = make_range(g, kChannels, 2, AxisKind::Loop),
           in_window = make_range(g, kWindow, 3, AxisKind::Reduce);
  const Id from = param(g, 1, kImages * kWindow * kChannels, false);
  const auto place = [&](Id at) { return affine(g, affine(g, n, kWindow, at), kChannels, c); };
  const Id sum = reduce(g, Op::Add, load(g, from, place(in_window)), {in_window});
  store(ast, param(g, 0, kImages * kWindow * kChannels, true), place(w),
        g.binary(Op::Mul, load(g, from, place(w)), sum));
  const auto code = generate(ast.graph, ast.sink, small_cpu(16), {});
  EXPECT_THAT(codegen::to_string(code.schedule),
              testing::HasSubstr("upcast(1, 4) vectorize(1, 32)"));
  Floats x = small_integers(kImages * kWindow * kChannels, 1), got(x.size()), expected(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = 0; k < kWindow; ++k)
      expected[i] +=
          x[i] *
          x[i / (kWindow * kChannels) * (kWindow * kChannels) + k * kChannels + i % kChannels];
  run(code, {&got, &x});
  EXPECT_EQ(got, expected);
}

TEST(Heuristic, rows_of_a_prime_number_are_side_by_side_too) {
  EXPECT_THAT(check_product(with_small_caches(), 7, 64, 40, false, false),
              testing::StartsWith("upcast(0, 7)"));
  for (const int64_t m : {11, 17, 31, 37})
    EXPECT_THAT(check_product(with_small_caches(), m, 96, 40, false, false),
                testing::StartsWith("upcast(0, "))
        << m;
}

// A panel of 45 columns is split into vectors of 32, 8, 4 and 1, for which eight rows would need 40
// registers.
TEST(Heuristic, the_rest_of_the_columns_fits_into_the_registers_too) {
  pgr_device_caps caps = with_small_caches();
  caps.private_bytes = 1 << 20;
  EXPECT_THAT(check_product(caps, 111, 93, 40, false, false),
              testing::Not(testing::HasSubstr("upcast(0, 8) vectorize(1, 48)")));
}

// out[i] = sum over k of a[k, i], after `times` applications of x -> max(x - 1, -x).
std::string list_of_column_sums(int times) {
  constexpr int64_t kRows = 64, kColumns = 64;
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kColumns, 0, AxisKind::Loop),
           k = make_range(g, kRows, 1, AxisKind::Reduce);
  Id value = load(g, param(g, 1, kRows * kColumns, false), affine(g, k, kColumns, i));
  const Id one = g.constant(DType::F32, 1.0), minus_one = g.constant(DType::F32, -1.0);
  for (int n = 0; n < times; ++n)
    value = g.binary(Op::Max, g.binary(Op::Sub, value, one), g.binary(Op::Mul, value, minus_one));
  store(ast, param(g, 0, kColumns, true), i, reduce(g, Op::Add, value, {k}));
  const auto code = generate(ast.graph, ast.sink, small_cpu(16), {});
  const Floats a = small_integers(kRows * kColumns, 1);
  Floats own = a, got(kColumns), expected(kColumns);
  for (size_t at = 0; at < a.size(); ++at) {
    float x = a[at];
    for (int n = 0; n < times; ++n) x = std::max(x - 1, -x);
    expected[at % kColumns] += x;
  }
  run(code, {&got, &own});
  EXPECT_EQ(got, expected) << codegen::to_string(code.schedule);
  return codegen::to_string(code.schedule);
}

TEST(Heuristic, a_loop_of_many_instructions_is_not_unrolled) {
  EXPECT_THAT(list_of_column_sums(1), testing::HasSubstr("unroll"));
  EXPECT_THAT(list_of_column_sums(40), testing::Not(testing::HasSubstr("unroll")));
}

TEST(Heuristic, an_operand_is_staged_where_the_nearest_cache_does_not_hold_what_is_read_again) {
  pgr_device_caps caps = with_small_caches();  // a panel of 64 rows is 8 KiB, of 512 rows 64
  caps.cache_bytes[0] = 32 << 10;
  EXPECT_THAT(check_product(caps, 64, 500, 64, false, false),
              testing::Not(testing::HasSubstr("stage")));
  EXPECT_THAT(check_product(caps, 256, 500, 512, false, false), testing::HasSubstr("stage(2, "));
}

// A local buffer of rows, and a sum common to all rows, which makes an axis of rows a loop of each
// part: lanes along that axis would each fill a buffer.
TEST(Heuristic, short_rows_beside_a_sum_of_their_own_have_no_lanes_across_their_arrays) {
  constexpr int64_t kRows = 6, kColumns = 7;
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kRows, 0, AxisKind::Loop),
           j = make_range(g, kColumns, 1, AxisKind::Loop);
  const Id k = make_range(g, kColumns, 2, AxisKind::Reduce),
           l = make_range(g, kColumns, 3, AxisKind::Reduce);
  const Id m = make_range(g, kRows, 4, AxisKind::Reduce);
  const Id sum = reduce(g, Op::Add, load(g, param(g, 2, kRows, false), m), {m});
  const auto at = [&](Id column) {
    return g.binary(Op::Add,
                    load(g, param(g, 1, kRows * kColumns, false), affine(g, i, kColumns, column)),
                    sum);
  };
  const Id most = reduce(g, Op::Max, at(l), {l});
  const auto power = [&](Id column) {
    return make_keep(g, g.unary(Op::Exp2, g.binary(Op::Sub, at(column), most)), {0, false});
  };
  const Id total = reduce(g, Op::Add, power(k), {k});
  store(ast, param(g, 0, kRows * kColumns, true), affine(g, i, kColumns, j),
        g.binary(Op::FDiv, power(j), total));
  pgr_device_caps caps = small_cpu(16);
  caps.private_bytes = 32 << 10;
  const auto code = generate(ast.graph, ast.sink, caps, {.contract = false});
  EXPECT_THAT(codegen::to_string(code.schedule), testing::HasSubstr("keep"));
  Floats a = small_integers(kRows * kColumns, 1), b = small_integers(kRows, 2), got(a.size()),
         want(a.size());
  run(code, {&got, &a, &b});
  run(generate(ast.graph, ast.sink, caps, {.no_opt = true, .contract = false}), {&want, &a, &b});
  EXPECT_EQ(got, want);
}

// out[n, x, q] = in[n, x, q] times the sum of window x, two adjacent elements; windows do not
// overlap
TEST(Heuristic, lanes_run_across_windows_that_lie_one_after_the_other) {
  constexpr int64_t kImages = 40, kWindows = 64;
  Ast ast;
  Graph& g = ast.graph;
  const Id n = make_range(g, kImages, 0, AxisKind::Loop),
           x = make_range(g, kWindows, 1, AxisKind::Loop), q = make_range(g, 2, 2, AxisKind::Loop);
  const Id in_window = make_range(g, 2, 3, AxisKind::Reduce);
  const Id from = param(g, 1, kImages * kWindows * 2, false);
  const auto place = [&](Id at) { return affine(g, affine(g, n, kWindows, x), 2, at); };
  const Id sum = reduce(g, Op::Add, load(g, from, place(in_window)), {in_window});
  store(ast, param(g, 0, kImages * kWindows * 2, true), place(q),
        g.binary(Op::Mul, load(g, from, place(q)), sum));
  const auto code = generate(ast.graph, ast.sink, small_cpu(16), {});
  EXPECT_THAT(codegen::to_string(code.schedule), testing::HasSubstr("vectorize(0, "));
  EXPECT_THAT(codegen::to_string(code.schedule), testing::HasSubstr("upcast(1, 2)"));
  Floats in = small_integers(kImages * kWindows * 2, 1), got(in.size()), expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = in[i] * (in[i / 2 * 2] + in[i / 2 * 2 + 1]);
  run(code, {&got, &in});
  EXPECT_EQ(got, expected);
}

TEST(Heuristic, rows_of_windows_that_no_cache_holds_are_taken_whole) {
  pgr_device_caps caps = small_cpu(8);
  caps.cache_bytes[1] = 64 << 10;
  const Ast large = max_pool2(8, 32, 128), small = max_pool2(2, 16, 128);
  const auto code = generate(large.graph, large.sink, caps, {});
  EXPECT_THAT(codegen::to_string(code.schedule), testing::HasSubstr("vectorize(1, 64)"));
  EXPECT_THAT(codegen::to_string(generate(small.graph, small.sink, caps, {}).schedule),
              testing::Not(testing::HasSubstr("vectorize(1, 64)")));
  Floats in = small_integers(8 * 32 * 128, 1), got(in.size() / 4), expected(got.size(), -1e9f);
  for (size_t i = 0; i < in.size(); ++i) {
    float& most = expected[i / 256 * 64 + i % 128 / 2];
    most = std::max(most, in[i]);
  }
  run(code, {&got, &in});
  EXPECT_EQ(got, expected);
}

// out[r, c] = sum over i of at[i] == r ? v[i, c] : 0, marked as an indexed sum (kIndexed).
TEST(Heuristic, threads_that_have_their_share_of_rows_clear_them_whole) {
  constexpr int64_t kRows = 4096, kColumns = 64, kTerms = 32;
  Ast ast;
  Graph& g = ast.graph;
  const Id r = make_range(g, kRows, 0, AxisKind::Loop),
           c = make_range(g, kColumns, 1, AxisKind::Loop);
  const Id i = make_range(g, kTerms, 2, AxisKind::Reduce);
  const Id at = load(g, param(g, 2, kTerms, false, DType::I32), i);
  const Id hit = g.binary(Op::CmpEq, g.cast(at, g[r].dtype), r);
  const Id term =
      g.where(hit, load(g, param(g, 1, kTerms * kColumns, false), affine(g, i, kColumns, c)),
              g.constant(DType::F32, 0.0));
  const Id sum = g.add(Op::Reduce, DType::F32, {term, i},
                       g.list(std::vector<int64_t>{static_cast<int64_t>(Op::Add), kIndexed}));
  store(ast, param(g, 0, kRows * kColumns, true), affine(g, r, kColumns, c), sum);
  pgr_device_caps caps = small_cpu(16);
  const std::string shared = codegen::to_string(generate(ast.graph, ast.sink, caps, {}).schedule);
  EXPECT_THAT(shared, testing::HasSubstr("vectorize"));
  EXPECT_THAT(shared, testing::Not(testing::HasSubstr("thread")));
}

}  // namespace
}  // namespace plugrad::test
