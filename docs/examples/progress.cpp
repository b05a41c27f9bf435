// A training whose loss and accuracy can be watched in a browser: open train.html.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

struct Net {
  nn::Linear hidden{2, 16}, out{16, 2};
  PLUGRAD_FIELDS(hidden, out)

  Tensor operator()(const Tensor& x) { return out(relu(hidden(x))); }
};

int main() {
  Tensor::manual_seed(1);
  Tensor x = Tensor::from<float>({{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  Tensor y = Tensor::from<int>({0, 1, 1, 0});
  Net net;
  optim::Adam opt(nn::parameters(net), {.lr = 0.05});
  auto step = jit([&](const Tensor& in, const Tensor& out) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(in), out);
    loss.backward();
    opt.step();
    return loss;
  });
  const int steps = 200;
  optim::Progress progress(steps, {.title = "xor", .units_a_step = 4, .plot = "train.html"});
  for (int i = 0; i < steps; ++i) progress.update(step(x, y).item<double>());
  progress.add_test_accuracy((net(x).argmax(1) == y).mean().item<double>());
  std::cout << "train.html shows " << steps << " steps\n";
}
