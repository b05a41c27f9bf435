// The heuristic's schedules for devices with subgroups, by made-up capabilities: a large GPU and a
// small one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/search/search.h"
#include "gpu.h"
#include "kernels.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::KernelCode;

pgr_device_caps large_gpu() {
  return gpu(32, 132, 255);
}
pgr_device_caps gpu_of_eight() {
  return gpu(8, 2, 16);
}

KernelCode build_by_heuristic(const Ast& ast, const pgr_device_caps& caps) {
  return codegen::generate(ast.graph, ast.sink, caps, {});
}

int64_t total_amount(const KernelCode& code, codegen::ScheduleStep::Kind kind) {
  int64_t amount = 1;
  for (const codegen::ScheduleStep& change : code.schedule)
    if (change.kind == kind) amount *= change.amount;
  return amount;
}
uint64_t groups_of(const KernelCode& code) {
  return code.group_count[0] * code.group_count[1] * code.group_count[2];
}
uint32_t items_of(const KernelCode& code) {
  return code.local_size[0] * code.local_size[1] * code.local_size[2];
}
bool has_op(const KernelCode& code, uint16_t op) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  return std::ranges::any_of(ir.insts(), [&](const pgr_ir_inst& inst) { return inst.op == op; });
}

// out[r] = the sum over k of in[r, k], or of in[k, r]
Ast sums(int64_t rows, int64_t length, bool of_columns) {
  Ast ast;
  Graph& g = ast.graph;
  const Id r = make_range(g, rows, 0, AxisKind::Loop),
           k = make_range(g, length, 1, AxisKind::Reduce);
  const Id index = of_columns ? affine(g, k, rows, r) : affine(g, r, length, k);
  const Id x = load(g, param(g, 1, rows * length, false), index);
  store(ast, param(g, 0, rows, true), r, reduce(g, Op::Add, x, {k}));
  return ast;
}

TEST(GroupHeuristic, elementwise_kernels_have_full_groups_for_every_multiprocessor) {
  for (const pgr_device_caps& caps : {large_gpu(), gpu_of_eight()})
    for (int64_t n : {1 << 17, 1 << 20, 1'000'003}) {
      const KernelCode code = build_by_heuristic(add(n), caps);
      EXPECT_EQ(items_of(code), 256u) << n;
      EXPECT_GE(groups_of(code), caps.threads) << n;
      EXPECT_GE(groups_of(code) * 256 *
                    static_cast<uint64_t>(total_amount(code, codegen::ScheduleStep::Kind::Upcast)),
                static_cast<uint64_t>(n));
    }
  EXPECT_EQ(items_of(build_by_heuristic(add(5), large_gpu())), 5u);
}

TEST(GroupHeuristic, large_grids_keep_to_the_groups_of_an_axis) {
  const KernelCode code = build_by_heuristic(add(int64_t{1} << 28), large_gpu());
  for (uint64_t count : code.group_count) EXPECT_LE(count, 65535u);
  EXPECT_EQ(groups_of(code) * 256 * 4, uint64_t{1} << 28);
}

TEST(GroupHeuristic, matmul_and_convolution_are_tiled_in_registers_and_in_groups) {
  for (const pgr_device_caps& caps : {large_gpu(), gpu_of_eight()})
    for (const Ast& ast : {matmul(512, 512, 512), conv2d({64, 32, 24, 24, 64, 3})}) {
      const KernelCode code = build_by_heuristic(ast, caps);
      EXPECT_GE(total_amount(code, codegen::ScheduleStep::Kind::Upcast), 8);
      EXPECT_GE(items_of(code), 32u);
      EXPECT_GE(groups_of(code), caps.threads);
      EXPECT_GT(code.local_size[0], 1u);
      EXPECT_GT(code.local_size[1], 1u);
    }
}

