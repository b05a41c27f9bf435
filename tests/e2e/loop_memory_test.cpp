// User-written loops use as much memory in late iterations as in early ones: values, plans,
// kernels.
#include <gtest/gtest.h>
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cmath>

#include "base/settings.h"
#include "engine/session.h"

using namespace plugrad;

namespace {

/// The maximum over some consecutive iterations.
struct Held {
  uint64_t values = 0, value_bytes = 0, plans = 0, kernels = 0;
  bool is_within(const Held& other) const {
    // Garbage is dropped when that costs little beside making it, so up to 50 values of 2 KiB may
    // wait; a leak of one value of each iteration would be 250.
    constexpr uint64_t kWaiting = 50, kBytes = 2048;
    return values <= other.values + kWaiting &&
           value_bytes <= other.value_bytes + kWaiting * kBytes && plans <= other.plans &&
           kernels <= other.kernels;
  }
  void take(const engine::Statistics& now) {
    values = std::max(values, now.live_values);
    value_bytes = std::max(value_bytes, now.value_bytes);
    plans = std::max(plans, now.plans_kept);
    kernels = std::max(kernels, now.kernels_kept);
  }
};
std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << held.values << " values of " << held.value_bytes << " bytes, " << held.plans
             << " plans, " << held.kernels << " kernels";
}

/// Garbage collection is triggered by allocations and graph growth: a value may outlive its last
/// use by some iterations.
template <class Step>
void expect_flat(Step step) {
  Held early, late;
  engine::Session& session = engine::Session::current();
  for (int i = 0; i < 500; ++i) {
    step(i);
    if (i >= 50 && i < 250) early.take(session.statistics());
    if (i >= 300) late.take(session.statistics());
  }
  EXPECT_TRUE(late.is_within(early)) << "late: " << late << ", early: " << early;
  EXPECT_LE(late.values, 250u);
}

Tensor weights() {
  return (Tensor::arange(512, DType::F32) * 1e-3).contiguous().requires_grad_();
}
Tensor realised(const Tensor& tensor) {
  tensor.realize();
  return tensor;
}
Tensor zeros() {
  return realised(Tensor::zeros({512}).contiguous());
}

float item(const Tensor& tensor) {
  return tensor.item<float>();
}

TEST(LoopMemory, WeightsByAssignment) {
  Tensor w = realised(weights());
  expect_flat([&](int) {
    const Tensor loss = (w * 2.0).tanh().square().sum();
    loss.backward();
    w.assign(w.detach() - w.grad() * 1e-3);
    w.zero_grad();
    item(loss);
  });
  EXPECT_LT(item(w.square().sum()), item(weights().square().sum()));
}

TEST(LoopMemory, AnAverageAndATotalOfDetachedValues) {
  Tensor w = realised(weights()), average = zeros();
  Tensor total = zeros();
  expect_flat([&](int i) {
    const Tensor h = (w * 2.0).tanh(), loss = h.square().sum();
    loss.backward();
    w.assign(w.detach() - w.grad() * 1e-3);
    average.assign(average * 0.9 + h.detach() * 0.1);
    total = total * 0.99 + h.detach();
    if (i % 5 == 0) item(average.sum());
    item(loss);
    item(total.sum());
    w.zero_grad();
  });
}

// The average is read only after the loop.
TEST(LoopMemory, AnAverageThatIsReadAtTheEnd) {
  Tensor x = zeros(), average = zeros();
  expect_flat([&](int) {
    x.assign(x + 1);
    average.assign(average * 0.5 + x * 0.5);
    item(x.sum());
  });
  double expected = 0;
  for (int i = 1; i <= 500; ++i) expected = 0.5 * expected + 0.5 * i;
  EXPECT_NEAR(average.to_vector<float>()[100], expected, 1e-3);
}

// A momentum is computed after a newer one exists.
TEST(LoopMemory, AMomentumByANewTensor) {
  Tensor w = realised(weights());
  Tensor momentum = zeros();
  expect_flat([&](int) {
    const Tensor loss = (w * 2.0).tanh().square().sum();
    loss.backward();
    momentum = momentum * 0.9 + w.grad();
    w.assign(w.detach() - momentum * 1e-4);
    w.zero_grad();
    item(loss);
  });
}

TEST(LoopMemory, GradientsThatAddUp) {
  Tensor w = realised(weights());
  expect_flat([&](int) {
    const Tensor loss = (w * 2.0).tanh().square().sum();
    loss.backward();
    w.assign(w.detach() - w.grad() * 1e-6);
    item(loss);
  });
}

// Constants have no device until they are assigned.
TEST(LoopMemory, WeightsThatBeginAsConstants) {
  Tensor w = weights();
  Held all;
  engine::Session::current().clear_caches();
  for (int i = 0; i < 500; ++i) {
    const Tensor loss = (w * 2.0).tanh().square().sum();
    loss.backward();
    w.assign(w.detach() - w.grad() * 1e-3);
    w.zero_grad();
    item(loss);
    all.take(engine::Session::current().statistics());
  }
  EXPECT_LE(all.values, 80u);
  EXPECT_LE(all.plans, 30u);
}

// Each read computes more constants, until the total is stored.
TEST(LoopMemory, TotalsThatBeginAsConstants) {
  engine::Session& session = engine::Session::current();
  const Tensor x = realised(Tensor::ones({512}).contiguous());
  Tensor total = Tensor::zeros({512}), count(0.0f);
  const auto read = [&](int i) {
    total = total + 1;
    count = count + 2;
    EXPECT_EQ(item(total.sum()), 512.0f * static_cast<float>(i));
    EXPECT_EQ(item((x * count).sum()), 1024.0f * static_cast<float>(i));
  };
  for (int i = 1; i <= 20; ++i) read(i);
  const uint64_t before = session.statistics().plans_made;
  for (int i = 21; i <= 60; ++i) read(i);
  EXPECT_EQ(session.statistics().plans_made, before);
}

engine::Statistics after_numbers_of_the_host(int count) {
  const Tensor x = weights();
  engine::Session::current().clear_caches();
  for (int i = 0; i < count; ++i) item((x.detach() + 0.5 * i).sum());
  return engine::Session::current().statistics();
}

// Without kernels that take it, each number gives a separate kernel and plan; a bounded number of them
// is kept.
TEST(LoopMemory, ANumberOfTheHostThatChanges) {
  constexpr int kCount = 50;
  const SettingScope constants([](Settings& s) { s.lift = false; });
  const auto now = after_numbers_of_the_host(kCount);
  EXPECT_LE(now.plans_kept, kCount + 1u);
  EXPECT_LE(now.kept_bytes, kCount * (64u << 10));
  EXPECT_GE(now.kept_bytes, kCount * (8u << 10)) << "as many as fit are kept";
}

// For 0, 0.5 and 1, and for all later numbers.
TEST(LoopMemory, ANumberThatKernelsTake) {
  EXPECT_LE(after_numbers_of_the_host(50).plans_kept, 5u);
}

}  // namespace
