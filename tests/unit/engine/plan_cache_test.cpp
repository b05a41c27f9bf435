// A process reads the plans that an earlier one made; unreadable entries are planned again.
#include "engine/plan/plan_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <tuple>

#include "base/hash.h"
#include "base/settings.h"
#include "base/storage/disk_cache.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::engine {
namespace {

using schedule::Plan;
using schedule::PlannedBuffer;
using schedule::Step;

class PlanCache : public ::testing::Test {
 protected:
  // b = 2a * rowsum(2a), with a donation.
  static Plan example() {
    Graph g;
    const Id a = g.add(Op::Buffer, DType::F32, {}, g.list({0, 1, 64, 64}));
    const Id double_a = g.binary(Op::Add, a, a);
    const Id total =
        g.add(Op::Reduce, DType::F32, {double_a}, g.list({static_cast<int64_t>(Op::Add), 1}));
    const Id wide = g.add(Op::Expand, DType::F32, {total}, g.list({64, 64}));
    const Id roots[] = {g.binary(Op::Mul, double_a, wide)};
    schedule::Options options;
    options.replaced = {0};
    Plan plan = schedule::make_plan(g, roots, std::span(&a, 1), 1, options);
    plan.constants = {{1, 2, 3}, {}};
    plan.donations.push_back({plan.root_buffers[0], 0});
    return plan;
  }

  TemporaryDirectory directory_;
  SettingScope scope_{[this](Settings& s) { s.cache_dir = directory_.path(); }};
};

TEST_F(PlanCache, GivesBackEveryField) {
  const Plan plan = example();
  EXPECT_FALSE(find_plan("key"));
  keep_plan("key", plan);
  const auto found = find_plan("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(*found), to_string(plan));
  ASSERT_EQ(found->asts.size(), plan.asts.size());
  for (size_t i = 0; i < plan.asts.size(); ++i) {
    EXPECT_EQ(found->asts[i]->hash[0], plan.asts[i]->hash[0]);
    EXPECT_EQ(found->asts[i]->hash[1], plan.asts[i]->hash[1]);
    EXPECT_EQ(found->asts[i]->param_count, plan.asts[i]->param_count);
  }
  ASSERT_EQ(found->steps.size(), plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    EXPECT_EQ(found->steps[i].buffers, plan.steps[i].buffers);
    EXPECT_EQ(found->steps[i].scalars, plan.steps[i].scalars);
    EXPECT_EQ(found->steps[i].numbers, plan.steps[i].numbers);
  }
  EXPECT_GT(plan.operations, 0);
  EXPECT_EQ(found->operations, plan.operations);
  ASSERT_EQ(found->donations.size(), plan.donations.size());
  EXPECT_EQ(found->donations.back().output, plan.donations.back().output);
  EXPECT_EQ(found->constants, plan.constants);
  EXPECT_EQ(found->root_buffers, plan.root_buffers);
  EXPECT_EQ(found->input_count, plan.input_count);
  EXPECT_FALSE(find_plan("another key"));
}

// Each time memory has other bytes before a plan is made in it, and between its fields.
TEST_F(PlanCache, EqualPlans_AreEqualBytes) {
  std::vector<std::vector<std::byte>> written;
  for (const int fill : {0x5a, 0xa5}) {
    mallopt(M_PERTURB, fill);
    Plan plan = example();
    for (PlannedBuffer& buffer : plan.buffers) {
      const PlannedBuffer from = buffer;
      std::memset(static_cast<void*>(&buffer), fill, sizeof buffer);
      std::tie(buffer.kind, buffer.number, buffer.dtype, buffer.device) =
          std::tie(from.kind, from.number, from.dtype, from.device);
      std::tie(buffer.elem_count, buffer.arena, buffer.offset_bytes) =
          std::tie(from.elem_count, from.arena, from.offset_bytes);
    }
    for (schedule::Arena& arena : plan.arenas) {
      const schedule::Arena from = arena;
      std::memset(static_cast<void*>(&arena), fill, sizeof arena);
      std::tie(arena.device, arena.size_bytes) = std::tie(from.device, from.size_bytes);
    }
    keep_plan("key", plan);
    written.push_back(disk_cache().get(as_bytes("key")).value());
  }
  mallopt(M_PERTURB, 0);
  EXPECT_EQ(written[0], written[1]);
}

// The checksums of these entries are valid, as if another program had written them.
TEST_F(PlanCache, EntriesThatEndAnywhere_AreMisses_AndRemoved) {
  keep_plan("key", example());
  const auto whole = disk_cache().get(as_bytes("key"));
  ASSERT_TRUE(whole);
  for (size_t size = 0; size < whole->size(); size += size < 64 ? 1 : 7) {
    disk_cache().put(as_bytes("key"), std::span(*whole).first(size));
    EXPECT_FALSE(find_plan("key")) << size << " bytes";
    EXPECT_FALSE(disk_cache().get(as_bytes("key"))) << size << " bytes";
  }
  auto longer = *whole;
  longer.push_back(std::byte{0});
  disk_cache().put(as_bytes("key"), longer);
  EXPECT_FALSE(find_plan("key"));
}

TEST_F(PlanCache, NumbersOfNothing_AreMisses) {
  for (const auto& damage :
       {+[](Plan& p) { p.steps[0].buffers[0] = 99; }, +[](Plan& p) { p.steps[0].ast = 99; },
        +[](Plan& p) { p.root_buffers[0] = 99; }}) {
    Plan plan = example();
    damage(plan);
    keep_plan("key", plan);
    EXPECT_FALSE(find_plan("key"));
  }
}

// The kernels of a user and the bodies of loops are numbered by the session.
TEST_F(PlanCache, NumbersOfTheSession_AreNotKept) {
  for (const Step::Kind kind : {Step::Kind::User, Step::Kind::Loop}) {
    Plan plan = example();
    plan.steps[0].kind = kind;
    keep_plan("key", plan);
    EXPECT_FALSE(disk_cache().get(as_bytes("key")));
  }
}

TEST_F(PlanCache, WhileStagesAreObserved_NothingIsKeptOrFound) {
  EXPECT_NE(plan_key_on_disk({1, 2}), "");
  EXPECT_NE(plan_key_on_disk({1, 2}), plan_key_on_disk({1, 3}));
  const SettingScope verifying([](Settings& s) { s.verify = true; });
  EXPECT_EQ(plan_key_on_disk({1, 2}), "");
  keep_plan("", example());
  EXPECT_FALSE(find_plan(""));
}

}  // namespace
}  // namespace plugrad::engine