// c[b, i, j] = sum over k of a[b, i, k] * c[b, k, j], each operand as it is or transposed
Ast products(int64_t batch, int64_t m, int64_t n, int64_t k, bool a_turned, bool b_turned) {
  Ast ast;
  Graph& g = ast.graph;
  const Id r = make_range(g, batch, 0, AxisKind::Loop), i = make_range(g, m, 1, AxisKind::Loop);
  const Id j = make_range(g, n, 2, AxisKind::Loop), l = make_range(g, k, 3, AxisKind::Reduce);
  const Id a_index = a_turned ? affine(g, l, m, i) : affine(g, i, k, l);
  const Id b_index = b_turned ? affine(g, j, k, l) : affine(g, l, n, j);
  const Id a = load(g, param(g, 1, batch * m * k, false), affine(g, r, m * k, a_index));
  const Id b = load(g, param(g, 2, batch * k * n, false), affine(g, r, k * n, b_index));
  store(ast, param(g, 0, batch * m * n, true), affine(g, r, m * n, affine(g, i, n, j)),
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {l}));
  return ast;
}

int stages_of(const KernelCode& code) {
  return static_cast<int>(std::ranges::count(code.schedule, codegen::ScheduleStep::Kind::CacheRead,
                                             &codegen::ScheduleStep::kind));
}

uint64_t local_bytes_of(const KernelCode& code) {
  uint64_t bytes = 0;
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  for (const pgr_ir_array& array : ir.arrays())
    if (array.space == PGR_SPACE_LOCAL) bytes += array.elem_count * sdk::dtype_size(array.dtype);
  return bytes;
}

TEST(GroupHeuristic, products_copy_both_operands_into_local_memory_and_stay_right) {
  struct Case {
    int64_t batch, m, n, k;
  };
  for (const Case& s : {Case{1, 128, 128, 64}, Case{1, 100, 90, 70}, Case{3, 64, 96, 48},
                        Case{1, 61, 131, 131}, Case{2, 33, 64, 40}})
    for (int turned = 0; turned < 4; ++turned) {
      const Ast ast = products(s.batch, s.m, s.n, s.k, turned & 1, turned & 2);
      const KernelCode code = build_by_heuristic(ast, gpu(32, 2, 255));
      EXPECT_GE(stages_of(code), s.m % 2 == 0 ? 2 : 1) << codegen::to_string(code.schedule);
      EXPECT_LE(2 * local_bytes_of(code), 48u << 10);
      std::vector<float> a = small_integers(s.batch * s.m * s.k, 1);
      std::vector<float> b = small_integers(s.batch * s.k * s.n, 2);
      std::vector<float> c(static_cast<size_t>(s.batch * s.m * s.n)), expected(c.size());
      run(code, {&c, &a, &b});
      run(build_by_heuristic(ast, small_cpu()), {&expected, &a, &b});
      EXPECT_EQ(c, expected) << codegen::to_string(code.schedule);
    }
}

TEST(GroupHeuristic, convolutions_copy_weights_and_windows_into_local_memory) {
  const ConvShape s{8, 16, 12, 12, 32, 3};
  const Ast ast = conv2d(s);
  const KernelCode code = build_by_heuristic(ast, gpu(32, 2, 255));
  EXPECT_GE(stages_of(code), 1) << codegen::to_string(code.schedule);
  std::vector<float> in = small_integers(s.n * s.c * s.h * s.w, 1);
  std::vector<float> weight = small_integers(s.o * s.c * s.k * s.k, 2);
  std::vector<float> out(static_cast<size_t>(s.n * s.o * 10 * 10)), expected(out.size());
  run(code, {&out, &in, &weight});
  run(build_by_heuristic(ast, small_cpu()), {&expected, &in, &weight});
  EXPECT_EQ(out, expected);
}

