// Dynamic loop bounds (counts) read from memory: results are correct for every count, no masked
// element of a sum is read, and no element more than a tile beyond the count is stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels.h"
#include "run.h"

namespace plugrad::test {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kBoundRows = 96, kBoundColumns = 6;
constexpr float kUntouched = -99;

const std::vector<int32_t>& counts() {
  static const std::vector<int32_t> all = {
      std::numeric_limits<int32_t>::min(), -3, 0, 1, 2, 7, 16, 33, 95, 96, 97,
      std::numeric_limits<int32_t>::max()};
  return all;
}

size_t within(int32_t count) {
  return static_cast<size_t>(std::clamp<int64_t>(count, 0, kBoundRows));
}

Id count_param(Graph& g, uint32_t slot) {
  return param(g, slot, 1, false, DType::I32);
}

Id number(Graph& g, uint32_t slot) {
  return load(g, count_param(g, slot), g.index(0));
}

// A store whose result is used only in the rows below the count.
void store_rows(Ast& ast, Id to, Id index, Id value, uint32_t slot, int64_t columns) {
  Graph& g = ast.graph;
  const Id limit = g.binary(Op::Mul, g.cast(number(g, slot), DType::Index), g.index(columns));
  const Id hint = g.add(Op::Bounded, DType::Bool, {index, limit}, g.list({}));
  ast.sink =
      g.add(Op::Sink, DType::Void, {g.add(Op::Store, DType::Void, {to, index, value, hint})});
}

// out[i, j] = 2 a[i, j]
Ast rows_of_map() {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kBoundRows, 0, AxisKind::Loop),
           j = make_range(g, kBoundColumns, 1, AxisKind::Loop);
  const Id at = affine(g, i, kBoundColumns, j),
           a = load(g, param(g, 1, kBoundRows * kBoundColumns, false), at);
  store_rows(ast, param(g, 0, kBoundRows * kBoundColumns, true), at, g.binary(Op::Add, a, a), 2,
             kBoundColumns);
  return ast;
}

// out[j] = the reduction of a[row[i], j] over i below the count
Ast columns_of_reduce(Op op, float nothing) {
  Ast ast;
  Graph& g = ast.graph;
  const Id j = make_range(g, kBoundColumns, 0, AxisKind::Loop),
           i = make_range(g, kBoundRows, 1, AxisKind::Reduce);
  const Id row = g.cast(load(g, param(g, 3, kBoundRows, false, DType::I32), i), DType::Index);
  const Id a =
      load(g, param(g, 1, kBoundRows * kBoundColumns, false), affine(g, row, kBoundColumns, j));
  const Id inside = g.binary(Op::CmpLt, g.cast(i, DType::I32), number(g, 2));
  const Id term = g.where(inside, a, g.constant(DType::F32, static_cast<double>(nothing)));
  store(ast, param(g, 0, kBoundColumns, true), j, reduce(g, op, term, {i}));
  return ast;
}

// out[i, j] = sum over k below the second count of a[i, k] b[k, j], for i below the first
Ast counted_matmul(int64_t n, int64_t k) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kBoundRows, 0, AxisKind::Loop),
           j = make_range(g, n, 1, AxisKind::Loop);
  const Id l = make_range(g, k, 2, AxisKind::Reduce);
  const Id a = load(g, param(g, 1, kBoundRows * k, false), affine(g, i, k, l));
  const Id b = load(g, param(g, 2, k * n, false), affine(g, l, n, j));
  const Id inside = g.binary(Op::CmpLt, g.cast(l, DType::I32), number(g, 4));
  const Id term = g.where(inside, g.binary(Op::Mul, a, b), g.constant(DType::F32, 0.0));
  store_rows(ast, param(g, 0, kBoundRows * n, true), affine(g, i, n, j),
             reduce(g, Op::Add, term, {l}), 3, n);
  return ast;
}

struct Target {
  std::string name;
  pgr_device_caps caps;
  codegen::Options options;
};

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const uint32_t lanes : {1u, 4u, 16u})
    all.push_back({std::to_string(lanes) + " lanes", small_cpu(lanes), {}});
  all.push_back({"no changes", small_cpu(4), {.no_opt = true}});
  pgr_device_caps groups = small_cpu(4);
  groups.subgroup_size = 4;
  groups.max_local_total = 64;
  groups.local_bytes = 1 << 14;
  for (uint32_t& size : groups.max_local_size) size = 64;
  all.push_back({"groups", groups, {}});
  return all;
}

using Bytes = sdk::InterpreterBuffer;
Bytes of(Floats& values) {
  return {values.data(), values.size() * sizeof(float)};
}
Bytes of(int32_t& value) {
  return {&value, sizeof value};
}

