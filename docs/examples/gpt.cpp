// A transformer that learns a text letter by letter and generates a continuation.
//
// The parts of a large language model at small size: an embedding turns letters into vectors,
// blocks of attention and a two-layer network transform the vectors, and the last vector of each
// position predicts the next letter. Run `pgr_example_gpt 600` for more steps than the test takes.
#include "parallel/gpt.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
using namespace gpt;

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 240;
  Tensor::manual_seed(1);
  Pieces pieces;
  const int64_t letters = pieces.letters();

  Gpt net(letters);
  optim::AdamW opt(nn::parameters(net), {.lr = 3e-3, .weight_decay = 0.01});
  const optim::Schedule rate =
      optim::warm_up(optim::cosine_rate(3e-3, steps, 3e-4), steps / 10 + 1);
  float loss_value = std::log(static_cast<float>(letters)), first = loss_value;  // of a blind guess
  for (int64_t step = 0; step < steps; ++step) {
    const auto [x, y] = pieces.next();
    opt.set_learning_rate(rate(step));
    opt.zero_grad();
    const Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    optim::clip_grad_norm(opt.parameters(), 1.0);
    opt.step();
    loss_value = loss.item<float>();
    if (step == 0) first = loss_value;
    if (step % 20 == 0) std::cout << "step " << step << ": loss " << loss_value << std::endl;
  }
  std::cout << "loss " << first << " -> " << loss_value << "\n";

  // The generated text starts with the beginning of the training text. The window always has
  // kContext letters, so that all letters use the same kernels. The temperature is 0.5.
  const nn::TrainingScope evaluation(false);
  std::vector<int32_t> window(pieces.numbers.begin(), pieces.numbers.begin() + kContext);
  std::string made;
  for (int i = 0; i < 60; ++i) {
    const Tensor scores = net(Tensor::from(window, {1, kContext}))[{0, -1}];
    const auto next = (scores / 0.5).softmax().multinomial(1).item<int32_t>();
    window.erase(window.begin());
    window.push_back(next);
    made += pieces.alphabet[static_cast<size_t>(next)];
  }
  std::cout << pieces.text.substr(0, kContext) << "|" << made << "\n";
  return loss_value < 0.8f ? 0 : 1;  // a letter is then guessed with probability exp(-0.8), 0.45
}
