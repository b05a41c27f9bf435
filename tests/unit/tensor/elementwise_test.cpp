#include "vectors.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

TEST(Elementwise, ValuesAndGradientsAgreeWithPyTorch) {
  for (const vectors::Unary& v : vectors::kUnary) {
    const Tensor x = Tensor::from(v.x).requires_grad_(), y = v.function(x);
    expect_near(values(y), v.y, 1e-6, 2e-5, v.text);
    expect_near(values(gradient(y.sum(), {x})[0]), v.gradient, 2e-6, 1e-4,
                std::string("gradient of ") + v.text);
  }
}

TEST(Functions, ValuesAndGradientsAgreeWithPyTorch) {
  for (const vectors::Shaped& v : vectors::kShaped) {
    const Tensor x = wave(std::sin, v.x, 0.1, 0.7).requires_grad_(), y = v.function(x);
    EXPECT_EQ(y.shape(), v.y_shape) << v.text;
    EXPECT_EQ(y.dtype(), DType::F64) << v.text;
    expect_near(values(y), v.y, 1e-8, 1e-7, v.text);
    const Tensor flow = gradient((y * cosine(y.shape())).sum(), {x})[0];
    expect_near(values(flow), v.gradient, 1e-8, 1e-6, std::string("gradient of ") + v.text);
  }
}

}  // namespace
}  // namespace plugrad