TEST(CountLoops, stores_end_at_the_tile_of_the_count) {
  const Ast ast = rows_of_map();
  for (const Target& target : targets()) {
    const auto code = codegen::generate(ast.graph, ast.sink, target.caps, target.options);
    for (int32_t count : counts()) {
      Floats a = small_integers(kBoundRows * kBoundColumns, 1), out(a.size(), kUntouched);
      run_buffers(code, {of(out), of(a), of(count)});
      const size_t wanted = within(count) * kBoundColumns;
      for (size_t at = 0; at < out.size(); ++at) {
        const bool is_far = at >= wanted + 256 || wanted == 0;
        if (at >= wanted && !is_far) continue;
        ASSERT_EQ(out[at], is_far ? kUntouched : 2 * a[at])
            << target.name << ", " << count << " rows, at " << at;
      }
    }
  }
}

// Rows one tile beyond the count lie outside of the matrix; the interpreter rejects a load of them.
TEST(CountLoops, reductions_read_no_further_than_the_tile_of_the_count) {
  for (const Op op : {Op::Add, Op::Mul, Op::Max}) {
    const float nothing = op == Op::Add   ? 0
                          : op == Op::Mul ? 1
                                          : -std::numeric_limits<float>::infinity();
    const Ast ast = columns_of_reduce(op, nothing);
    for (const Target& target : targets()) {
      const auto code = codegen::generate(ast.graph, ast.sink, target.caps, target.options);
      for (int32_t count : counts()) {
        const size_t rows = within(count);
        Floats a = small_integers(kBoundRows * kBoundColumns, 1), out(kBoundColumns);
        std::vector<int32_t> row(kBoundRows, 1 << 20);
        std::iota(row.begin(),
                  row.begin() + static_cast<int64_t>(std::min<size_t>(rows + 16, kBoundRows)), 0);
        std::fill(a.begin() + static_cast<int64_t>(rows) * kBoundColumns, a.end(), NAN);
        run_buffers(code, {of(out), of(a), of(count), {row.data(), row.size() * sizeof row[0]}});
        for (size_t j = 0; j < kBoundColumns; ++j) {
          float expected = nothing;
          for (size_t i = 0; i < rows; ++i) {
            const float x = a[i * kBoundColumns + j];
            expected = op == Op::Add   ? expected + x
                       : op == Op::Mul ? expected * x
                                       : std::max(expected, x);
          }
          ASSERT_EQ(out[j], expected) << target.name << ", " << count << " rows";
        }
      }
    }
  }
}

TEST(CountLoops, products_end_at_both_counts) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{7, 5}, {72, 40}}) {
    const Ast ast = counted_matmul(n, k);
    for (const Target& target : targets()) {
      const auto code = codegen::generate(ast.graph, ast.sink, target.caps, target.options);
      for (int32_t rows : counts())
        for (int32_t terms : {-1, 0, 1, 4, 31, 200}) {
          Floats a = small_integers(kBoundRows * k, 1), b = small_integers(k * n, 2);
          Floats out(static_cast<size_t>(kBoundRows * n), kUntouched);
          run_buffers(code, {of(out), of(a), of(b), of(rows), of(terms)});
          for (size_t i = 0; i < within(rows); ++i)
            for (int64_t j = 0; j < n; ++j) {
              float expected = 0;
              for (int64_t l = 0; l < std::min<int64_t>(terms, k); ++l)
                expected += a[i * static_cast<size_t>(k) + static_cast<size_t>(l)] *
                            b[static_cast<size_t>(l * n + j)];
              ASSERT_EQ(out[i * static_cast<size_t>(n) + static_cast<size_t>(j)], expected)
                  << target.name << ", " << rows << " rows of " << terms << " terms, at " << i
                  << ", " << j;
            }
          for (size_t i = within(rows) + 64; i < kBoundRows; ++i)
            ASSERT_EQ(out[i * static_cast<size_t>(n)], kUntouched)
                << target.name << ", " << rows << " rows, at " << i;
        }
    }
  }
}

// A sum over i and j of a[i, j] where a condition on i, j and a count holds, and of another value
// elsewhere.
struct Counted {
  const char* name;
  DType dtype;  // dtype of the count
  double other;
  Id (*condition)(Graph& g, Id i, Id j, Id count);
  bool (*holds)(int64_t i, int64_t j, int64_t count);
};

constexpr int64_t kLong = 160, kWide = 5;

Id in_words(Graph& g, Id place, DType dtype, int64_t factor, int64_t more) {
  const Id product = g.binary(Op::Mul, g.cast(place, dtype), g.constant(dtype, factor));
  return g.binary(Op::Add, product, g.constant(dtype, more));
}

