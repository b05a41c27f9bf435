#include "expect.h"
#include "vectors.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

TEST(Elementwise, ValuesAndGradientsAgreeWithPyTorch) {
  for (const vectors::Unary& v : vectors::kUnary) {
    const Tensor x = Tensor::from(v.x), y = v.function(x);
    expect_near(values(y), v.y, 1e-6, 2e-5, v.text);
    expect_near(values(gradient(y.sum(), {x})[0]), v.gradient, 2e-6, 1e-4, std::string("gradient of ") + v.text);
  }
}

}  // namespace
}  // namespace plugrad
