#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

struct Net {
  nn::Conv2d c1{1, 32, 5}, c2{32, 32, 5}, c3{32, 64, 3}, c4{64, 64, 3};
  nn::BatchNorm n1{32}, n2{64};
  nn::Linear out{576, 10};
  PLUGRAD_FIELDS(c1, c2, c3, c4, n1, n2, out)

  Tensor operator()(const Tensor& x) {
    Tensor h = n1(relu(c2(relu(c1(x))))).max_pool2d(2);
    return out(n2(relu(c4(relu(c3(h))))).max_pool2d(2).flatten(1));
  }
};

int main() {
  auto [train, test] = data::mnist();  // finds, fetches, checks; says what it does
  Net net;
  optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
  auto step = jit([&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  });
  for (auto [x, y] : progress(train.batches(512, {.shuffle = true, .seed = 1}))) step(x, y);
  nn::save(net, "net.safetensors");
  std::cout << nn::accuracy(net, test) << "\n";
}
