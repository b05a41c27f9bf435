// Learns exclusive or from ten samples with two layers until the loss is below 0.001.
//
// The classes are not linearly separable, so one layer cannot learn them; a hidden layer can. The
// loop is the usual training loop: forward, backward, step.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

int main() {
  Tensor::manual_seed(3);
  // Corners of a square, and points near them.
  const Tensor x = Tensor::from<float>({{0, 0},
                                        {0, 1},
                                        {1, 0},
                                        {1, 1},
                                        {0.1f, 0.1f},
                                        {0.1f, 0.9f},
                                        {0.9f, 0.1f},
                                        {0.9f, 0.9f},
                                        {0, 0.2f},
                                        {0.8f, 1}});
  const Tensor y = Tensor::from<float>({0, 1, 1, 0, 0, 1, 1, 0, 0, 0}).reshape({10, 1});
  nn::Sequential net(nn::Linear(2, 16), relu, nn::Linear(16, 1));
  optim::Adam opt(nn::parameters(net), {.lr = 0.03});

  float loss_value = 1;
  int step = 0;
  for (; step < 1000 && loss_value >= 0.001f; ++step) {
    opt.zero_grad();
    const Tensor loss = binary_crossentropy_logits(net(x), y);
    loss.backward();
    opt.step();
    loss_value = loss.item<float>();
  }
  const bool right = ((net(x) > 0) == (y > 0.5)).all().item<bool>();
  std::cout << "loss " << loss_value << " after " << step << " steps, all right: " << right << "\n";
  return loss_value < 0.001f && right ? 0 : 1;
}
