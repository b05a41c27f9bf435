// The three kinds of operation and their cost. Elementwise operations fuse into the kernel that
// reads them, movement is free, and a reduction ends a kernel.
#include <plugrad/plugrad.h>

#include <iomanip>
#include <iostream>
using namespace plugrad;

namespace {

Tensor stored(const Shape& shape) {
  return Tensor::rand(shape).realize();
}

void show(const char* what, const Tensor& t) {
  std::cout << std::left << std::setw(56) << what << t.schedule().size() << "\n";
}

}  // namespace

int main() {
  Tensor x = stored({64, 32}), y = stored({64, 32}), w = stored({32, 16});
  std::cout << "kernels\n";

  // Elementwise: any number of operations is one kernel.
  show("x + y", x + y);
  show("((x * y + 1).relu() - y).exp()", ((x * y + 1).relu() - y).exp());
  show("where(x > 0.5, x, -y)", where(x > 0.5, x, -y));

  // Movement: a view indexes the same elements in another way.
  show("x.transpose().reshape({8, 256})", x.transpose().reshape({8, 256}));
  show("x[{Slice(8, 40, 2), 3}]", x[{Slice(8, 40, 2), 3}]);
  show("x.transpose() + 1   (movement inside a kernel)", x.transpose() + 1);
  show("cat({x, y}) * 2     (joining is a condition)", cat({x, y}) * 2);

  // Reduction: elementwise work before and after it joins its kernel …
  show("x.sum()", x.sum());
  show("(x * y).relu().sum(1)", (x * y).relu().sum(1));
  show("relu(matmul(x, w) + 1)", relu(matmul(x, w) + 1));
  // … unless several consumers need its result: x / sum reads every sum 32 times.
  show("x / x.sum(1, true)", x / x.sum(1, true));
  show("x.softmax()         (a maximum, a sum, a division)", x.softmax());

  // Repeating elements along an axis gives an outer product; summing it gives a matrix product.
  Tensor product = (x.reshape({64, 32, 1}) * w.reshape({1, 32, 16})).sum(1);
  show("expand, multiply, sum", product);
  std::cout << "the same as matmul: " << (product - matmul(x, w)).abs().max().item<float>() << "\n";

  // Each intermediate realize() costs a kernel and a pass through memory.
  Tensor a = stored({1024}), b = stored({1024});
  show("(a + b).relu().sum()", (a + b).relu().sum());
  size_t steps = 0;
  Tensor t = a + b;
  for (int step = 0; step < 3; ++step) {
    steps += t.schedule().size();
    t.realize();
    t = step == 0 ? t.relu() : t.sum();
  }
  std::cout << "the same, realised after each step: " << steps << "\n";
}
