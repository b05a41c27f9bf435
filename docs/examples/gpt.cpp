// A transformer that learns a text letter by letter and generates a continuation.
//
// The parts of a large language model at small size: an embedding turns letters into vectors,
// blocks of attention and a two-layer network transform the vectors, and the last vector of each
// position predicts the next letter. Run `pgr_example_gpt 600` for more steps than the test takes.
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
using namespace plugrad;

constexpr int64_t kContext = 32;  // letters that a prediction may look at
constexpr int64_t kWidth = 48, kHeads = 4, kBlocks = 2, kBatch = 16;

// "The house that Jack built": each verse repeats the verses before it, so the text is predictable.
std::string rhyme() {
  const char* lines[] = {"the malt that lay in ",
                         "the rat that ate ",
                         "the cat that killed ",
                         "the dog that worried ",
                         "the cow with the crumpled horn that tossed ",
                         "the maiden all forlorn that milked ",
                         "the man all tattered and torn that kissed "};
  std::string text = "this is the house that jack built.\n", verse = "the house that jack built.\n";
  for (const char* line : lines) text += "this is " + (verse = line + verse);
  return text;
}

// Attention mixes each position with the positions before it; the two-layer network works on each
// position alone. Both have residual connections, which carry gradients to the first block.
struct Block {
  nn::LayerNorm norm1{{kWidth}}, norm2{{kWidth}};
  nn::MultiHeadAttention attention{kWidth, kHeads};
  nn::Linear up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  PLUGRAD_FIELDS(norm1, norm2, attention, up, down)

  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(norm1(x), {.causal = true});
    return h + down(gelu(up(norm2(h))));
  }
};

struct Gpt {
  explicit Gpt(int64_t letters) : letter(letters, kWidth), out(kWidth, letters) {}
  nn::Embedding letter, place{kContext, kWidth};
  std::vector<Block> blocks = std::vector<Block>(kBlocks);
  nn::LayerNorm norm{{kWidth}};
  nn::Linear out;
  PLUGRAD_FIELDS(letter, place, blocks, norm, out)

  // Shape: (n, kContext) letter indices -> (n, kContext, letters) logits.
  Tensor operator()(const Tensor& x) const {
    Tensor h = letter(x) + place.weight;
    for (const Block& block : blocks) h = block(h);
    return out(norm(h));
  }
};

int main(int argc, char** argv) {
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 240;
  Tensor::manual_seed(1);
  const std::string text = rhyme();
  std::string alphabet = text;  // each letter once, in order; its position is its index
  std::sort(alphabet.begin(), alphabet.end());
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  std::vector<int32_t> numbers;
  for (char c : text) numbers.push_back(static_cast<int32_t>(alphabet.find(c)));
  const auto letters = static_cast<int64_t>(alphabet.size());

  Gpt gpt(letters);
  optim::AdamW opt(nn::parameters(gpt), {.lr = 3e-3, .weight_decay = 0.01});
  const optim::Schedule rate =
      optim::warm_up(optim::cosine_rate(3e-3, steps, 3e-4), steps / 10 + 1);
  float loss_value = std::log(static_cast<float>(letters)), first = loss_value;  // of a blind guess
  uint64_t random = 1;
  for (int64_t step = 0; step < steps; ++step) {
    // Random pieces of the text; the targets are the same pieces shifted by one letter.
    std::vector<int32_t> x, y;
    for (int64_t i = 0; i < kBatch; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const auto at = static_cast<std::ptrdiff_t>((random >> 33) % (numbers.size() - kContext - 1));
      x.insert(x.end(), numbers.begin() + at, numbers.begin() + at + kContext);
      y.insert(y.end(), numbers.begin() + at + 1, numbers.begin() + at + 1 + kContext);
    }
    opt.set_learning_rate(rate(step));
    opt.zero_grad();
    const Shape shape = {kBatch, kContext};
    const Tensor loss =
        sparse_categorical_crossentropy(gpt(Tensor::from(x, shape)), Tensor::from(y, shape));
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
  std::vector<int32_t> window(numbers.begin(), numbers.begin() + kContext);
  std::string made;
  for (int i = 0; i < 60; ++i) {
    const Tensor scores = gpt(Tensor::from(window, {1, kContext}))[{0, -1}];
    const auto next = (scores / 0.5).softmax().multinomial(1).item<int32_t>();
    window.erase(window.begin());
    window.push_back(next);
    made += alphabet[static_cast<size_t>(next)];
  }
  std::cout << text.substr(0, kContext) << "|" << made << "\n";
  return loss_value < 0.8f ? 0 : 1;  // a letter is then guessed with probability exp(-0.8), 0.45
}
