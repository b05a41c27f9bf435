// Gradients, checked by finite differences.
#include <plugrad/plugrad.h>

#include <cmath>
#include <functional>
#include <iostream>
using namespace plugrad;

namespace {

/// The largest difference between the gradient of f(x).sum() and (f(x + h) - f(x - h)) / 2h.
double disagreement(const std::function<Tensor(const Tensor&)>& f, std::vector<double> x) {
  Tensor input = Tensor::from(x).requires_grad_();
  const std::vector<double> exact = gradient(f(input).sum(), {input})[0].to_vector<double>();
  constexpr double kStep = 1e-6;
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = f(Tensor::from(x)).sum().item<double>();
    x[i] = at - kStep;
    const double below = f(Tensor::from(x)).sum().item<double>();
    x[i] = at;
    worst = std::max(worst, std::abs((above - below) / (2 * kStep) - exact[i]));
  }
  return worst;
}

}  // namespace

int main() {
  // backward() accumulates into grad() of every leaf that requires a gradient.
  Tensor x = Tensor::from({2.0}).requires_grad_();
  (x * x + 3 * x + 1).sum().backward();
  std::cout << x.grad().item<double>() << "\n";  // 2x + 3 = 7

  // Control flow is C++'s: autograd differentiates the branch that ran.
  Tensor z = Tensor::from({3.0}).requires_grad_();
  Tensor y = z.item<double>() > 0 ? z * z : -z;
  std::cout << gradient(y.sum(), {z})[0].item<double>() << "\n";  // 6

  // The gradient of a broadcast leaf is summed over the broadcast axes.
  Tensor bias = Tensor::zeros({3}, DType::F64).requires_grad_();
  (Tensor::ones({4, 3}, DType::F64) + bias).sum().backward();
  std::cout << bias.grad().to_vector<double>()[0] << "\n";  // 4

  // gradient() is a function of tensors, so it can be differentiated again: x³, 3x², 6x.
  Tensor v = Tensor::from({2.0}).requires_grad_();
  Tensor slope = gradient((v * v * v).sum(), {v})[0];
  std::cout << slope.item<double>() << " " << gradient(slope.sum(), {v})[0].item<double>() << "\n";

  // Every derivative rule can be checked like this; the tests do so for every function.
  const std::vector<double> points = {-1.7, -0.4, 0.3, 1.1, 2.6};
  double worst = 0;
  worst = std::max(worst, disagreement([](const Tensor& t) { return (t * t).sin(); }, points));
  worst = std::max(worst, disagreement([](const Tensor& t) { return t.sigmoid().log(); }, points));
  worst = std::max(worst, disagreement([](const Tensor& t) { return t.softmax() * t; }, points));
  worst = std::max(worst, disagreement([](const Tensor& t) { return t.cumsum(0).tanh(); }, points));
  std::cout << "gradients agree with differences: " << std::boolalpha << (worst < 1e-7) << "\n";
}
