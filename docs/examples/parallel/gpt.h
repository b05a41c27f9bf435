// The text and the network that the examples of a transformer share: gpt.cpp trains it on one
// device, gpt_parallel.cpp on two.
#pragma once

#include <plugrad/plugrad.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace gpt {

using namespace plugrad;

constexpr int64_t kContext = 32;  // letters that a prediction may look at
constexpr int64_t kWidth = 48, kHeads = 4, kBlocks = 2, kBatch = 16;

// "The house that Jack built": each verse repeats the verses before it, so the text is predictable.
inline std::string rhyme() {
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

// Batches of pieces of the text, and the same pieces shifted by one letter, which are the targets.
class Pieces {
 public:
  Pieces() : text(rhyme()), alphabet(text) {
    std::sort(alphabet.begin(), alphabet.end());  // each letter once; its position is its index
    alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
    for (char c : text) numbers.push_back(static_cast<int32_t>(alphabet.find(c)));
  }
  int64_t letters() const { return static_cast<int64_t>(alphabet.size()); }

  // Shape of both: (kBatch, kContext).
  std::pair<Tensor, Tensor> next() {
    std::vector<int32_t> x, y;
    for (int64_t i = 0; i < kBatch; ++i) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      const auto at =
          static_cast<std::ptrdiff_t>((random_ >> 33) % (numbers.size() - kContext - 1));
      x.insert(x.end(), numbers.begin() + at, numbers.begin() + at + kContext);
      y.insert(y.end(), numbers.begin() + at + 1, numbers.begin() + at + 1 + kContext);
    }
    const Shape shape = {kBatch, kContext};
    return {Tensor::from(x, shape), Tensor::from(y, shape)};
  }

  std::string text, alphabet;
  std::vector<int32_t> numbers;  // the text as indices of letters

 private:
  uint64_t random_ = 1;
};

}  // namespace gpt
