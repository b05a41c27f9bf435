// Collectives between processes in a plan: what is bucketed, when they start and when they end.
#include "sharding/collectives.h"

#include <set>

#include "check.h"

namespace plugrad::test {
namespace {

using schedule::Step;
using sharding::CollectiveArg;
using sharding::CollectiveKind;

struct Collectives : Tensors {
  int64_t next = 0;

  /// An all-reduce between the processes 0 and 1.
  Id all_reduce(Id x, int64_t depth = 1, int64_t place = 0) {
    const int64_t count = element_count(shape(x));
    CollectiveArg arg{.kind = CollectiveKind::AllReduce,
                      .reduction = Op::Add,
                      .place = place,
                      .order = next++,
                      .depth = depth,
                      .device = 1,
                      .ranks = {0, 1},
                      .sent = {count},
                      .received = {},
                      .shape = shape(x),
                      .whole = shape(x)};
    return g.add(Op::Collective, g[x].dtype, {x}, g.list(arg.list()));
  }
  /// A large value to compute, of n x n products.
  Id product(int64_t n) { return matmul(buffer({n, n}), buffer({n, n})); }
};

/// K: a kernel, (: collectives start, with their number in front if there are several, ): they end.
std::string steps_of(const schedule::Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    const size_t members = step.buffers.size() / 2;
    const std::string count = members > 1 ? std::to_string(members) : "";
    text += step.kind == Step::Kind::Collective ? count + "("
            : step.kind == Step::Kind::Wait     ? ")"
                                                : "K";
  }
  return text;
}

constexpr int64_t kLarge = 512;  // squared: 1 MiB, a bucket of its own

TEST(Collectives, RunBesideKernelsThatDoNotReadThem) {
  Collectives t;
  std::vector<Id> sums, updates;
  for (int layer = 0; layer < 3; ++layer) sums.push_back(t.all_reduce(t.product(kLarge)));
  for (const Id sum : sums) updates.push_back(t.add(t.buffer({kLarge, kLarge}), sum));
  EXPECT_EQ(steps_of(plan_of(t, updates)), "K(K(K()K)K)K");
}

TEST(Collectives, ThatDependOnEachOtherRunOneAfterAnother) {
  Collectives t;
  Id x = t.product(kLarge);
  for (int layer = 0; layer < 3; ++layer) {
    x = t.all_reduce(x, layer + 1);
    x = t.matmul(x, t.buffer({kLarge, kLarge}));
  }
  EXPECT_EQ(steps_of(plan_of(t, {x})), "K()K()K()K");
}

TEST(Collectives, StartInTheirOrderWhateverTheIdsAre) {
  Collectives t;
  const Id a = t.product(kLarge), b = t.product(kLarge);
  const Id late = t.all_reduce(a, 1, 2), early = t.all_reduce(b, 1, 1);
  const auto plan = plan_of(t, {t.relu(late), t.relu(early)});
  std::vector<uint32_t> started;
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::Collective)
      started.push_back(
          CollectiveArg::of(std::vector<int64_t>(step.scalars.begin(), step.scalars.end())).place ==
                  1
              ? 1
              : 2);
  EXPECT_EQ(started, (std::vector<uint32_t>{1, 2}));
}

TEST(Collectives, SmallOnesShareABucketUntilItIsLarge) {
  Collectives t;
  std::vector<Id> updates;
  constexpr int64_t kSide = 256;  // squared: 256 KiB. 8 of them are 2 MiB: buckets of 1 MiB
  for (int layer = 0; layer < 8; ++layer)
    updates.push_back(t.add(t.buffer({kSide, kSide}), t.all_reduce(t.product(kSide))));
  const auto plan = plan_of(t, updates);
  std::vector<size_t> members;
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::Collective) members.push_back(step.buffers.size() / 2);
  EXPECT_EQ(members, (std::vector<size_t>{4, 4})) << steps_of(plan);
  EXPECT_LT(steps_of(plan).find("4("), steps_of(plan).rfind("K4("))
      << "the first bucket starts before the last product: " << steps_of(plan);
}

