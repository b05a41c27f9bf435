// The networks and training data of the tests l2.models.*. Small, because the evaluator computes
// element by element.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plugrad/nn.h"
#include "plugrad/optim.h"

namespace plugrad::tools {

/// Records a value between layers and returns it.
using Keep = std::function<Tensor(const char* name, const Tensor& value)>;

/// Deterministic random numbers: SplitMix64 (Steele et al. 2014).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in [-scale, scale].
  Tensor reals(const Shape& shape, double scale) {
    std::vector<float> values(static_cast<size_t>(count_of(shape)));
    for (float& value : values)
      value = static_cast<float>(scale * (0x1p-52 * static_cast<double>(next() >> 11) - 1));
    return Tensor::from(values, shape);
  }
  /// Uniform in [0, end).
  Tensor integers(const Shape& shape, int64_t end) {
    std::vector<int32_t> values(static_cast<size_t>(count_of(shape)));
    for (int32_t& value : values) value = static_cast<int32_t>(next() % static_cast<uint64_t>(end));
    return Tensor::from(values, shape);
  }

 private:
  static int64_t count_of(const Shape& shape) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    return count;
  }
  uint64_t state_;
};

struct Mlp {
  static constexpr const char* kName = "mlp";
  nn::Linear first{12, 24}, second{24, 16}, out{16, 5};
  PLUGRAD_FIELDS(first, second, out)

  Tensor x, labels;
  void make_data(Numbers& numbers) {
    x = numbers.reals({20, 12}, 1.0);
    labels = numbers.integers({20}, 5);
  }
  Tensor loss(const Keep& keep) {
    const Tensor h = keep("first", first(x).tanh());
    return sparse_categorical_crossentropy(out(keep("second", second(h).sigmoid())), labels);
  }
};

struct Convnet {
  static constexpr const char* kName = "convnet";
  nn::Conv2d first{2, 4, 3}, second{4, 6, 3};
  nn::BatchNorm norm{4};
  nn::Linear out{24, 4};
  PLUGRAD_FIELDS(first, second, norm, out)

  Tensor x, labels;
  void make_data(Numbers& numbers) {
    x = numbers.reals({6, 2, 10, 10}, 1.0);
    labels = numbers.integers({6}, 4);
  }
  Tensor loss(const Keep& keep) {
    const Tensor h = keep("norm", norm(keep("first", first(x))));
    const Tensor pooled = keep("pool", relu(h.max_pool2d(2)));
    return sparse_categorical_crossentropy(out(keep("second", relu(second(pooled))).flatten(1)),
                                           labels);
  }
};

/// Attention and a feed-forward network, each with a norm and a residual connection.
struct Transformer {
  static constexpr const char* kName = "transformer";
  nn::Embedding tokens{11, 12}, places{7, 12};
  nn::LayerNorm before{{12}}, between{{12}};
  nn::MultiHeadAttention attention{12, 3};
  nn::Linear wide{12, 24}, narrow{24, 12}, out{12, 11};
  PLUGRAD_FIELDS(tokens, places, before, between, attention, wide, narrow, out)

  Tensor words, next;
  void make_data(Numbers& numbers) {
    words = numbers.integers({3, 7}, 11);
    next = numbers.integers({3, 7}, 11);
  }
  Tensor loss(const Keep& keep) {
    Tensor h = keep("embedding", tokens(words) + places(Tensor::arange(7)));
    h = keep("attention", h + attention(keep("before", before(h)), {.causal = true}));
    const Tensor inner = keep("wide", wide(keep("between", between(h))).silu());
    h = keep("narrow", h + narrow(inner));
    return sparse_categorical_crossentropy(keep("out", out(h)), next);
  }
};

}  // namespace plugrad::tools
