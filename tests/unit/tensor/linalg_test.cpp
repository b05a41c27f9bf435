// Matrix decompositions and products: their defining equations, on tall, wide, batched and empty
// ones.
#include "expect.h"

namespace plugrad {
namespace {

TEST(Einsum, SumsOfProducts) {
  const Tensor a = counting({2, 3}), b = counting({3, 4}, 1), v = counting({4}),
               c = counting({3, 3});
  expect_values(einsum("ij,jk->ik", {a, b}), values(a.matmul(b)));
  expect_values(einsum("ij, jk", {a, b}), values(a.matmul(b)));
  expect_values(einsum("ij,jk,k->i", {a, b, v}), values(a.matmul(b).matmul(v)));
  expect_values(einsum("ba", {a}), values(a.transpose()));
  expect_values(einsum("ii", {c}), {12});
  expect_values(einsum("ii->i", {c}), {0, 4, 8});
  expect_values(einsum("iji->j", {counting({2, 3, 2})}), {7, 11, 15});
  expect_values(einsum("iijj->ij", {counting({2, 2, 2, 2})}), {0, 3, 12, 15});
  expect_values(einsum("iii->", {counting({2, 2, 2})}), {7});
  expect_values(einsum("i,j->ji", {v, v})[3], {0, 3, 6, 9});
  expect_values(einsum("ij->", {a}), {15});
  expect_values(einsum("...ij,...jk->...ik", {counting({5, 1, 2, 3}), counting({7, 3, 4})}),
                values(counting({5, 1, 2, 3}).matmul(counting({7, 3, 4}))));
  EXPECT_EQ(einsum("...i", {counting({2, 3})}).shape(), (Shape{2, 3}));
  EXPECT_EQ(einsum("...i->i...", {counting({2, 4, 3})}).shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(einsum("i...->", {counting({2, 4, 3})}).shape(), Shape{});
  expect_values(einsum("i,i->i", {counting({1}, 2), v}), {0, 2, 4, 6});
  expect_values(einsum("ij,ij->ij", {a[Slice(0, 1)], a}), {0, 1, 4, 0, 4, 10});
  EXPECT_EQ(einsum("i->i", {Tensor::ones({3}, DType::F16)}).dtype(), DType::F16);
  expect_values(einsum("ij,jk->ik", {Tensor::zeros({2, 0}), Tensor::zeros({0, 2})}), {0, 0, 0, 0});
  expect_values(einsum(",i->i", {2.f, v}), {0, 2, 4, 6});
  expect_values(outer(v, v).sum(), {36});
  expect_values(inner(a, c), values(a.matmul(c.transpose())));
  expect_values(tensordot(a, c, 1), values(a.matmul(c)));
  expect_values(tensordot(counting({2, 3, 4}), counting({4, 3}), {2, 1}, {0, 1}),
                values(einsum("ijk,kj->i", {counting({2, 3, 4}), counting({4, 3})})));
}

TEST(Einsum, PointsAtWhatDoesNotParse) {
  const Tensor a = counting({2, 3});
  const auto error = [&](const char* pattern, std::vector<Tensor> operands) {
    return error_of([&] { einsum(pattern, operands); });
  };
  EXPECT_EQ(error("ij,jk->ik", {a}), "[einsum] \"ij,jk->ik\" names 2 operands, 1 are given");
  EXPECT_EQ(error("i1->i", {a}),
            "[einsum] a letter, a comma, ... or -> is expected\n  i1->i\n   ^");
  EXPECT_EQ(error("ij->ik", {a}), "[einsum] no operand has this\n  ij->ik\n       ^");
  EXPECT_EQ(error("ij->ii", {a}), "[einsum] the result names this twice\n  ij->ii\n       ^");
  EXPECT_EQ(error("ij->i->j", {a}), "[einsum] -> occurs twice\n  ij->i->j\n       ^");
  EXPECT_EQ(error("ij->i,j", {a}), "[einsum] the result is one term\n  ij->i,j\n       ^");
  EXPECT_EQ(error("ij,ij", {a, a.transpose()}),
            "[einsum] this axis has size 3 here and 2 before\n  ij,ij\n     ^");
  EXPECT_EQ(error("ij,ijk", {a, a}),
            "[einsum] 3 axes are named here, the operand is (2, 3)\n  ij,ijk\n     ^");
  EXPECT_EQ(error("ii", {a}), "[einsum] this axis has size 3 here and 2 before\n  ii\n   ^");
  EXPECT_EQ(error("i...j...", {a}), "[einsum] ... occurs twice\n  i...j...\n       ^");
  EXPECT_EQ(error("i", {a > 1}), "[einsum] 1 axes are named here, the operand is (2, 3)\n  i\n  ^");
}

/// u diag(s) vt, and the deviation of a matrix's columns from orthonormal ones.
Tensor product(const SVD& d) {
  const int64_t k = d.s.size(-1);
  return (d.u.slice(-1, {0, k}) * d.s.unsqueeze(-2)).matmul(d.vt.slice(-2, {0, k}));
}
double skewness(const Tensor& q) {
  const Tensor gram = q.transpose().matmul(q);
  return values((gram - Tensor::eye(q.size(-1), {}, q.dtype())).abs().max())[0];
}

TEST(QrAndSvd, AreFactors) {
  for (const Shape& shape : {Shape{5, 5}, {7, 4}, {3, 6}, {2, 3, 5, 4}, {1, 1}, {1, 3}, {3, 1}})
    for (bool full : {false, true}) {
      const Tensor x = cosine(shape) * 3.0;
      const QR f = qr(x, full);
      expect_values(f.q.matmul(f.r), values(x), 1e-12);
      EXPECT_LT(skewness(f.q), 1e-12);
      EXPECT_EQ(values(f.r), values(f.r.triu()));
      const SVD d = svd(x, full);
      expect_values(product(d), values(x), 1e-11);
      EXPECT_LT(skewness(d.u), 1e-12);
      EXPECT_LT(skewness(d.vt.transpose()), 1e-12);
      const int64_t n = shape[shape.size() - 2], m = shape.back(), k = std::min(n, m);
      EXPECT_EQ(d.u.size(-1), full ? n : k);
      EXPECT_EQ(d.vt.size(-2), full ? m : k);
      EXPECT_EQ(f.r.size(-2), full ? n : k);
      if (k > 1) {
        const Tensor falls = d.s.slice(-1, {0, k - 1}) >= d.s.slice(-1, {1, k});
        EXPECT_EQ(values(falls.all())[0], 1.0);
      }
    }
}

TEST(QrAndSvd, OfSingularHugeAndEmptyMatrices) {
  const Tensor column = cosine({4, 1}), low = column.matmul(sine({1, 3}));
  for (const Tensor& x : {low, Tensor::zeros({4, 3}, DType::F64), low * 1e200, low * 1e-200}) {
    const SVD d = svd(x);
    const double most = values(x.abs().max())[0];
    expect_values(product(d), values(x), 1e-12 * most);
    EXPECT_LT(skewness(d.u), 1e-12);
    EXPECT_LT(skewness(qr(x, true).q), 1e-12);
  }
  EXPECT_EQ(svd(Tensor::zeros({3, 0})).u.shape(), (Shape{3, 3}));
  EXPECT_EQ(qr(Tensor::zeros({0, 2})).r.shape(), (Shape{0, 2}));
  const Tensor bad = Tensor::from({{1., std::nan("")}, {2., 3.}});
  for (double s : values(svd(bad).s)) EXPECT_TRUE(std::isnan(s));
  EXPECT_EQ(qr(Tensor::ones({2, 2}, DType::F16)).q.dtype(), DType::F16);
  EXPECT_EQ(error_of([] { svd(Tensor::zeros({3})); }), "[svd] shape (3,) has fewer than two axes");
  EXPECT_EQ(error_of([] { qr(Tensor::zeros({3, 3}, DType::I32)); }),
            "[qr] takes floats, not i32; cast it");
}

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
