// Warp layouts against the formulas of the PTX manual's tables for mma.m16n8k16 and mma.m16n8k8.
#include "plugrad/sdk/tensor_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

namespace plugrad::sdk {
namespace {

TEST(TensorCore, PairsLieAsInMmaM16N8K16) {
  const pgr_tensor_core core = make_warp_core(PGR_DTYPE_F16);
  for (uint32_t item = 0; item < 32; ++item) {
    const uint32_t group = item / 4, in_group = item % 4;
    for (uint32_t i = 0; i < 8; ++i) {
      const MatrixPlace a = place_of(layout_of_a(core), item, i);
      EXPECT_EQ(a.m, (i < 2 || (i >= 4 && i < 6)) ? group : group + 8) << item << " a" << i;
      EXPECT_EQ(a.k, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)) << item << " a" << i;
    }
    for (uint32_t i = 0; i < 4; ++i) {
      const MatrixPlace b = place_of(layout_of_b(core), item, i),
                        c = place_of(layout_of_c(core), item, i);
      EXPECT_EQ(b.k, in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)) << item << " b" << i;
      EXPECT_EQ(b.n, group) << item << " b" << i;
      EXPECT_EQ(c.m, i < 2 ? group : group + 8) << item << " c" << i;
      EXPECT_EQ(c.n, in_group * 2 + (i & 1)) << item << " c" << i;
    }
  }
}

TEST(TensorCore, SinglesLieAsInMmaM16N8K8) {
  const pgr_tensor_core core = make_warp_core(PGR_DTYPE_F32);
  for (uint32_t item = 0; item < 32; ++item) {
    const uint32_t group = item / 4, in_group = item % 4;
    for (uint32_t i = 0; i < 4; ++i) {
      const MatrixPlace a = place_of(layout_of_a(core), item, i),
                        c = place_of(layout_of_c(core), item, i);
      EXPECT_EQ(a.m, i == 0 || i == 2 ? group : group + 8) << item << " a" << i;
      EXPECT_EQ(a.k, i < 2 ? in_group : in_group + 4) << item << " a" << i;
      EXPECT_EQ(c.m, i < 2 ? group : group + 8) << item << " c" << i;
      EXPECT_EQ(c.n, in_group * 2 + (i & 1)) << item << " c" << i;
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const MatrixPlace b = place_of(layout_of_b(core), item, i);
      EXPECT_EQ(b.k, i == 0 ? in_group : in_group + 4) << item << " b" << i;
      EXPECT_EQ(b.n, group) << item << " b" << i;
    }
  }
}

TEST(TensorCore, EachElementOfATileIsHeldOnce) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_F32}) {
    const pgr_tensor_core core = make_warp_core(dtype);
    const auto places = [&](const TileLayout& layout) {
      std::set<std::tuple<uint32_t, uint32_t, uint32_t>> all;
      for (uint32_t item = 0; item < core.threads; ++item)
        for (uint32_t lane = 0; lane < layout.lanes; ++lane) {
          const MatrixPlace at = place_of(layout, item, lane);
          EXPECT_TRUE(at.m < core.m && at.n < core.n && at.k < core.k);
          all.emplace(at.m, at.n, at.k);
        }
      return all.size();
    };
    EXPECT_EQ(places(layout_of_a(core)), size_t{core.m} * core.k);
    EXPECT_EQ(places(layout_of_b(core)), size_t{core.k} * core.n);
    EXPECT_EQ(places(layout_of_c(core)), size_t{core.m} * core.n);
  }
}

TEST(TensorCore, RecordsThatAreNoneAreNamed) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32})
    EXPECT_EQ(problem_of(make_warp_core(dtype)), "");
  const auto problem = [](void (*change)(pgr_tensor_core&)) {
    pgr_tensor_core core = make_warp_core(PGR_DTYPE_F16);
    change(core);
    return problem_of(core);
  };
  EXPECT_EQ(problem([](auto& core) { core.kind = 9; }), "kind 9 is unknown");
  EXPECT_EQ(problem([](auto& core) { core.k = 8; }), "layout_a is not one of 16 x 8");
  EXPECT_EQ(problem([](auto& core) { core.n = 12; }), "12 is no power of two");
  EXPECT_EQ(problem([](auto& core) { core.threads = 64; }),
            "layout_c[7] = 0 is of no axis of that tile");
  EXPECT_EQ(problem([](auto& core) { core.elems_b = 2; }), "layout_b[6] is behind the last bit");
  EXPECT_EQ(problem([](auto& core) { core.elems_a = 6; }), "elems_a is no power of two");
  EXPECT_EQ(problem([](auto& core) { core.elems_c = 1u << 30; }),
            "layout_c is too short for its elements");
  EXPECT_EQ(problem([](auto& core) { core.layout_a[1] = core.layout_a[0]; }),
            "layout_a[1] is a bit that another one is already");
  EXPECT_EQ(problem([](auto& core) { core.layout_a[1] = PGR_LANE_BIT(PGR_LANE_AXIS_N, 0); }),
            "layout_a[1] = 32 is of no axis of that tile");
  EXPECT_EQ(problem([](auto& core) { core.layout_b[20] = 1; }),
            "layout_b[20] is behind the last bit");
  EXPECT_EQ(problem([](auto& core) { core.fraction_bits_in = 10; }),
            "fraction_bits_in is 10 of f16");
  EXPECT_EQ(problem([](auto& core) { core.dtype_in = PGR_DTYPE_I8; }),
            "kernels use products of f16, bf16 and f32 with sums of f32");
}

// If several work-items hold an element of A, each has the element's value.
TEST(TensorCore, AnElementMayBeHeldTwice) {
  pgr_tensor_core core = make_warp_core(PGR_DTYPE_F16);
  core.elems_a = 16;
  std::fill(std::begin(core.layout_a), std::end(core.layout_a), uint8_t{0});
  set_layout(core.layout_a, "k0 m3 k3 m2 | k1 k2 m0 m1 -");
  EXPECT_EQ(problem_of(core), "");
  for (uint32_t item = 0; item < 16; ++item)
    for (uint32_t lane = 0; lane < 16; ++lane) {
      const MatrixPlace one = place_of(layout_of_a(core), item, lane),
                        other = place_of(layout_of_a(core), item + 16, lane);
      EXPECT_EQ(one.m, other.m);
      EXPECT_EQ(one.k, other.k);
    }
}

float rounded10(float value) {
  return rounded_input(value, 10);
}

TEST(TensorCore, InputsAreRoundedToTenBitsAwayFromZero) {
  EXPECT_EQ(rounded10(1.0f), 1.0f);
  EXPECT_EQ(rounded10(1.0f + 0x1p-10f), 1.0f + 0x1p-10f);
  EXPECT_EQ(rounded10(1.0f + 0x1p-11f), 1.0f + 0x1p-10f);
  EXPECT_EQ(rounded10(-1.0f - 0x1p-11f), -1.0f - 0x1p-10f);
  EXPECT_EQ(rounded10(1.0f + 0x1p-12f), 1.0f);
  EXPECT_EQ(rounded10(0x1.fffffep127f), std::bit_cast<float>(0x7f800000));
  EXPECT_EQ(rounded10(std::bit_cast<float>(0xff800000)), std::bit_cast<float>(0xff800000));
}

}  // namespace
}  // namespace plugrad::sdk
