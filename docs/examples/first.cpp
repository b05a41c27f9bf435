#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  Tensor a = Tensor::rand({512, 512}), b = Tensor::rand({512, 512});
  Tensor y = relu(matmul(a, b) + 1.0).mean(1);   // recorded, nothing has run
  std::cout << y << "\n";                        // Tensor(512) f32 on CPU, lazy
  std::cout << y.to_vector<float>()[0] << "\n";  // now kernels are made, compiled and run
  for (const Kernel& k : (a + b).relu().sum().schedule()) std::cout << k.source() << "\n";
}
