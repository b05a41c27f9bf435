// Failures that random programs found, each in its shrunk form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session.h"
#include "oracle/measured.h"
#include "plugrad/plugrad.h"
#include "tensor/handles.h"

namespace plugrad::programs {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(Regressions, AContiguousCopyIsATensorOfItsOwn) {
  Tensor x = Tensor::from({1.0f, 2.0f}).realize();
  const Tensor copy = x.contiguous();
  x -= 1;
  EXPECT_THAT(copy.to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(0, 1));
}

TEST(Regressions, ABorderOfZerosCanBeSummedByVectors) {
  const Tensor x = Tensor::full({7, 6}, 1.0f).contiguous().pad({{2, 2}, {0, 0}});
  EXPECT_NEAR(mse_loss(x.zeros_like(), x).item<float>(), 42.0 / 66.0, 1e-6);
}

TEST(Regressions, AnEmptyValueThatNothingReadsNeedsNoPlace) {
  Tensor x = Tensor::from(std::vector<float>{}, Shape{0, 5});
  x /= x;
  const Tensor both[] = {x.cast(DType::I64).expand({3, 0, 5}),
                         Tensor::full({4}, 4.0f).reciprocal().cast(DType::I64)};
  EXPECT_NO_THROW(Tensor::realize(both));
}

TEST(Regressions, AReplayMayComputeWhatNothingReads) {
  const Tensor x = Tensor::from({2.0f, 3.0f, 1.0f}).realize();
  const auto f = jit([&](const Tensor& y) {
    const auto [value, place] = x.topk(0);
    return std::vector<Tensor>{place.contiguous(), value.cos(), y + 1};
  });
  for (int call = 0; call < 5; ++call)
    EXPECT_EQ(f(Tensor::from({call}).cast(DType::F32))[2].item<float>(), call + 1);
}

TEST(Regressions, AChoiceBetweenHalvesIsWidenedOnTheCpu) {
  const Tensor c = Tensor::from({2}).cast(DType::F16).realize().reshape({});
  const Tensor zeros = Tensor::zeros({3, 3}).cast(DType::F64);
  EXPECT_THAT((c > 0).where(c, zeros * 2).to_vector<double>(), Each(2.0));
}

TEST(Regressions, BitsOfSmallConstantsAreTheirOwn) {
  const Tensor x = Tensor::full({}, -1, DType::I16), one = Tensor::from({1}).cast(DType::I16);
  EXPECT_EQ((x.bitcast(DType::F16) != 0.0).item<bool>(), true);
  EXPECT_EQ((one.realize() * 15360).bitcast(DType::F16).item<float>(), 1.0f);
}

// A node made of constants only is shared by tensors of all devices.
TEST(Regressions, ConstantsOfSeveralDevicesDoNotMix) {
  const auto doubled = [](const char* device) {
    return (Tensor::arange(5, {}, device) * 2).contiguous();
  };
  const Tensor there = doubled("REFERENCE").realize(), x = Tensor::from({1, 2, 3, 4, 5}, "CPU");
  EXPECT_THAT((doubled("CPU") + x).to_vector<int>(), ElementsAre(1, 4, 7, 10, 13));
  const Tensor here = doubled("CPU").realize();
  EXPECT_EQ(here.device(), "CPU");
  EXPECT_EQ(there.device(), "REFERENCE");
  EXPECT_THAT((doubled("CPU") + there.to("CPU")).to_vector<int>(), ElementsAre(0, 4, 8, 12, 16));
  EXPECT_THAT((there + x.to("REFERENCE")).to_vector<int>(), ElementsAre(1, 4, 7, 10, 13));
}

// Collecting made the value of such a node a stored one, on the device where it happened to be.
TEST(Regressions, CollectingLeavesConstantsWithoutADevice) {
  const auto doubled = [] { return Tensor::arange(5) * 2; };
  Device::set_default_device("CPU");
  Tensor here = doubled();
  const Tensor reader = here + 1;  // keeps the node when `here` is cut from it
  here.realize();
  Device::set_default_device("REFERENCE");
  const Tensor there = doubled() + Tensor::from({1, 2, 3, 4, 5});
  engine::Session::current().collect();
  EXPECT_THAT(there.to_vector<int>(), ElementsAre(1, 4, 7, 10, 13));
  EXPECT_THAT(reader.to_vector<int>(), ElementsAre(1, 3, 5, 7, 9));
  Device::set_default_device({});
}

TEST(Regressions, FunctionsWithNothingToDoGiveAHandleOfTheirOwn) {
  const auto keeps_its_argument = [](auto f) {
    Tensor x = Tensor::from({1, 2, 3});
    Tensor y = f(x);
    y += 10;
    EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 2, 3));
  };
  keeps_its_argument([](const Tensor& x) { return x.floor(); });
  keeps_its_argument([](const Tensor& x) { return x.trunc(); });
  keeps_its_argument([](const Tensor& x) { return x.pow(1); });
  keeps_its_argument([](const Tensor& x) { return x.roll(0, 0); });
  keeps_its_argument([](const Tensor& x) { return x.dropout(0.5, false); });
  keeps_its_argument([](const Tensor& x) { return x.cast(DType::I32); });
  keeps_its_argument([](const Tensor& x) { return cat({x}); });
}

// Rows longer than one Reduce scans, and lookups added at indices.
TEST(Regressions, ScansAndSumsAtPlaces) {
  const Tensor rows = (Tensor::arange(2 * 90) * 37 % 11 - 5).reshape({2, 90});
  const Tensor places = Tensor::arange(900) * 7 % 100;
  const std::vector<Tensor> made = {
      rows.cumsum(1), rows.cummin(1).second, rows.cummax(1).first, rows.cast(DType::F32).cumprod(1),
      Tensor::zeros({100}).scatter_reduce(0, places, (places * 0.25), Combine::Sum)};
  for (const Tensor& t : made) {
    engine::TensorState* const state = tensor::state_of(t).get();
    const oracle::Measured want = oracle::evaluate_measured(std::span(&state, 1))[0];
    const oracle::Array got = oracle::from_bytes(t.dtype(), t.shape(), t.to_bytes());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got.real(i), want.value.real(i), 2 * want.error_of(i)) << t << ", element " << i;
  }
}

}  // namespace
}  // namespace plugrad::programs