TEST(Collectives, OfAnotherKindDtypeOrDepthAreNotInTheBucket) {
  Collectives t;
  const Id floats = t.product(8), ints = t.g.unary(Op::Neg, t.buffer({8, 8}, DType::I32));
  const Id deeper = t.all_reduce(floats, 2), shallow = t.all_reduce(t.product(8));
  const Id of_ints = t.all_reduce(ints);
  const auto plan = plan_of(t, {t.relu(deeper), t.relu(shallow), t.g.unary(Op::Neg, of_ints)});
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::Collective) {
      EXPECT_EQ(step.buffers.size(), 2u);
    }
}

TEST(Collectives, KeepTheirMemoryUntilTheyEnd) {
  Collectives t;
  std::vector<Id> updates;
  for (int layer = 0; layer < 4; ++layer) {
    const Id sum = t.all_reduce(t.product(kLarge));
    updates.push_back(t.sum(t.mul(sum, t.buffer({kLarge, kLarge})), {0, 1}));
  }
  const auto plan = plan_of(t, updates);
  std::vector<std::pair<size_t, size_t>> flights;  // first and last step, by Collective
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != Step::Kind::Collective) continue;
    for (size_t j = i + 1; j < plan.steps.size(); ++j) {
      const bool is_end =
          plan.steps[j].kind == Step::Kind::Wait && plan.steps[j].buffers == plan.steps[i].buffers;
      if (is_end) break;
      for (const uint32_t used : plan.steps[j].buffers)
        for (const uint32_t held : plan.steps[i].buffers) {
          const auto &a = plan.buffers[used], &b = plan.buffers[held];
          using Kind = schedule::PlannedBuffer::Kind;
          if (a.kind != Kind::Temporary || b.kind != Kind::Temporary || a.arena != b.arena)
            continue;
          EXPECT_TRUE(a.offset_bytes + 4 * static_cast<uint64_t>(a.elem_count) <= b.offset_bytes ||
                      b.offset_bytes + 4 * static_cast<uint64_t>(b.elem_count) <= a.offset_bytes)
              << "step " << j << " uses memory of the collective of step " << i;
        }
    }
  }
}

// An update that could share the loops of a product's kernel must not make the first collective
// wait for the second.
TEST(Collectives, NoMergedKernelClosesACircle) {
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    Collectives t;
    const Id shared = t.buffer({64});
    std::vector<std::pair<Id, int64_t>> values = {{shared, 0}};  // with their depth
    std::vector<Id> roots;
    for (int i = 0; i < (seed % 40 == 0 ? 400 : 12); ++i) {
      const auto pick = [&] { return values[random() % values.size()]; };
      const auto [a, of_a] = pick();
      const auto [b, of_b] = pick();
      const Id made = t.add(t.mul(a, shared), t.plus(b, i));
      const int64_t depth = std::max(of_a, of_b);
      const auto place = static_cast<int64_t>(random() % 2 == 0 ? made : 10'000 + i);
      if (random() % 2 == 0)
        values.emplace_back(t.all_reduce(made, depth + 1, depth * 100'000 + place), depth + 1);
      else
        values.emplace_back(made, depth);
    }
    for (const auto& [value, depth] : values)
      if (value != shared) roots.push_back(t.relu(value));
    const auto plan = plan_of(t, roots);
    std::pair<int64_t, int64_t> last{-1, -1};
    std::set<uint32_t> in_flight;
    for (const Step& step : plan.steps) {
      const bool is_wait = step.kind == Step::Kind::Wait;
      if (step.kind == Step::Kind::Collective) {
        const std::vector<int64_t> words(step.scalars.begin(), step.scalars.end());
        const auto sequence = CollectiveArg::of(words).sequence();
        EXPECT_LT(last, sequence) << "seed " << seed;
        last = sequence;
      }
      for (size_t i = 0; i < step.buffers.size(); i += 2) {
        if (step.kind == Step::Kind::Collective) in_flight.insert(step.buffers[i]);
        if (is_wait) in_flight.erase(step.buffers[i]);
      }
      for (const uint32_t buffer : step.buffers)
        EXPECT_TRUE(step.kind != Step::Kind::Kernel || !in_flight.contains(buffer))
            << "seed " << seed << " " << steps_of(plan);
    }
    EXPECT_TRUE(in_flight.empty()) << "seed " << seed << " " << steps_of(plan);
  }
}

}  // namespace
}  // namespace plugrad::test
