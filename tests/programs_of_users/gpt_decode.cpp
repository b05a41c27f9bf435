// A GPT with greedy decoding: keys and values of all tokens are cached, so that each new token
// costs one row of every layer. One recording serves every length.
#include <plugrad/plugrad.h>

#include "formula.h"
#include "recorded.h"
using namespace plugrad;

constexpr int64_t kTokens = 200, kWidth = 48, kHeads = 4, kBlocks = 2, kContext = 96;
constexpr int64_t kPrompt = 8, kMade = 64;

struct Attention {
  nn::Linear q{kWidth, kWidth}, k{kWidth, kWidth}, v{kWidth, kWidth}, out{kWidth, kWidth};
  // Not among the fields: a cache is no weight. Shape: (heads, context, width of a head).
  Tensor keys = Tensor::zeros({kHeads, kContext, kWidth / kHeads});
  Tensor values = Tensor::zeros({kHeads, kContext, kWidth / kHeads});
  PLUGRAD_FIELDS(q, k, v, out)

  // Shape: x (1, width); `n` is the number of tokens with this one.
  Tensor operator()(const Tensor& x, const Variable& length, const Tensor& n) {
    const auto heads = [](const Tensor& y) {
      return y.reshape({1, kHeads, kWidth / kHeads}).transpose(0, 1);
    };
    const Tensor is_new = Tensor::arange(kContext).reshape({kContext, 1}) == n - 1;
    keys.assign(where(is_new, heads(k(x)).detach(), keys));  // no gradients: no history is kept
    values.assign(where(is_new, heads(v(x)).detach(), values));
    const Tensor y = scaled_dot_product_attention(heads(q(x)), length.limit(keys, 1, n),
                                                  length.limit(values, 1, n));
    return out(y.transpose(0, 1).reshape({1, kWidth}));
  }
};

struct Block {
  nn::LayerNorm norm1{{kWidth}};
  Attention attention;
  nn::LayerNorm norm2{{kWidth}};
  nn::Linear up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  PLUGRAD_FIELDS(norm1, attention, norm2, up, down)

  Tensor operator()(const Tensor& x, const Variable& length, const Tensor& n) {
    const Tensor h = x + attention(norm1(x), length, n);
    return h + down(gelu(up(norm2(h))));
  }
};

struct Gpt {
  nn::Embedding token{kTokens, kWidth}, place{kContext, kWidth};
  std::vector<Block> blocks{Block(), Block()};  // each with its own cache
  nn::LayerNorm norm{{kWidth}};
  nn::Linear out{kWidth, kTokens, false};
  PLUGRAD_FIELDS(token, place, blocks, norm, out)

  // Shape of each: (heads, context, width of a head).
  std::vector<Tensor> caches() const {
    std::vector<Tensor> all;
    for (const Block& block : blocks)
      all.insert(all.end(), {block.attention.keys, block.attention.values});
    return all;
  }

  // Shape: the index of one token, (1), at position n - 1 -> (1, kTokens) logits.
  Tensor operator()(const Tensor& number, const Variable& length, const Tensor& n) {
    Tensor x = token(number) + place((n - 1).reshape({1}));
    for (Block& block : blocks) x = block(x, length, n);
    return out(norm(x));
  }
};

void decode(bool use_jit, programs::Recorded& recorded) {
  const std::string kind = use_jit ? "jitted" : "not jitted";
  const nn::TrainingScope evaluation(false);
  Gpt net;
  programs::set_parameters(net, 1.5);
  const Variable length("length", 1, kContext);
  const auto step = [&](const Tensor& number, const Tensor& n) {
    const Tensor scores = net(number, length, n);
    return std::vector{scores.argmax(1), scores.max(1)};
  };
  auto jitted = jit(step);

  std::vector<double> tokens, scores;
  Tensor next = programs::integers({kPrompt}, 7, kTokens);
  const std::vector<int32_t> prompt = next.to_vector<int32_t>();
  programs::StepTimes times;
  for (int64_t n = 1; n < kPrompt + kMade; ++n) {
    const Tensor number = n <= kPrompt ? Tensor::from({prompt[static_cast<size_t>(n - 1)]}) : next;
    const std::vector<Tensor> result =
        use_jit ? jitted(number, length.bind(n)) : step(number, length.bind(n));
    next = result[0];  // stays on the device, as the next step's argument
    // With the caches, in one plan: a later step would else compute their past again.
    std::vector<Tensor> computed = net.caches();
    computed.insert(computed.end(), result.begin(), result.end());
    Tensor::realize(computed);
    times.step_done();
    if (n < kPrompt) continue;
    tokens.push_back(next.item<double>());
    scores.push_back(result[1].item<double>());
  }
  times.print(kind);
  recorded.compare(kind + ", tokens", "tokens", tokens, 0.0);
  recorded.compare(kind + ", scores", "scores", scores, 1e-5);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: gpt_decode RECORDED.txt\n", 2;
  programs::Recorded recorded(argv[1]);
  decode(false, recorded);
  decode(true, recorded);
  return recorded.failures();
}
