#include "engine/plan/canonical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "plugrad/error.h"

using namespace plugrad;
using engine::CanonicalGraph;

namespace {

class CanonicalTest : public testing::Test {
 protected:
  Id leaf(std::initializer_list<int64_t> shape, DType dtype = DType::F32, uint32_t device = 1) {
    std::vector<int64_t> list = {next_buffer++, device};
    list.insert(list.end(), shape);
    const Id id = g.add(Op::Buffer, dtype, {}, g.list(list));
    set_value(id, device);
    return id;
  }
  void set_value(Id id, uint32_t device = 1) {
    auto value = std::make_shared<engine::Value>();
    value->dtype = g[id].dtype;
    value->device = device;
    values.set(id, value);
  }
  Hash128 key(std::vector<Id> roots) {
    canonical.walk(g, shapes, devices, 1, values, roots);
    return canonical.key();
  }
  Id add(Id a, Id b) { return g.binary(Op::Add, a, b); }
  Id mul(Id a, Id b) { return g.binary(Op::Mul, a, b); }

  Graph g;
  Shapes shapes{g};
  Devices devices{g};
  engine::ValueTable values;
  CanonicalGraph canonical;
  int64_t next_buffer = 1;
};

TEST_F(CanonicalTest, TheSameShapeOfGraphOnOtherBuffersHasTheSameKey) {
  const Id a = leaf({4}), b = leaf({4});
  const Hash128 first = key({mul(add(a, b), a)});
  leaf({7});  // other ids in between
  const Id c = leaf({4}), d = leaf({4});
  EXPECT_EQ(key({mul(add(c, d), c)}), first);
}

TEST_F(CanonicalTest, WhatTellsPlansApartChangesTheKey) {
  const Id a = leaf({4}), b = leaf({4});
  const Hash128 base = key({add(a, b)});
  EXPECT_NE(key({add(a, a)}), base) << "one input twice";
  EXPECT_NE(key({mul(a, b)}), base) << "op";
  EXPECT_NE(key({add(leaf({5}), leaf({5}))}), base) << "shape";
  EXPECT_NE(key({add(leaf({4}, DType::I32), leaf({4}, DType::I32))}), base) << "dtype";
  EXPECT_NE(key({add(leaf({4}, DType::F32, 2), leaf({4}, DType::F32, 2))}), base) << "device";
  EXPECT_NE(key({add(a, b), mul(a, b)}), base) << "roots";
  EXPECT_NE(key({mul(a, g.constant(DType::F32, 2.0))}), key({mul(a, g.constant(DType::F32, 3.0))}));
  const Id grid = leaf({2, 2});
  const auto moved = [&](std::initializer_list<int64_t> order) {
    return g.add(Op::Permute, DType::F32, {grid}, g.list(order));
  };
  EXPECT_NE(key({moved({0, 1})}), key({moved({1, 0})})) << "list argument";
}

TEST_F(CanonicalTest, TheWalkStopsAtValues) {
  const Id a = leaf({4}), b = leaf({4});
  const Id sum = add(a, b);
  set_value(sum);
  const Hash128 over_value = key({mul(sum, g.constant(DType::F32, 2.0))});
  EXPECT_EQ(canonical.take_inputs().size(), 1u);
  EXPECT_EQ(key({mul(leaf({4}), g.constant(DType::F32, 2.0))}), over_value);
}

// A value of equal shape may be older or newer than another: ids order sources of the graph's
// nodes.
TEST_F(CanonicalTest, TheAgeOfEqualInputsDoesNotMatter) {
  std::vector<Id> leaves = {leaf({4}), leaf({4}), leaf({4})};
  std::vector<int> at = {0, 1, 2};
  std::optional<Hash128> first;
  do {
    const Id a = leaves[at[0]], b = leaves[at[1]], c = leaves[at[2]];
    const Hash128 now = key({add(mul(add(a, b), a), g.unary(Op::Neg, mul(b, c)))});
    const std::vector<engine::ValuePtr> inputs = canonical.take_inputs();
    if (!first) first = now;
    EXPECT_EQ(now, *first) << at[0] << at[1] << at[2];
    EXPECT_EQ(inputs.size(), 3u);
  } while (std::ranges::next_permutation(at).found);
}

TEST_F(CanonicalTest, TheHistoryOfAValueDoesNotMatter) {
  const Id x = leaf({4});
  std::set<std::string> keys;
  Id state = leaf({4});
  for (int i = 0; i < 8; ++i) {  // each step depends on all earlier ones, as on a tape
    const Id older = i % 2 == 0 ? mul(state, x) : add(state, x);
    const Id newer = i % 2 == 0 ? add(state, x) : mul(state, x);
    state = add(older, newer);
    keys.insert(key({state}).hex());
    set_value(state);
  }
  EXPECT_EQ(keys.size(), 1u);
}

// The order of a sum's terms must not depend on the call of a user's function that made them.
TEST_F(CanonicalTest, TheNumbersOfCallsDoNotMatter) {
  std::set<std::string> keys;
  for (uint64_t call = 1; call <= 64; ++call) {
    const Id x = leaf({4}), y = leaf({4});
    const Id value = g.unary(Op::Exp2, x), other = g.unary(Op::Sqrt, y);
    const Id function = g.add(Op::Function, DType::F32, {value, x}, call << 16);
    keys.insert(key({add(call % 2 == 0 ? function : value, other)}).hex());
  }
  EXPECT_EQ(keys.size(), 1u);
}

TEST_F(CanonicalTest, EqualBranchesAreToldApartByTheOtherUsesOfTheirInputs) {
  const auto of = [&](Id a, Id b) {
    const auto branch = [&](Id x) { return g.unary(Op::Sin, mul(x, x)); };
    const Id both = add(branch(a), branch(b));
    return key({g.unary(Op::Exp2, both), g.unary(Op::Neg, a)});
  };
  const Id a = leaf({4}), b = leaf({4});
  EXPECT_EQ(of(a, b), of(b, a));
  EXPECT_NE(of(a, b), of(a, a));
}

TEST_F(CanonicalTest, NodesThatShareAValueAreOneInput) {
  const Id a = leaf({4}), cut = leaf({4});
  values.set(cut, values.share(a));
  key({add(mul(a, a), cut)});
  EXPECT_EQ(canonical.take_inputs().size(), 1u);
}

TEST_F(CanonicalTest, TheCopyIsTheGraphWithCanonicalBuffers) {
  leaf({9});
  const Id a = leaf({4}), b = leaf({4}, DType::F32, 3);
  key({g.add(Op::Sub, DType::F32, {a, b}), b});
  const auto scratch = canonical.copy();
  ASSERT_EQ(scratch.inputs.size(), 2u);
  EXPECT_THAT(scratch.graph.arg_list(scratch.inputs[0]), testing::ElementsAre(0, 1, 4));
  EXPECT_THAT(scratch.graph.arg_list(scratch.inputs[1]), testing::ElementsAre(1, 3, 4));
  EXPECT_EQ(scratch.graph[scratch.roots[0]].op, Op::Sub);
  EXPECT_THAT(scratch.graph.sources(scratch.roots[0]), testing::ElementsAreArray(scratch.inputs));
  EXPECT_EQ(scratch.roots[1], scratch.inputs[1]);
}

TEST_F(CanonicalTest, IdentitiesOfContiguousDoNotChangeTheKeyAndStayApart) {
  const Id a = leaf({4});
  const auto stored = [&](uint64_t identity) {
    return g.add(Op::Contiguous, DType::F32, {a}, identity);
  };
  const Hash128 first = key({add(stored(17), stored(18))});
  const auto scratch = canonical.copy();
  const auto sources = scratch.graph.sources(scratch.roots[0]);
  EXPECT_NE(sources[0], sources[1]);
  EXPECT_EQ(key({add(stored(99), stored(100))}), first);
  EXPECT_NE(key({add(stored(5), stored(5))}), first);
}

TEST_F(CanonicalTest, ABufferWithoutAValueIsAnInternalError) {
  const Id lost = g.add(Op::Buffer, DType::F32, {}, g.list({99, 1, 4}));
  EXPECT_THROW(key({add(lost, lost)}), Error);
}

TEST_F(CanonicalTest, ALongChainNeedsNoRecursion) {
  Id x = leaf({1});
  for (int i = 0; i < 100000; ++i) x = add(x, g.constant(DType::F32, static_cast<double>(i)));
  key({x});
  EXPECT_EQ(canonical.copy().graph.size(), g.size());
}

}  // namespace