// out[r, c] = (x[r, c] - the maximum of row r) / the sum of row r
Ast rows_of(int64_t rows, int64_t length) {
  Ast ast;
  Graph& g = ast.graph;
  const Id r = make_range(g, rows, 0, AxisKind::Loop), c = make_range(g, length, 1, AxisKind::Loop);
  const Id k = make_range(g, length, 2, AxisKind::Reduce),
           l = make_range(g, length, 3, AxisKind::Reduce);
  const Id x = param(g, 1, rows * length, false);
  const auto at = [&](Id column) { return load(g, x, affine(g, r, length, column)); };
  const Id most = reduce(g, Op::Max, at(k), {k});
  const Id sum = reduce(g, Op::Add, g.binary(Op::Sub, at(l), most), {l});
  const Id value = g.binary(Op::Sub, g.binary(Op::Sub, at(c), most), sum);
  store(ast, param(g, 0, rows * length, true), affine(g, r, length, c), value);
  return ast;
}

TEST(GroupHeuristic, a_group_takes_a_row_and_shares_every_pass_along_it) {
  const KernelCode one = build_by_heuristic(rows_of(4096, 4096), large_gpu());
  EXPECT_EQ(items_of(one), 256u) << codegen::to_string(one.schedule);
  EXPECT_EQ(groups_of(one), 4096u);
  const KernelCode few = build_by_heuristic(rows_of(8192, 64), large_gpu());
  EXPECT_EQ(few.local_size[0], 32u) << codegen::to_string(few.schedule);
  EXPECT_EQ(items_of(few), 256u);
  EXPECT_EQ(groups_of(few), 1024u);
  for (int64_t rows : {1, 3, 64, 100})
    for (int64_t length : {2, 7, 16, 64, 100, 131, 1000}) {
      std::vector<float> x = small_integers(rows * length, 1), out(x.size()), expected(x.size());
      for (const pgr_device_caps& caps : {large_gpu(), gpu_of_eight(), gpu(32, 2, 0)}) {
        const KernelCode code = build_by_heuristic(rows_of(rows, length), caps);
        run(code, {&out, &x});
        run(build_by_heuristic(rows_of(rows, length), small_cpu()), {&expected, &x});
        ASSERT_EQ(out, expected) << codegen::to_string(code.schedule);
      }
    }
}

TEST(GroupHeuristic, what_search_tries_of_rows_keeps_a_row_in_its_group) {
  const Ast ast = rows_of(512, 4096);
  const pgr_device_caps caps = large_gpu();
  const codegen::SearchSpace space(ast.graph, ast.sink, caps, {});
  const auto near = space.near(space.chosen().list);
  const auto keeps_rows = [&](const codegen::Candidate& candidate) {
    return groups_of(codegen::generate(ast.graph, ast.sink, caps, {.schedule = &candidate.list})) <=
           512;
  };
  EXPECT_GT(near.size(), 10u);
  EXPECT_GT(2 * static_cast<size_t>(std::ranges::count_if(near, keeps_rows)), near.size());
}

TEST(GroupHeuristic, local_memory_that_is_the_cache_holds_no_copies) {
  const Ast ast = products(1, 128, 128, 64, false, false);
  pgr_device_caps caps = gpu(32, 2, 255);
  EXPECT_GT(stages_of(build_by_heuristic(ast, caps)), 0);
  caps.local_in_cache = 1;
  EXPECT_EQ(stages_of(build_by_heuristic(ast, caps)), 0);
}

