// Transformers: MiniLM's encoder, ViT-Ti, and one step of GPT-2 small.
#include "bench/networks/networks.h"
#include "plugrad/conv.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

Tensor heads_of(const Tensor& x, int64_t heads) {
  const auto shape = x.shape();
  return x.reshape({shape[0], shape[1], heads, shape[2] / heads}).transpose(1, 2);
}

Tensor joined(const Tensor& x) {
  const auto shape = x.shape();
  return x.transpose(1, 2).reshape({shape[0], shape[2], shape[1] * shape[3]});
}

// Post-norm, as in BERT, or pre-norm.
struct EncoderLayer {
  EncoderLayer(int64_t width, int64_t count, bool first)
      : query(width, width),
        key(width, width),
        value(width, width),
        out(width, width),
        up(width, 4 * width),
        down(4 * width, width),
        norm1({width}),
        norm2({width}),
        heads(count),
        norm_first(first) {}
  nn::Linear query, key, value, out, up, down;
  nn::LayerNorm norm1, norm2;
  int64_t heads;
  bool norm_first;
  PLUGRAD_FIELDS(query, key, value, out, up, down, norm1, norm2)

  Tensor attend(const Tensor& x) const {
    return out(joined(scaled_dot_product_attention(
        heads_of(query(x), heads), heads_of(key(x), heads), heads_of(value(x), heads))));
  }
  Tensor feed(const Tensor& x) const { return down(up(x).gelu(false)); }
  Tensor operator()(const Tensor& x) const {
    if (norm_first) {
      const Tensor h = x + attend(norm1(x));
      return h + feed(norm2(h));
    }
    const Tensor h = norm1(x + attend(x));
    return norm2(h + feed(h));
  }
};

struct MiniLm {
  static constexpr int64_t kWidth = 384, kWords = 30522, kHeads = 12;
  MiniLm() {
    for (int i = 0; i < 6; ++i) layers.emplace_back(kWidth, kHeads, false);
  }
  nn::Embedding words{kWords, kWidth}, positions{512, kWidth};
  nn::LayerNorm norm{{kWidth}};
  std::vector<EncoderLayer> layers;
  PLUGRAD_FIELDS(words, positions, norm, layers)

  Tensor operator()(const Tensor& tokens) const {
    const int64_t length = tokens.shape()[1];
    Tensor h = norm(words(tokens) + positions.weight.shrink({{0, length}, {0, kWidth}}));
    for (const EncoderLayer& layer : layers) h = layer(h);
    return h;
  }
};

struct VitTiny {
  static constexpr int64_t kWidth = 192, kTokens = 197, kHeads = 3;
  VitTiny() {
    for (int i = 0; i < 12; ++i) layers.emplace_back(kWidth, kHeads, true);
  }
  nn::Conv2d patches{3, kWidth, 16, {.stride = 16}};
  Tensor first = Tensor::randn({1, 1, kWidth}), positions = Tensor::randn({1, kTokens, kWidth});
  std::vector<EncoderLayer> layers;
  nn::LayerNorm norm{{kWidth}};
  nn::Linear out{kWidth, 1000};
  PLUGRAD_FIELDS(patches, first, positions, layers, norm, out)

  Tensor operator()(const Tensor& x) const {
    const int64_t batch = x.shape()[0];
    const Tensor parts = patches(x).reshape({batch, kWidth, kTokens - 1}).transpose(1, 2);
    Tensor h = cat({first.expand({batch, 1, kWidth}), parts}, 1) + positions;
    for (const EncoderLayer& layer : layers) h = layer(h);
    h = norm(h).shrink({{0, batch}, {0, 1}, {0, kWidth}}).reshape({batch, kWidth});
    return out(h);
  }
};

struct DecoderLayer {
  DecoderLayer(int64_t width, int64_t count)
      : stacked(width, 3 * width),
        out(width, width),
        up(width, 4 * width),
        down(4 * width, width),
        norm1({width}),
        norm2({width}),
        heads(count) {}
  nn::Linear stacked, out, up, down;
  nn::LayerNorm norm1, norm2;
  int64_t heads;
  PLUGRAD_FIELDS(stacked, out, up, down, norm1, norm2)

  // `past`: (2, batch, heads, length, head size), the cached keys and values.
  Tensor operator()(const Tensor& x, const Tensor& past) const {
    const auto parts = stacked(norm1(x)).chunk(3, -1);
    const Tensor keys = cat({past[0], heads_of(parts[1], heads)}, 2);
    const Tensor values = cat({past[1], heads_of(parts[2], heads)}, 2);
    const Tensor h =
        x + out(joined(scaled_dot_product_attention(heads_of(parts[0], heads), keys, values)));
    return h + down(up(norm2(h)).gelu(true));
  }
};

struct Gpt2 {
  static constexpr int64_t kWidth = 768, kWords = 50257, kHeads = 12, kLayers = 12, kPast = 256;
  Gpt2() {
    for (int64_t i = 0; i < kLayers; ++i) layers.emplace_back(kWidth, kHeads);
  }
  nn::Embedding words{kWords, kWidth}, positions{1024, kWidth};
  std::vector<DecoderLayer> layers;
  nn::LayerNorm norm{{kWidth}};
  PLUGRAD_FIELDS(words, positions, layers, norm)

  Tensor operator()(const Tensor& token, const Tensor& past) const {
    Tensor h = words(token) + positions.weight.shrink({{kPast, kPast + 1}, {0, kWidth}});
    for (size_t i = 0; i < layers.size(); ++i) h = layers[i](h, past[static_cast<int64_t>(i)]);
    return matmul(norm(h), words.weight.transpose());
  }
};

}  // namespace

Network make_token_network(const std::string& name, int64_t batch) {
  using Data = const std::vector<Tensor>&;
  if (name == "minilm")
    return network_of(std::make_shared<MiniLm>(),
                      {Tensor::randint({batch, 128}, 0, MiniLm::kWords)},
                      [](MiniLm& net, Data data) { return net(data[0]); });
  if (name == "vit_tiny")
    return network_of(std::make_shared<VitTiny>(), {Tensor::randn({batch, 3, 224, 224})},
                      [](VitTiny& net, Data data) { return net(data[0]); });
  const Tensor past = Tensor::randn(
      {Gpt2::kLayers, 2, batch, Gpt2::kHeads, Gpt2::kPast, Gpt2::kWidth / Gpt2::kHeads});
  return network_of(std::make_shared<Gpt2>(), {Tensor::randint({batch, 1}, 0, Gpt2::kWords), past},
                    [](Gpt2& net, Data data) { return net(data[0], data[1]); });
}

}  // namespace plugrad::bench
