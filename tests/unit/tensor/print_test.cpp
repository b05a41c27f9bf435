#include "expect.h"

namespace plugrad {
namespace {

TEST(Print, RowsAreNestedAndAligned) {
  EXPECT_EQ(to_string(Tensor::from({{1.f, -2.5f}, {100.f, 0.125f}})),
            "[[    1,  -2.5],\n [  100, 0.125]]");
  EXPECT_EQ(to_string(Tensor::arange(8).reshape({2, 2, 2})),
            "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
  EXPECT_EQ(to_string(Tensor::from({true, false})), "[ true, false]");
}

TEST(Print, ScalarsAndEmptyTensors) {
  EXPECT_EQ(to_string(Tensor(2.5)), "2.5");
  EXPECT_EQ(to_string(Tensor::zeros({0})), "[]");
  EXPECT_EQ(to_string(Tensor::zeros({2, 0})), "[[],\n []]");
  EXPECT_EQ(to_string(Tensor::from({INFINITY, NAN})), "[inf, nan]");
}

TEST(Print, ExtremesOfIntegersAreExact) {
  EXPECT_EQ(to_string(Tensor::from({INT64_MIN, INT64_MAX})),
            "[-9223372036854775808,  9223372036854775807]");
  EXPECT_EQ(to_string(Tensor::from({UINT64_MAX})), "[18446744073709551615]");
}

TEST(Print, TheMiddleOfLongAxesIsLeftOut) {
  EXPECT_EQ(to_string(Tensor::arange(2000)), "[   0,    1,    2, …, 1997, 1998, 1999]");
}

TEST(Print, AnUndefinedTensorIsAnError) {
  EXPECT_THAT(error_of([] { to_string(Tensor()); }), testing::HasSubstr("[to_string]"));
}

}  // namespace
}  // namespace plugrad
