// The form of plans: memory, limits, split reductions, shared kernels, printing.
#include <gmock/gmock.h>

#include "check.h"

namespace plugrad::test {
namespace {

using schedule::Plan;
using schedule::PlannedBuffer;

/// Fails if two temporaries that are live at the same step overlap.
void expect_no_overlap(const Plan& plan) {
  const size_t n = plan.buffers.size();
  std::vector<size_t> first(n, SIZE_MAX), last(n, 0);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (uint32_t b : plan.steps[s].buffers) {
      first[b] = std::min(first[b], s);
      last[b] = s;
    }
  const auto end = [&](const PlannedBuffer& b) {
    return b.offset_bytes + static_cast<uint64_t>(b.elem_count) * size_of(b.dtype);
  };
  for (size_t i = 0; i < n; ++i) {
    const PlannedBuffer& a = plan.buffers[i];
    if (a.kind != PlannedBuffer::Kind::Temporary || first[i] == SIZE_MAX) continue;
    EXPECT_EQ(a.offset_bytes % 256, 0u);
    EXPECT_LE(end(a), plan.arenas.at(a.arena).size_bytes);
    EXPECT_EQ(plan.arenas[a.arena].device, a.device);
    for (size_t j = 0; j < i; ++j) {
      const PlannedBuffer& b = plan.buffers[j];
      if (b.kind != PlannedBuffer::Kind::Temporary || b.arena != a.arena || last[i] < first[j] ||
          last[j] < first[i])
        continue;
      EXPECT_TRUE(end(a) <= b.offset_bytes || end(b) <= a.offset_bytes) << i << " and " << j;
    }
  }
}

Id chain_of_matmuls(Tensors& t, int count) {
  Id x = t.buffer({8, 8});
  for (int i = 0; i < count; ++i) x = t.relu(t.matmul(x, t.buffer({8, 8})));
  return x;
}

TEST(Plan, TemporariesShareMemory) {
  Tensors t;
  const Id x = chain_of_matmuls(t, 12);
  const Plan plan = check(t, {x});
  expect_no_overlap(plan);
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_EQ(plan.arenas[0].size_bytes, 2 * 256u);  // the one read and the one written
  schedule::Options apart;
  apart.plan_memory = false;
  EXPECT_EQ(plan_of(t, {x}, apart).arenas[0].size_bytes, 11 * 256u);
}

/// The peak number of live temporary bytes over all steps.
uint64_t most_alive(const Plan& plan) {
  std::vector<size_t> first(plan.buffers.size(), SIZE_MAX), last(plan.buffers.size(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (uint32_t b : plan.steps[s].buffers) first[b] = std::min(first[b], s), last[b] = s;
  uint64_t most = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    uint64_t alive = 0;
    for (size_t b = 0; b < plan.buffers.size(); ++b)
      if (plan.buffers[b].kind == PlannedBuffer::Kind::Temporary && first[b] <= s && s <= last[b])
        alive += static_cast<uint64_t>(plan.buffers[b].elem_count) * size_of(plan.buffers[b].dtype);
    most = std::max(most, alive);
  }
  return most;
}

// The gaps in step order are always too small for the next value.
TEST(Plan, GrowingTemporariesTakeLittleMoreThanWhatLivesAtOnce) {
  Tensors t;
  Id x = t.buffer({8, 64});
  for (int64_t i = 1; i < 12; ++i) x = t.relu(t.matmul(x, t.buffer({64 * i, 64 * (i + 1)})));
  const Plan plan = plan_of(t, {x}, {});
  expect_no_overlap(plan);
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_GE(most_alive(plan), 2048u * (10 + 11));
  EXPECT_LE(plan.arenas[0].size_bytes, most_alive(plan) * 11 / 10);
}

TEST(Plan, LiveTemporariesNeverOverlap) {
  for (int seed = 0; seed < 30; ++seed) {
    Tensors t;
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::vector<Id> pool;
    for (int i = 0; i < 30; ++i) {
      const int64_t rows = 1 + static_cast<int64_t>(random() % 700);
      const Id fresh = t.contiguous(t.plus(t.buffer({rows, 3}), 1));
      pool.push_back(t.contiguous(t.plus(t.sum(fresh, {0}), i)));
      if (i > 2)
        pool.push_back(
            t.contiguous(t.mul(pool[random() % pool.size()], pool[random() % pool.size()])));
    }
    Id all = pool[0];
    for (Id x : pool) all = t.contiguous(t.add(all, x));
    expect_no_overlap(plan_of(t, {all}));
  }
}

TEST(Plan, EqualKernelsAreOneObject) {
  Tensors t;
  const Plan plan = check(t, {chain_of_matmuls(t, 5)});
  EXPECT_EQ(kernel_count(plan), 5u);
  EXPECT_EQ(plan.asts.size(), 1u);
}

TEST(Plan, DependsOnStructureOnly) {
  Tensors a, b;
  b.plus(b.buffer({3}), 4);  // different constants
  const Id x = chain_of_matmuls(a, 3), y = chain_of_matmuls(b, 3);
  const Plan p = plan_of(a, {x});
  const Plan q = schedule::make_plan(b.g, std::vector<Id>{y},
                                     std::vector<Id>(b.inputs.begin() + 1, b.inputs.end()), 1, {});
  EXPECT_EQ(to_string(p), to_string(q));
}

TEST(Plan, KernelsTakeNoMoreBuffersThanAllowed) {
  Tensors t;
  Id sum = t.buffer({8});
  for (int i = 0; i < 100; ++i) sum = t.add(sum, t.buffer({8}));
  schedule::Options options;
  options.max_params = 16;
  const Plan plan = check(t, {sum}, options);
  for (const auto& step : plan.steps) EXPECT_LE(step.buffers.size(), 16u);
  EXPECT_LE(kernel_count(plan), 8u);
  options.max_params = 64;
  EXPECT_EQ(kernel_count(check(t, {sum}, options)), 2u);
}

TEST(Plan, LongChainsAreCut) {
  Tensors t;
  Id x = t.buffer({4});
  const Id y = t.buffer({4});
  for (int i = 0; i < 100000; ++i) x = i % 2 == 0 ? t.relu(x) : t.add(x, y);
  const Plan plan = plan_of(t, {x});
  EXPECT_EQ(kernel_count(plan), 100u);
  EXPECT_LE(plan.asts.size(), 3u);
}

TEST(Plan, LargeReductionsWithFewResultsAreSplit) {
  Tensors t;
  const Id x = t.buffer({256, 640}), c = t.buffer({2, 40000});
  schedule::Options options;
  options.threads = 2;
  const Plan plan = check(t, {t.sum(t.relu(x), {0, 1})}, options);
  ASSERT_EQ(kernel_count(plan), 2u);
  EXPECT_EQ(plan.buffers[plan.steps[0].buffers[0]].elem_count, 8);
  EXPECT_EQ(kernel_count(check(t, {t.max(c, {1})}, options)), 2u);
  EXPECT_EQ(kernel_count(check(t, {t.sum(x, {1})}, options)), 1u);
  options.threads = 1;
  EXPECT_EQ(kernel_count(check(t, {t.sum(x, {0, 1})}, options)), 1u);
}

TEST(Plan, SumsOfColumnsAreSplitWhereAThreadTakesManyAtOnce) {
  Tensors t;
  const Id x = t.buffer({40000, 9});
  schedule::Options options;
  options.threads = 2;
  EXPECT_EQ(kernel_count(check(t, {t.sum(x, {0})}, options)), 1u);
  options.subgroup = 8;
  EXPECT_EQ(kernel_count(check(t, {t.sum(x, {0})}, options)), 2u);
  EXPECT_EQ(kernel_count(check(t, {t.sum(t.buffer({9, 40000}), {1})}, options)), 1u);
}

TEST(Plan, SumsOfFewVectorsOfColumnsAreSplitByRows) {
  Tensors t;
  const Id x = t.buffer({64, 32, 256}), rows = t.buffer({32, 16384});
  schedule::Options options;
  options.threads = 2;
  EXPECT_EQ(kernel_count(check(t, {t.sum(x, {0, 2})}, options)), 1u);
  options.lanes = 16;
  const Plan plan = check(t, {t.sum(x, {0, 2})}, options);
  ASSERT_EQ(kernel_count(plan), 2u);
  EXPECT_EQ(plan.buffers[plan.steps[0].buffers[0]].elem_count, 8 * 32);
  EXPECT_EQ(kernel_count(check(t, {t.sum(rows, {1})}, options)), 1u);  // a thread reads whole rows
  EXPECT_EQ(kernel_count(check(t, {t.sum(t.buffer({8, 32, 256}), {0, 2})}, options)), 1u)
      << "too little work";
  EXPECT_EQ(kernel_count(check(t, {t.sum(t.buffer({64, 4096}), {0})}, options)), 1u)
      << "columns enough";
  EXPECT_EQ(
      kernel_count(check(
          t, {t.matmul(t.permute(t.buffer({8192, 32}), {1, 0}), t.buffer({8192, 32}))}, options)),
      1u);
}

TEST(Plan, PaddedOperandsOfLargeConvolutionsAreStored) {
  Tensors t;
  const Id x = t.buffer({8, 16, 28, 28}), w = t.buffer({32, 16, 3, 3});
  const Plan plan = plan_of(t, {t.conv2d(x, w, 1)});
  ASSERT_EQ(kernel_count(plan), 2u);
  EXPECT_EQ(plan.buffers[plan.steps[0].buffers[0]].elem_count, 8 * 16 * 30 * 30);
  const Graph& g = plan.asts[plan.steps[1].ast]->graph;
  Reachable reachable;
  for (Id id : reachable.from(g, std::vector<Id>{plan.asts[plan.steps[1].ast]->sink}))
    EXPECT_FALSE(g[id].op == Op::Load && g[id].src_count == 4) << "a condition in the loops";
}

TEST(Plan, HeavyOperandsAreStoredAndCheapOnesComputedAgain) {
  Tensors t;
  const Id a = t.buffer({64, 64}), b = t.buffer({64, 64});
  EXPECT_EQ(kernel_count(check(t, {t.matmul(t.times(a, 2), b)})), 1u);
  EXPECT_EQ(kernel_count(check(t, {t.matmul(t.exp(t.plus(a, 1)), b)})), 2u);
}

TEST(Plan, PrintsItsStepsAndKernels) {
  Tensors t;
  const std::string text = to_string(plan_of(t, {chain_of_matmuls(t, 2)}));
  EXPECT_THAT(text, ::testing::HasSubstr("kernel 0 on device 1: b4 = b0 b1\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("64 x f32 on device 1, arena 0 at 0"));
  EXPECT_THAT(text, ::testing::HasSubstr("= reduce f32 "));
}

}  // namespace
}  // namespace plugrad::test
