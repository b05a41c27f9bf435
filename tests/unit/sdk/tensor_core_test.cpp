// The published lane layouts against the figures in the PTX manual's tables of mma.m16n8k16 and
// mma.m16n8k8, written out as its formulas are.
#include "plugrad/sdk/tensor_core.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <tuple>

namespace plugrad::sdk {
namespace {

TEST(TensorCore, PairsLieAsInMmaM16N8K16) {
  const TensorCoreLayout& layout = *find_layout(kLayoutPairs);
  for (uint32_t item = 0; item < 32; ++item) {
    const uint32_t group = item / 4, in_group = item % 4;
    for (uint32_t i = 0; i < 8; ++i) {
      const MatrixPlace a = place_of(layout.a, item, i);
      EXPECT_EQ(a.m, (i < 2 || (i >= 4 && i < 6)) ? group : group + 8) << item << " a" << i;
      EXPECT_EQ(a.k, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)) << item << " a" << i;
    }
    for (uint32_t i = 0; i < 4; ++i) {
      const MatrixPlace b = place_of(layout.b, item, i), c = place_of(layout.c, item, i);
      EXPECT_EQ(b.k, in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)) << item << " b" << i;
      EXPECT_EQ(b.n, group) << item << " b" << i;
      EXPECT_EQ(c.m, i < 2 ? group : group + 8) << item << " c" << i;
      EXPECT_EQ(c.n, in_group * 2 + (i & 1)) << item << " c" << i;
    }
  }
}

TEST(TensorCore, SinglesLieAsInMmaM16N8K8) {
  const TensorCoreLayout& layout = *find_layout(kLayoutSingles);
  for (uint32_t item = 0; item < 32; ++item) {
    const uint32_t group = item / 4, in_group = item % 4;
    for (uint32_t i = 0; i < 4; ++i) {
      const MatrixPlace a = place_of(layout.a, item, i), c = place_of(layout.c, item, i);
      EXPECT_EQ(a.m, i == 0 || i == 2 ? group : group + 8) << item << " a" << i;
      EXPECT_EQ(a.k, i < 2 ? in_group : in_group + 4) << item << " a" << i;
      EXPECT_EQ(c.m, i < 2 ? group : group + 8) << item << " c" << i;
      EXPECT_EQ(c.n, in_group * 2 + (i & 1)) << item << " c" << i;
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const MatrixPlace b = place_of(layout.b, item, i);
      EXPECT_EQ(b.k, i == 0 ? in_group : in_group + 4) << item << " b" << i;
      EXPECT_EQ(b.n, group) << item << " b" << i;
    }
  }
}

TEST(TensorCore, EachElementOfATileIsHeldOnce) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_F32}) {
    const pgr_tensor_core core = make_warp_core(dtype);
    const TensorCoreLayout& layout = *find_layout(core.layout);
    const auto places = [&](std::string_view fragment, uint32_t lanes) {
      std::set<std::tuple<uint32_t, uint32_t, uint32_t>> all;
      for (uint32_t item = 0; item < core.threads; ++item)
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          const MatrixPlace at = place_of(fragment, item, lane);
          EXPECT_TRUE(at.m < core.m && at.n < core.n && at.k < core.k);
          all.emplace(at.m, at.n, at.k);
        }
      return all.size();
    };
    EXPECT_EQ(places(layout.a, core.elems_a), size_t{core.m} * core.k);
    EXPECT_EQ(places(layout.b, core.elems_b), size_t{core.k} * core.n);
    EXPECT_EQ(places(layout.c, core.elems_c), size_t{core.m} * core.n);
  }
}

TEST(TensorCore, RecordsThatNoLayoutFitsAreNamed) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32})
    EXPECT_EQ(problem_of(make_warp_core(dtype)), "");
  pgr_tensor_core core = make_warp_core(PGR_DTYPE_F16);
  core.layout = 9;
  EXPECT_EQ(problem_of(core), "layout 9 is not published");
  core = make_warp_core(PGR_DTYPE_F16);
  core.k = 8;
  EXPECT_EQ(problem_of(core), "layout 1 is not one of 16 x 8 x 8");
  core = make_warp_core(PGR_DTYPE_F16);
  core.threads = 64;
  EXPECT_EQ(problem_of(core), "layout 1 is of 32 work-items, not 64");
  core = make_warp_core(PGR_DTYPE_F16);
  core.elems_b = 8;
  EXPECT_EQ(problem_of(core), "the elements of a work-item are not those of layout 1");
  core = make_warp_core(PGR_DTYPE_F32);
  core.dtype_in = PGR_DTYPE_F16;
  EXPECT_EQ(problem_of(core), "layout 2 is not one of f16");
}

TEST(TensorCore, InputsAreRoundedToTenBitsAwayFromZero) {
  EXPECT_EQ(rounded_input(1.0f), 1.0f);
  EXPECT_EQ(rounded_input(1.0f + 0x1p-10f), 1.0f + 0x1p-10f);
  EXPECT_EQ(rounded_input(1.0f + 0x1p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(rounded_input(-1.0f - 0x1p-11f), -1.0f - 0x1p-10f);
  EXPECT_EQ(rounded_input(1.0f + 0x1p-12f), 1.0f);
  EXPECT_EQ(rounded_input(0x1.fffffep127f), std::bit_cast<float>(0x7f800000));
  EXPECT_EQ(rounded_input(std::bit_cast<float>(0xff800000)), std::bit_cast<float>(0xff800000));
}

}  // namespace
}  // namespace plugrad::sdk
