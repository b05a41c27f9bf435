// Factors and products of matrices: what defines them holds, on tall, wide, batched and empty ones.
#include "expect.h"

namespace plugrad {
namespace {

TEST(NewtonSchulz, TakesSingularValuesNearOne) {
  const Tensor x = cosine({2, 4, 6}) + Tensor::eye(4, 6, DType::F64);
  for (const Tensor& y : {newton_schulz(x), newton_schulz(x.transpose()).transpose()}) {
    const std::vector<double> gram = values(y.matmul(y.transpose()));
    for (size_t i = 0; i < gram.size(); ++i) {
      const bool diagonal = i % 16 % 5 == 0;
      EXPECT_NEAR(gram[i], diagonal ? 0.95 : 0.0, diagonal ? 0.5 : 0.35) << i;
    }
  }
  expect_values(newton_schulz(x, 0, {1.0}, 0.0) * x.square().sum({1, 2}, true).sqrt() - x,
                std::vector<double>(48, 0.0));
  // The classical cubic converges to the orthogonal factor itself.
  const Tensor q = newton_schulz(x, 30, {1.5, -0.5});
  expect_values(q.matmul(q.transpose()), values(Tensor::eye(4).expand({2, 4, 4})), 1e-5);
}

TEST(NewtonSchulz, RejectsWhatIsNoMatrix) {
  EXPECT_EQ(error_of([] { newton_schulz(Tensor::zeros({3})); }),
            "[newton_schulz] shape (3,) has fewer than two axes");
  EXPECT_EQ(error_of([] { newton_schulz(Tensor::zeros({3, 3}, DType::I32)); }),
            "[newton_schulz] takes floats, not i32; cast it");
  EXPECT_EQ(error_of([] { newton_schulz(Tensor::zeros({3, 3}), 1, {}); }),
            "[newton_schulz] no coefficients are given");
}

}  // namespace
}  // namespace plugrad
