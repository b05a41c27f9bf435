// A user-defined loss, its gradient, and a check of the gradient.
//
// Huber's loss is quadratic near 0 and linear beyond delta, so that outliers do not dominate. It is
// written with ordinary functions; autograd needs nothing else. Source: Huber 1964.
#include <plugrad/plugrad.h>

#include <cmath>
#include <iostream>
using namespace plugrad;

Tensor huber(const Tensor& error, double delta) {
  const Tensor size = error.abs();
  return where(size <= delta, error.square() * 0.5, (size - 0.5 * delta) * delta);
}

int main() {
  const std::vector<double> errors = {-3.0, -1.0, -0.4, 0.0, 0.7, 1.5, 20.0};
  const double delta = 1.0, step = 1e-6;
  Tensor x = Tensor::from(errors).requires_grad_();
  const Tensor loss = huber(x, delta).sum();
  std::cout << "kernels of the loss: " << loss.schedule().size() << "\n";
  loss.backward();

  // Gradient by central differences in f64: (f(x + h) - f(x - h)) / 2h has an error of O(h²).
  const Tensor plus = huber(Tensor::from(errors) + step, delta);
  const Tensor minus = huber(Tensor::from(errors) - step, delta);
  const Tensor slope = (plus - minus) / (2 * step);
  for (size_t i = 0; i < errors.size(); ++i)
    std::cout << errors[i] << ": " << x.grad()[i].item<double>() << "\n";
  const double off = (x.grad() - slope).abs().max().item<double>();
  std::cout << "agrees with differences: " << (off < 1e-6) << "\n";
  return off < 1e-6 ? 0 : 1;
}