const Counted kCounted[] = {
    {"steps of 4, and 3 more", DType::I32, 0,
     [](Graph& g, Id i, Id, Id n) {
       return g.binary(Op::CmpLt, in_words(g, i, DType::I32, 4, 3), n);
     },
     [](int64_t i, int64_t, int64_t n) { return 4 * i + 3 < n; }},
    {"steps of 4 on both sides", DType::I32, 0,
     [](Graph& g, Id i, Id, Id n) {
       const Id limit =
           g.binary(Op::Mul, g.cast(n, DType::I64), g.constant(DType::I64, int64_t{4}));
       return g.binary(Op::CmpLt, in_words(g, i, DType::I64, 4, -3), limit);
     },
     [](int64_t i, int64_t, int64_t n) { return 4 * i - 3 < 4 * n; }},
    {"3 more of 64 bits", DType::I64, 0,
     [](Graph& g, Id i, Id, Id n) {
       return g.binary(Op::CmpLt, in_words(g, i, DType::I64, 1, 3), n);
     },
     [](int64_t i, int64_t, int64_t n) { return i + 3 < n; }},
    {"a place that wraps", DType::I8, 0,
     [](Graph& g, Id i, Id, Id n) { return g.binary(Op::CmpLt, g.cast(i, DType::I8), n); },
     [](int64_t i, int64_t, int64_t n) { return static_cast<int8_t>(i) < n; }},
    {"unsigned", DType::U64, 0,
     [](Graph& g, Id i, Id, Id n) { return g.binary(Op::CmpLt, g.cast(i, DType::U64), n); },
     [](int64_t i, int64_t, int64_t n) {
       return static_cast<uint64_t>(i) < static_cast<uint64_t>(n);
     }},
    {"ones behind the count", DType::I32, 1,
     [](Graph& g, Id i, Id, Id n) { return g.binary(Op::CmpLt, g.cast(i, DType::I32), n); },
     [](int64_t i, int64_t, int64_t n) { return i < n; }},
    {"both places", DType::I32, 0,
     [](Graph& g, Id i, Id j, Id n) {
       return g.binary(Op::CmpLt, g.cast(g.binary(Op::Add, i, j), DType::I32), n);
     },
     [](int64_t i, int64_t j, int64_t n) { return i + j < n; }},
};

Ast sum_of(const Counted& c) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kLong, 0, AxisKind::Reduce),
           j = make_range(g, kWide, 1, AxisKind::Reduce);
  const Id a = load(g, param(g, 1, kLong * kWide, false), affine(g, i, kWide, j));
  const Id count = load(g, param(g, 2, 1, false, c.dtype), g.index(0));
  const Id term = g.where(c.condition(g, i, j, count), a, g.constant(DType::F32, c.other));
  store(ast, param(g, 0, 1, true), g.index(0), reduce(g, Op::Add, term, {i, j}));
  return ast;
}

TEST(CountLoops, conditions_hold_for_every_count_of_their_dtype) {
  constexpr auto kLowest = std::numeric_limits<int64_t>::min(),
                 kHighest = std::numeric_limits<int64_t>::max();
  for (const Counted& c : kCounted) {
    const Ast ast = sum_of(c);
    for (const Target& target : targets()) {
      const auto code = codegen::generate(ast.graph, ast.sink, target.caps, target.options);
      for (int64_t count : {kLowest, kLowest + 2, int64_t{-200}, int64_t{-5}, int64_t{-1},
                            int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{7},
                            int64_t{8}, int64_t{101}, kLong - 1, kLong, kLong + 3, kHighest}) {
        if (c.dtype == DType::I8) count = static_cast<int8_t>(count);
        if (c.dtype == DType::I32) count = static_cast<int32_t>(count);
        Floats a = small_integers(kLong * kWide, 3), out(1);
        run_buffers(code, {of(out), of(a), {&count, sizeof count}});
        float expected = 0;
        for (int64_t i = 0; i < kLong; ++i)
          for (int64_t j = 0; j < kWide; ++j)
            expected += c.holds(i, j, count) ? a[static_cast<size_t>(i * kWide + j)]
                                             : static_cast<float>(c.other);
        ASSERT_EQ(out[0], expected) << c.name << ", " << target.name << ", count " << count;
      }
    }
  }
}

// Two stores share a loop bound only if both have it.
TEST(CountLoops, stores_of_other_counts_keep_their_own) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, kBoundRows, 0, AxisKind::Loop),
           a = load(g, param(g, 2, kBoundRows, false), i);
  std::vector<Id> stores;
  for (uint32_t slot : {0u, 1u}) {
    const Id hint =
        g.add(Op::Bounded, DType::Bool, {i, g.cast(number(g, 3 + slot), DType::Index)}, g.list({}));
    stores.push_back(g.add(Op::Store, DType::Void, {param(g, slot, kBoundRows, true), i, a, hint}));
  }
  ast.sink = g.add(Op::Sink, DType::Void, stores);
  for (const Target& target : targets()) {
    const auto code = codegen::generate(ast.graph, ast.sink, target.caps, target.options);
    for (auto [one, other] : {std::pair{5, 90}, {90, 5}, {0, 96}, {96, 0}}) {
      Floats values = small_integers(kBoundRows, 1), first(kBoundRows, kUntouched),
             second(kBoundRows, kUntouched);
      run_buffers(code, {of(first), of(second), of(values), of(one), of(other)});
      for (size_t at = 0; at < within(one); ++at) ASSERT_EQ(first[at], values[at]) << target.name;
      for (size_t at = 0; at < within(other); ++at)
        ASSERT_EQ(second[at], values[at]) << target.name;
    }
  }
}

}  // namespace
}  // namespace plugrad::test
