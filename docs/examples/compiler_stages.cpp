// Prints one expression at each stage: nodes, planned kernels, compiled kernels, values.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  const Tensor x = Tensor::from({1, 2, 3, 4}).realize();
  const Tensor y = (x + 3 + 4) * 1;

  // 1. The recorded graph. Nothing has run.
  std::cout << "recorded:\n" << y.uop();

  // 2. The planned kernels: constants are folded, the loop is explicit.
  for (const Kernel& kernel : y.kernelize()) {
    std::cout << "\nplanned: " << kernel;
    for (const KernelRange& range : kernel.ranges())
      std::cout << "loop " << range.axis << " of " << range.size << "\n";
  }

  // 3. The compiled kernels: the loop is vectorised; the source is in the device's language.
  for (const Kernel& kernel : y.schedule())
    std::cout << "\ncompiled as " << kernel.name() << ": " << kernel.optimisations() << "\n"
              << kernel.source();

  // 4. The values.
  for (int value : y.to_vector<int>()) std::cout << value << " ";  // 8 9 10 11
  std::cout << "\n";
}