TEST(GroupHeuristic, long_reductions_with_few_results_are_shared) {
  const KernelCode one = build_by_heuristic(sums(1, 1 << 20, false), large_gpu());
  EXPECT_EQ(items_of(one), 256u);
  EXPECT_TRUE(has_op(one, PGR_OP_BARRIER));
  const KernelCode rows = build_by_heuristic(sums(256, 1000, false), large_gpu());
  EXPECT_EQ(total_amount(rows, codegen::ScheduleStep::Kind::Group), 125);
  EXPECT_EQ(groups_of(rows), 256u);
  EXPECT_FALSE(has_op(build_by_heuristic(sums(100'000, 1000, true), large_gpu()), PGR_OP_BARRIER));
}

TEST(GroupHeuristic, neighbouring_items_read_neighbouring_elements) {
  const KernelCode columns = build_by_heuristic(sums(1000, 100'000, true), large_gpu());
  EXPECT_EQ(columns.local_size[0], 32u);
  EXPECT_EQ(total_amount(columns, codegen::ScheduleStep::Kind::Local), 32);
  EXPECT_EQ(total_amount(columns, codegen::ScheduleStep::Kind::Group), 8);
  const KernelCode rows = build_by_heuristic(sums(65536, 512, false), large_gpu());
  EXPECT_EQ(rows.local_size[0], 32u);
  EXPECT_EQ(total_amount(rows, codegen::ScheduleStep::Kind::Group), 32);
}

TEST(GroupHeuristic, stays_away_from_devices_of_single_items) {
  pgr_device_caps caps = gpu_of_eight();
  caps.subgroup_size = 1;
  for (const Ast& ast : {add(1 << 20), matmul(512, 512, 512), sums(1, 1 << 20, false)})
    EXPECT_EQ(items_of(build_by_heuristic(ast, caps)), 1u);
}

TEST(GroupHeuristic, keeps_to_limits_however_small_and_stays_right) {
  for (uint32_t most : {1u, 3u, 8u, 20u}) {
    pgr_device_caps caps = gpu_of_eight();
    for (uint32_t& size : caps.max_local_size) size = std::max(most / 2, 1u);
    caps.max_local_total = most;
    caps.local_bytes = 4 * most;
    caps.threads = 64;
    std::vector<float> a = small_integers(24 * 100, 1), b = small_integers(100 * 48, 2);
    std::vector<float> c(24 * 48), expected(24 * 48);
    const KernelCode code = build_by_heuristic(matmul(24, 48, 100), caps);
    EXPECT_LE(items_of(code), most);
    run(code, {&c, &a, &b});
    run(build_by_heuristic(matmul(24, 48, 100), small_cpu()), {&expected, &a, &b});
    EXPECT_EQ(c, expected);
    std::vector<float> sum(1), all(1);
    run(build_by_heuristic(relu_sum(2400), caps), {&sum, &a});
    run(build_by_heuristic(relu_sum(2400), small_cpu()), {&all, &a});
    EXPECT_EQ(sum, all);
  }
}

TEST(GroupHeuristic, work_for_more_groups_than_the_device_launches_stays_a_loop) {
  for (uint64_t most : {1u, 2u, 7u}) {
    pgr_device_caps caps = gpu_of_eight();
    for (uint32_t axis = 0; axis < 3; ++axis) {
      caps.max_local_size[axis] = 16;
      caps.max_groups[axis] = axis < 2 ? most : 1;
    }
    caps.max_local_total = 16;
    std::vector<float> a = small_integers(120 * 97, 1), b = small_integers(97 * 131, 2);
    const auto check = [&](const Ast& ast, size_t size,
                           const std::vector<std::vector<float>*>& inputs) {
      std::vector<float> got(size, -9), expected(size, -8);
      const KernelCode code = build_by_heuristic(ast, caps);
      EXPECT_LE(groups_of(code), most * most);
      std::vector<std::vector<float>*> buffers = {&got};
      buffers.insert(buffers.end(), inputs.begin(), inputs.end());
      run(code, buffers);
      buffers[0] = &expected;
      run(build_by_heuristic(ast, small_cpu()), buffers);
      EXPECT_EQ(got, expected) << most;
    };
    check(matmul(120, 131, 97), 120 * 131, {&a, &b});
    check(add(97 * 111), 97 * 111, {&a, &b});
    check(sums(97, 120, true), 97, {&a});
  }
}

}  // namespace
}  // namespace plugrad::test
