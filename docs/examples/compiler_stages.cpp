// One expression on its way: nodes, kernels as planned, kernels as compiled, numbers.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  const Tensor x = Tensor::from({1, 2, 3, 4}).realize();
  const Tensor y = (x + 3 + 4) * 1;

  // 1. What was recorded. Nothing has run.
  std::cout << "recorded:\n" << y.uop();

  // 2. What will run: constants are folded, the loop is explicit.
  for (const Kernel& kernel : y.kernelize()) {
    std::cout << "\nplanned: " << kernel;
    for (const KernelRange& range : kernel.ranges())
      std::cout << "loop " << range.axis << " of " << range.size << "\n";
  }

  // 3. How it runs: the loop became a vector; the source is the device's own language.
  for (const Kernel& kernel : y.schedule())
    std::cout << "\ncompiled as " << kernel.name() << ": " << kernel.optimisations() << "\n"
              << kernel.source();

  // 4. The numbers.
  for (int value : y.to_vector<int>()) std::cout << value << " ";  // 8 9 10 11
  std::cout << "\n";
}
