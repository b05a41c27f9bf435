// Offsets of temporaries: few values are placed by size, many in the order of the steps.
#include <map>

#include "check.h"

namespace plugrad::test {
namespace {

using Kind = schedule::PlannedBuffer::Kind;

struct Life {
  uint32_t buffer;
  size_t first, last;
  uint64_t begin, end;
};

std::vector<Life> lives_of(const schedule::Plan& plan) {
  std::map<uint32_t, Life> lives;
  for (size_t step = 0; step < plan.steps.size(); ++step)
    for (uint32_t b : plan.steps[step].buffers) {
      const auto& planned = plan.buffers[b];
      if (planned.kind != Kind::Temporary) continue;
      const uint64_t bytes = static_cast<uint64_t>(planned.elem_count) * size_of(planned.dtype);
      lives.try_emplace(b, Life{b, step, step, planned.offset_bytes, planned.offset_bytes + bytes})
          .first->second.last = step;
    }
  std::vector<Life> out;
  for (const auto& [buffer, life] : lives) out.push_back(life);
  return out;
}

uint64_t size_of_arenas(const schedule::Plan& plan) {
  uint64_t bytes = 0;
  for (const auto& arena : plan.arenas) bytes += arena.size_bytes;
  return bytes;
}

/// Fails if two simultaneously live values share a byte; returns the peak number of live bytes.
uint64_t expect_apart(const schedule::Plan& plan) {
  const std::vector<Life> lives = lives_of(plan);
  std::vector<uint64_t> alive(plan.steps.size());
  for (const Life& a : lives) {
    const auto& planned = plan.buffers[a.buffer];
    EXPECT_LE(a.end, plan.arenas.at(planned.arena).size_bytes);
    for (size_t step = a.first; step <= a.last; ++step) alive[step] += a.end - a.begin;
    for (const Life& b : lives) {
      if (a.buffer >= b.buffer || plan.buffers[b.buffer].arena != planned.arena) continue;
      const bool at_once = a.first <= b.last && b.first <= a.last;
      EXPECT_FALSE(at_once && a.begin < b.end && b.begin < a.end)
          << "buffers " << a.buffer << " and " << b.buffer;
    }
  }
  return alive.empty() ? 0 : *std::ranges::max_element(alive);
}

/// Every step stores two values of distinct sizes: one for the next step, one that the last step
/// reads.
Id long_chain(Tensors& t, int steps) {
  Id x = t.buffer({64}), sum = t.buffer({64});
  for (int i = 0; i < steps; ++i) {
    const int64_t wide = 64 * (1 + i * 7 % 5);
    const Id all = t.contiguous(t.expand(t.reshape(t.relu(x), {1, 64}), {wide / 64, 64}));
    const Id kept = t.contiguous(t.times(all, 2));
    x = t.contiguous(t.reshape(t.shrink(t.plus(all, 1), {0, 1, 0, 64}), {64}));
    if (i % 3 == 0) sum = t.contiguous(t.add(sum, t.reshape(t.shrink(kept, {0, 1, 0, 64}), {64})));
  }
  return t.add(sum, x);
}

TEST(Memory, FewValuesAndManyAreApart) {
  for (int steps : {40, 900}) {
    Tensors t;
    schedule::Options options;
    options.share_kernels = false;
    const auto plan = check(t, {long_chain(t, steps)}, options);
    const uint64_t most = expect_apart(plan);
    EXPECT_LE(size_of_arenas(plan), most * 3 / 2) << steps;
  }
}

// Few values allow a bounded comparison of all pairs; many values do not.
TEST(Memory, WorkIsLinearInSteps) {
  constexpr double kPairsOfFew = 1024 * 1024 / 2;
  for (int steps : {200, 1'000, 8'000}) {
    Tensors t;
    schedule::Options options;
    options.share_kernels = false;
    const auto plan = plan_of(t, {long_chain(t, steps)}, options);
    EXPECT_GE(plan.steps.size(), static_cast<size_t>(steps));
    EXPECT_LE(static_cast<double>(plan.visits), kPairsOfFew + 160.0 * steps) << steps << " steps";
  }
}

TEST(Memory, ManyValuesInArenasOfLimitedSize) {
  Tensors t;
  schedule::Options options;
  options.share_kernels = false;
  options.max_buffer_bytes = 2048;
  const auto plan = check(t, {long_chain(t, 900)}, options);
  expect_apart(plan);
  EXPECT_GT(plan.arenas.size(), 1u);
  for (const auto& arena : plan.arenas) EXPECT_LE(arena.size_bytes, 2048u);
}

TEST(Memory, WithoutPlanningNothingIsShared) {
  Tensors t;
  schedule::Options options;
  options.share_kernels = false;
  options.plan_memory = false;
  const auto plan = check(t, {long_chain(t, 900)}, options);
  uint64_t bytes = 0;
  for (const Life& life : lives_of(plan)) bytes += (life.end - life.begin + 255) / 256 * 256;
  EXPECT_EQ(size_of_arenas(plan), bytes);
}

}  // namespace
}  // namespace plugrad::test
