// Collectives between processes in a plan: what is bucketed, when they start and when they end.
#include "sharding/collectives.h"

#include <set>

#include "check.h"

namespace plugrad::test {
namespace {

using schedule::Step;
using sharding::CollectiveArg;

struct Collectives : Tensors {
  int64_t next = 0;

  /// An all-reduce between the processes 0 and 1.
  Id all_reduce(Id x, int64_t depth = 1, int64_t place = 0) {
    return collective(x, {.place = place, .depth = depth});
  }
  /// Between the processes 0 and 1, if `arg` has no ranks. Its result has the shape of x.
  Id collective(Id x, CollectiveArg arg) {
    arg.order = next++;
    arg.device = 1;
    if (arg.ranks.empty()) arg.ranks = {0, 1};
    arg.shape = arg.whole = shape(x);
    if (arg.sent.empty()) arg.sent = {element_count(shape(x))};
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

/// The members of each bucket of a plan that needs the results of all.
std::vector<size_t> buckets_of(Collectives& t, const std::vector<Id>& collectives) {
  std::vector<Id> updates;
  for (const Id id : collectives) updates.push_back(t.g.unary(Op::Neg, id));
  std::vector<size_t> members;
  for (const Step& step : plan_of(t, updates).steps)
    if (step.kind == Step::Kind::Collective) members.push_back(step.buffers.size() / 2);
  return members;
}

TEST(Collectives, OfAnotherDtypeOrDepthAreNotInTheBucket) {
  Collectives t;
  const Id ints = t.g.unary(Op::Neg, t.buffer({8, 8}, DType::I32));
  EXPECT_EQ(buckets_of(
                t, {t.all_reduce(t.product(8), 2), t.all_reduce(t.product(8)), t.all_reduce(ints)}),
            (std::vector<size_t>{1, 1, 1}));
}

TEST(Collectives, OfAnotherReductionAreNotInTheBucket) {
  Collectives t;
  const auto reduced = [&](Op op) {
    return t.collective(t.product(8), {.reduction = op, .depth = 1});
  };
  EXPECT_EQ(buckets_of(t, {reduced(Op::Add), reduced(Op::Add), reduced(Op::Max), reduced(Op::Max)}),
            (std::vector<size_t>{2, 2}));
}

TEST(Collectives, OfAnotherKindAreNotInTheBucket) {
  Collectives t;
  const auto gathered = [&] {
    return t.collective(t.product(8),
                        {.kind = CollectiveKind::AllGather, .depth = 1, .received = {32, 32}});
  };
  EXPECT_EQ(buckets_of(t, {t.all_reduce(t.product(8)), gathered(), gathered()}),
            (std::vector<size_t>{1, 2}));
}

TEST(Collectives, BetweenOtherProcessesAreNotInTheBucket) {
  Collectives t;
  const auto between = [&](std::vector<int64_t> ranks) {
    return t.collective(t.product(8), {.depth = 1, .ranks = std::move(ranks)});
  };
  EXPECT_EQ(buckets_of(t, {between({0, 1}), between({0, 2}), between({0, 2}), between({0, 1, 2})}),
            (std::vector<size_t>{1, 2, 1}));
}

// Their counts differ between the processes, which would choose other buckets by them.
TEST(Collectives, OfPairsAndAllToAllsHaveNoBucket) {
  for (const CollectiveKind kind :
       {CollectiveKind::AllToAll, CollectiveKind::Broadcast, CollectiveKind::Receive}) {
    Collectives t;
    const auto made = [&] {
      return t.collective(t.product(8),
                          {.kind = kind, .depth = 1, .sent = {32, 32}, .received = {32, 32}});
    };
    EXPECT_EQ(buckets_of(t, {made(), made()}), (std::vector<size_t>{1, 1})) << name_of(kind);
  }
}

// Gradients of matrices and of biases take turns.
TEST(Collectives, OfAMegabyteHaveABucketOfTheirOwnAmongSmallOnes) {
  Collectives t;
  const auto small = [&] { return t.all_reduce(t.product(8)); };
  const auto large = [&] { return t.all_reduce(t.product(kLarge)); };
  const auto last = small();
  EXPECT_EQ(buckets_of(t, {last, large(), small(), large(), small()}),
            (std::vector<size_t>{1, 1, 3}));
}

// The third one reads the first one's result, so it must not have to wait for its own.
TEST(Collectives, AreNotInABucketWithThoseBehindTheirReaders) {
  Collectives t;
  const Id first = t.all_reduce(t.product(8));
  const Id reader = t.all_reduce(t.relu(first), 2);
  EXPECT_EQ(buckets_of(t, {first, reader, t.all_reduce(t.product(8)), t.all_reduce(t.product(8))}),
            (std::vector<size_t>{1, 1, 2}));
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

// Behind the first updates there is less to hold, and the link still has enough to do.
TEST(Collectives, AreReadBeforeMuchMemoryWaitsForIt) {
  Collectives t;
  std::vector<Id> updates;
  constexpr int kLayers = 64;  // of 1 MiB before and 1 MiB behind the sum
  const Id rate = t.expand(t.sum(t.buffer({kLarge, kLarge}), {0, 1}), {kLarge, kLarge});
  for (int layer = 0; layer < kLayers; ++layer)
    updates.push_back(t.mul(rate, t.all_reduce(t.product(kLarge))));
  const std::string steps = steps_of(plan_of(t, updates));
  int held = 0, most = 0;
  for (const char step : steps) {
    held += step == '(' ? 1 : step == ')' ? -1 : 0;
    most = std::max(most, held);
  }
  EXPECT_LE(most, kLayers / 4 + 4) << steps;  // and those that are on their way
  EXPECT_EQ(held, 0) << steps;
}

// As of cut parameters in a forward pass.
TEST(Collectives, OfStoredValuesRunAheadByALimitedSize) {
  Collectives t;
  constexpr int kLayers = 160;  // of 1 MiB: 64 of them may be there early
  Id x = t.buffer({kLarge, kLarge});
  for (int layer = 0; layer < kLayers; ++layer)
    x = t.matmul(x, t.all_reduce(t.buffer({kLarge, kLarge}), 1, layer));
  const std::string steps = steps_of(plan_of(t, {x}));
  EXPECT_EQ(std::ranges::count(steps, '('), kLayers);
  EXPECT_LE(steps.find('K'), 66u) << steps;
  EXPECT_GT(steps.find('K'), 1u) << steps;
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
