// The same functions, computed by the default device in f32 instead of the evaluator.
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

}  // namespace
}  // namespace plugrad
