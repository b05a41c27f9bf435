#include "plugrad/host_view.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

float first_of(const HostView& view) {
  float first;
  std::memcpy(&first, view.bytes.data(), sizeof first);
  return first;
}

TEST(HostView, AdoptedMemoryIsSeenInPlace) {
  const auto values = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const Tensor x =
      Tensor::from_bytes(std::as_bytes(std::span(*values)), {3}, DType::F32, {}, values);
  const auto view = host_view(x);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->bytes.data(), reinterpret_cast<const std::byte*>(values->data()));
  EXPECT_EQ(view->bytes.size(), 12u);
}

TEST(HostView, ComputedValuesAreSeenInPlaceOnTheCpu) {
  const Tensor x = (Tensor::from({1.0f, 2.0f}, "CPU") + 1.0f).realize();
  const auto first = host_view(x), second = host_view(x);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes.data(), second->bytes.data());
  EXPECT_EQ(first_of(*first), 2.0f);
}

TEST(HostView, StaysUnchangedWhenTheTensorIsAssignedTo) {
  Tensor x = (Tensor::from({1.0f, 2.0f}, "CPU") + 1.0f).realize();
  const auto before = host_view(x);
  ASSERT_TRUE(before);
  x += 5.0f;
  x.realize();
  EXPECT_EQ(first_of(*before), 2.0f);
  EXPECT_EQ(first_of(*host_view(x)), 7.0f);
}

TEST(HostView, OutlivesItsTensor) {
  std::optional<HostView> view;
  {
    view = host_view(Tensor::from({4.0f, 2.0f}, "CPU") * 2.0f);
  }
  for (int i = 0; i < 10; ++i) (Tensor::from({1.0f, 1.0f}, "CPU") * 3.0f).realize();
  EXPECT_EQ(first_of(*view), 8.0f);
}

TEST(HostView, ConstantsAndEmptyTensorsHaveNone) {
  EXPECT_FALSE(host_view(Tensor::zeros({3})));
  EXPECT_FALSE(host_view(Tensor::empty({0, 2})));
}

}  // namespace
}  // namespace plugrad
