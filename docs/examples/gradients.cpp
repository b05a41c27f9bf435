#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  Tensor x = Tensor::from<float>({1, 2, 3}).requires_grad_();
  Tensor loss = (x * x).sum();
  loss.backward();
  std::cout << x.grad().to_vector<float>()[2] << "\n";  // 6

  Tensor z = Tensor::from<float>({2}).requires_grad_();
  Tensor first = gradient((z * z * z).sum(), {z})[0];  // 3 z^2, lazy
  Tensor second = gradient(first.sum(), {z})[0];       // 6 z
  std::cout << second.item<float>() << "\n";           // 12
}
