// stage(slot, place) on devices with workgroups: one copy per group, with barriers around it, and
// the same numbers as without.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/check.h"
#include "gpu.h"
#include "kernels.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::KernelCode;
using ::testing::HasSubstr;

pgr_device_caps small_gpu() {
  pgr_device_caps caps = with_groups(64, 4096);
  caps.subgroup_size = 8;
  return caps;
}

KernelCode build_cached(const Ast& ast, const std::string& text) {
  const auto list = codegen::parse_schedule(text);
  return codegen::generate(ast.graph, ast.sink, small_gpu(), {.schedule = &list});
}

size_t count_ops(const KernelCode& code, uint16_t op) {
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  return static_cast<size_t>(std::ranges::count(ir.insts(), op, &pgr_ir_inst::op));
}

struct CacheSizes {
  int64_t m, n, k;
};

std::vector<float> cached_product(const CacheSizes& s, const std::string& text) {
  std::vector<float> a = small_integers(s.m * s.k, 1), b = small_integers(s.k * s.n, 2);
  std::vector<float> c(static_cast<size_t>(s.m * s.n), -99);
  run(build_cached(matmul(s.m, s.n, s.k), text), {&c, &a, &b});
  return c;
}

TEST(LocalStage, both_operands_of_a_product_are_copied_once_for_the_group) {
  const CacheSizes s{16, 32, 32};
  const std::string text =
      "local(0, 4) local(1, 8) block(4, 8) stage(1, 5) stage(2, 5) thread(0, 0) thread(1, 0)";
  const KernelCode code = build_cached(matmul(s.m, s.n, s.k), text);
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  std::vector<uint64_t> shared;
  for (const pgr_ir_array& array : ir.arrays())
    if (array.space == PGR_SPACE_LOCAL) shared.push_back(array.elem_count);
  EXPECT_THAT(shared, testing::UnorderedElementsAre(4 * 8, 8 * 8));
  EXPECT_EQ(count_ops(code, PGR_OP_BARRIER), 2u);  // before and after both copies
  EXPECT_EQ(cached_product(s, text), cached_product(s, ""));
}

TEST(LocalStage, tiles_in_registers_and_ragged_sizes_give_the_same_numbers) {
  for (const CacheSizes& s : {CacheSizes{16, 32, 32}, {19, 17, 24}, {33, 40, 16}, {5, 70, 48}})
    for (const char* text :
         {"local(0, 4) local(1, 8) block(4, 4) stage(1, 5) stage(2, 5)",
          "local(0, 4) local(1, 8) block(4, 8) stage(2, 5) unroll(5, 4) thread(1, 0)",
          "local(1, 8) stage(2, 3)", "local(0, 2) local(1, 4) stage(1, 0)"}) {
      std::string why;
      try {
        EXPECT_EQ(cached_product(s, text), cached_product(s, ""))
            << text << " of " << s.m << " x " << s.n << " x " << s.k;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::User) << e.what();
      }
    }
  const CacheSizes s{32, 64, 32};
  EXPECT_EQ(
      cached_product(
          s,
          "local(0, 4) local(1, 8) upcast(0, 4) upcast(0, 2) block(3, 8) stage(1, 5) stage(2, 5)"),
      cached_product(s, ""));
}

std::string caching_refusal(const std::string& text) {
  try {
    build_cached(matmul(16, 32, 32), text);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(LocalStage, comes_behind_the_changes_that_make_the_group) {
  EXPECT_THAT(caching_refusal("local(1, 8) stage(2, 3) local(0, 4)"),
              HasSubstr("not after a stage in local memory"));
  EXPECT_THAT(caching_refusal("local(1, 8) stage(2, 3) upcast(0, 4)"),
              HasSubstr("not after a stage in local memory"));
  EXPECT_THAT(caching_refusal("group(2, 4) stage(2, 3)"),
              HasSubstr("the work-items do not all work on one tile"));
  EXPECT_THAT(caching_refusal("local(1, 8) stage(2, 9)"), HasSubstr("the kernel has"));
  EXPECT_THAT(caching_refusal("local(1, 32) stage(1, 0) stage(2, 0)"),
              HasSubstr("bytes of local memory, the device has 4096"));
}

TEST(LocalStage, a_rest_that_no_item_runs_along_is_added_once) {
  // The remainder of the columns has no axis of work-items, and a sum that accumulates in the
  // output is loaded before it is stored.
  const CacheSizes s{17, 17, 9};
  EXPECT_EQ(cached_product(s, "vectorize(1, 5) accumulate(2, 1) local(2, 3) stage(2, 4)"),
            cached_product(s, ""));
}

TEST(LocalStage, random_lists_give_the_same_numbers) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int legal = 0;
  for (int round = 0; round < 3000; ++round) {
    const CacheSizes s{1 + pick(40), 1 + pick(40), 1 + pick(40)};
    std::string text;
    const auto add = [&](const char* kind, int axis, int amount) {
      text += fmt::format("{}{}({}, {})", text.empty() ? "" : " ", kind, axis, amount);
    };
    const char* before[] = {"local", "upcast", "block", "local"};
    for (int i = pick(5); i-- > 0;) add(before[pick(4)], pick(5), 1 + pick(8));
    for (int i = 1 + pick(2); i-- > 0;) add("stage", 1 + pick(2), pick(7));
    const char* after[] = {"thread", "unroll", "swap"};
    for (int i = pick(3); i-- > 0;) add(after[pick(3)], pick(6), pick(4));
    std::vector<float> got;
    try {
      got = cached_product(s, text);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::User) << text << ": " << e.what();
      continue;
    }
    ++legal;
    ASSERT_EQ(got, cached_product(s, "")) << text << " of " << s.m << " x " << s.n << " x " << s.k;
  }
  EXPECT_GT(legal, 80);
}

}  // namespace
}  // namespace plugrad::test
