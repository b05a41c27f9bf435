// The same functions, computed by the default device in f32 instead of the evaluator.
#include <thread>

#include "plugrad/device.h"
#include "plugrad/no_grad.h"
#include "vectors.h"

namespace plugrad {
namespace {

std::vector<double> computed(const Tensor& t) {
  return t.to_vector<double>();
}

TEST(OnTheDevice, ElementwiseFunctions) {
  for (const vectors::Unary& v : vectors::kUnary) {
    SCOPED_TRACE(v.text);
    const Tensor x = Tensor::from(v.x), y = v.function(x), flow = gradient(y.sum(), {x})[0];
    try {
      Tensor::realize(std::vector{y, flow});
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    expect_near(computed(y), v.y, 2e-6, 5e-5, v.text);
    expect_near(computed(flow), v.gradient, 3e-6, 1e-4, std::string("gradient of ") + v.text);
  }
}

TEST(OnTheDevice, Functions) {
  for (const vectors::Shaped& v : vectors::kShaped) {
    SCOPED_TRACE(v.text);
    const Tensor x = wave(std::sin, v.x, 0.1, 0.7).cast(DType::F32).realize(), y = v.function(x);
    const Tensor flow = gradient((y * cosine(y.shape())).sum(), {x})[0];
    try {
      Tensor::realize(std::vector{y, flow});
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    expect_near(computed(y), v.y, 3e-6, 1e-5, v.text);
    expect_near(computed(flow), v.gradient, 1e-5, 1e-4, std::string("gradient of ") + v.text);
  }
}

TEST(Scopes, WithoutGradients) {
  Tensor x = Tensor::from({1.0f, 2.0f}).requires_grad_();
  Tensor seen, from_numbers;
  {
    const NoGradScope scope;
    EXPECT_FALSE(is_grad_enabled());
    seen = (x * 3).relu();
    from_numbers = Tensor::arange(0.5, 2.5);  // its bounds stay numbers
    Tensor leaf = Tensor::from({1.0f});
    EXPECT_TRUE(leaf.requires_grad_().requires_grad());
  }
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_EQ(computed(seen), (std::vector<double>{3, 6}));
  EXPECT_EQ(computed(from_numbers), (std::vector<double>{0.5, 1.5}));
  (x * x + seen).sum().backward();  // nothing flows through `seen`
  EXPECT_EQ(computed(x.grad()), (std::vector<double>{2, 4}));
}

TEST(Scopes, DefaultDeviceOfAThread) {
  const std::string before = Device::default_device();
  {
    const DeviceScope scope("REFERENCE");
    EXPECT_EQ(Tensor::ones({2}).device(), "REFERENCE");
    std::string elsewhere;
    std::thread([&] { elsewhere = Tensor::ones({2}).device(); }).join();
    EXPECT_EQ(elsewhere, before);
    EXPECT_EQ(computed(Tensor::ones({2}) + 1), (std::vector<double>{2, 2}));
  }
  EXPECT_EQ(Device::default_device(), before);
  EXPECT_THROW(DeviceScope("NOWHERE"), Error);
  EXPECT_EQ(Device::default_device(), before);
}

}  // namespace
}  // namespace plugrad
