// A recurrent network that predicts the next letter of a text: an embedding, an LSTM cell called
// once per position, and a linear layer. Trained with Adam on changing pieces of the text.
#include <plugrad/plugrad.h>

#include "formula.h"
#include "recorded.h"
using namespace plugrad;

constexpr int64_t kBatch = 8, kPlaces = 24, kLetters = 40, kWidth = 24, kHidden = 32;
constexpr int kSteps = 12;

struct LetterModel {
  nn::Embedding letter{kLetters, kWidth};
  nn::LSTMCell cell{kWidth, kHidden};
  nn::Linear out{kHidden, kLetters};
  PLUGRAD_FIELDS(letter, cell, out)

  // Shape: (n, positions) letter indices -> (n, positions, kLetters) logits.
  Tensor operator()(const Tensor& letters) const {
    const Tensor x = letter(letters);
    nn::LSTMCell::State state;
    std::vector<Tensor> states;
    for (int64_t t = 0; t < letters.size(1); ++t) {
      state = cell(x[{Slice(), t}], state);
      states.push_back(state.h);
    }
    return out(stack(states, 1));
  }
};

void train(bool use_jit, programs::Recorded& recorded) {
  const std::string kind = use_jit ? "jitted" : "not jitted";
  LetterModel net;
  programs::set_parameters(net);
  optim::Adam opt(nn::parameters(net), {.lr = 0.01});
  const auto step = [&](const Tensor& text, const Tensor& next) {
    opt.zero_grad();
    const Tensor loss = sparse_categorical_crossentropy(net(text), next);
    loss.backward();
    const Tensor norm = optim::clip_grad_norm(opt.parameters(), 0.5);
    opt.step();
    return std::vector<Tensor>{loss, norm};
  };
  auto jitted = jit(step);

  std::vector<double> losses, norms;
  programs::StepTimes times;
  for (int i = 0; i < kSteps; ++i) {
    const Tensor text = programs::integers({kBatch, kPlaces + 1}, 10 + i, kLetters);
    const Tensor x = text.slice(1, Slice(0, kPlaces)), y = text.slice(1, Slice(1, {}));
    const std::vector<Tensor> result = use_jit ? jitted(x, y) : step(x, y);
    losses.push_back(result[0].item<double>());
    norms.push_back(result[1].item<double>());
    times.step_done();
    if (i == 0)
      recorded.compare(kind + ", clipped gradients of step 1", "gradients",
                       programs::gradient_norms(opt.parameters()), 1e-4);
  }
  times.print(kind);
  recorded.compare(kind + ", losses", "losses", losses, 1e-5);
  recorded.compare(kind + ", norms of all gradients", "norms", norms, 1e-4);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: lstm RECORDED.txt\n", 2;
  programs::Recorded recorded(argv[1]);
  train(false, recorded);
  train(true, recorded);
  return recorded.failures();
}
