#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

struct Net {
  nn::Linear hidden{2, 16}, out{16, 2};
  // Names the entries of the state dictionary; no other registration is needed.
  PLUGRAD_FIELDS(hidden, out)

  Tensor operator()(const Tensor& x) { return out(relu(hidden(x))); }
};

int main() {
  Tensor::manual_seed(1);
  Tensor x = Tensor::from<float>({{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  Tensor y = Tensor::from<int>({0, 1, 1, 0});  // exclusive or
  Net net;
  optim::Adam opt(nn::parameters(net), {.lr = 0.05});
  auto step = jit([&](const Tensor& in, const Tensor& out) {  // runs twice, then it is replayed
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(in), out);
    loss.backward();
    opt.step();
    return loss;
  });
  double loss_value = 0;
  for (int i = 0; i < 100; ++i) loss_value = step(x, y).item<double>();
  nn::save(net, "xor.safetensors");

  Net copy;
  nn::load(copy, "xor.safetensors");
  bool right = (copy(x).argmax(1) == y).all().item<bool>();
  std::cout << "loss " << loss_value << ", all right: " << right << "\n";
  return right ? 0 : 1;
}
