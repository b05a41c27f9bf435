// Tensor basics: shape, dtype and device, and lazy evaluation.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  // A tensor has a shape, a dtype and a device. Printing it runs nothing.
  Tensor a = Tensor::from<float>({{1, 2, 3}, {4, 5, 6}});
  std::cout << a << "\n";  // Tensor(2, 3) f32 on CPU, realized

  // Operations only record. Tensors broadcast along axes of size 1.
  Tensor b = a * 2 + Tensor::from<float>({10, 20, 30});
  std::cout << b << "\n";  // Tensor(2, 3) f32 on CPU, lazy

  // Kernels needed to compute b: one, because multiply and add are fused.
  std::cout << b.schedule().size() << "\n";  // 1

  // Reading a value computes it; the value is kept, and reading it again runs nothing.
  std::cout << b[{1, 2}].item<float>() << "\n";  // 42
  b.realize();
  std::cout << b << ", " << b.schedule().size() << "\n";  // … realized, 0
  std::cout << to_string(b) << "\n";                      // [[12, 24, 36],
                                                          //  [18, 30, 42]]

  // C++ numbers are weakly typed: they take the tensor's dtype. Promotion never loses range.
  Tensor bytes = Tensor::from<uint8_t>({250, 251, 252});
  std::cout << name_of((bytes + 1).dtype()) << " " << name_of((bytes + 1.5).dtype()) << " "
            << name_of((bytes.cast(DType::F16) + 1.5).dtype()) << "\n";  // u8 f32 f16

  // A Tensor is a handle: copies denote the same tensor. Recorded operations keep the old value.
  Tensor copy = a, before = a.sum();
  a += 100;
  std::cout << copy[{0, 0}].item<float>() << " " << before.item<float>() << "\n";  // 101 21

  // Reductions take one axis, several axes or all; sizes of 0 are allowed.
  std::cout << b.max(0).to_vector<float>()[2] << " " << Tensor::zeros({0, 3}).sum().item<float>()
            << "\n";  // 42 0

  // An Error names the failed function, its arguments and a remedy.
  try {
    matmul(a, b);
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }
}
