// A program outside this tree: a layer, gradients, steps. Prints the device, whether the loss fell,
// and 9 = 3 + 6.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  nn::Linear layer(4, 2);
  optim::SGD optimizer(nn::parameters(layer), {.lr = 0.1});
  const Tensor x = Tensor::ones({8, 4}), target = Tensor::zeros({8, 2});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(relu(layer(x)) + layer(x), target);
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  const Tensor sum = Tensor::from({1.f, 2.f, 3.f}) + Tensor::from({4.f, 5.f, 6.f});
  std::cout << Device::default_device() << ' ' << (last < first) << ' ' << sum.to_vector<float>()[2]
            << '\n';
}
