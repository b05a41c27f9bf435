#include <algorithm>

#include "jit/surface/families.h"

namespace plugrad {

namespace {

using Ts = std::vector<Tensor>;
using T = Tensor;

/// Targets of losses: another dtype that is no integer.
Tensor target(const T& at) {
  return at.cast(DType::F32) * 0.25;
}

/// The first three rows and columns, or as many as there are.
Tensor square_part(const T& x) {
  const int64_t n = std::min<int64_t>({3, x.size(0), x.size(1)});
  return x.shrink({{0, n}, {0, n}});
}

Family products() {
  return {"products",
          {{"matmul", [](const T& x, const T&) { return Ts{x.matmul(x.transpose())}; }},
           {"matmul of chosen rows",
            [](const T& x, const T& at) {
              return Ts{x.transpose().index_select(0, at[0]).matmul(x * 0.5)};
            }},
           {"matmul of two", [](const T& x, const T&) { return Ts{matmul(x.transpose(), x)}; }},
           {"linear", [](const T& x, const T&) { return Ts{linear(x, x.transpose(), x.sum(1))}; }},
           {"linear of a member",
            [](const T& x, const T&) { return Ts{x.linear(x.transpose(), x.sum(1))}; }},
           {"sequential",
            [](const T& x, const T&) {
              return Ts{sequential(x, {[](const T& y) { return y.relu(); }})};
            }},
           {"qr", [](const T& x, const T&) { return Ts{qr(square_part(x)).r}; }, false},
           {"svd", [](const T& x, const T&) { return Ts{svd(square_part(x)).s}; }, false},
           {"einsum", [](const T& x, const T&) { return Ts{einsum("ab,cb->ac", {x, x * 2})}; }},
           {"outer", [](const T& x, const T&) { return Ts{outer(x[0], x[0]), inner(x, x)}; }},
           {"tensordot", [](const T& x, const T&) { return Ts{tensordot(x, x * 2, 2)}; }},
           {"newton_schulz", [](const T& x, const T&) { return Ts{newton_schulz(x, 2)}; }, false}}};
}

Family normalisations() {
  return {"normalisations",
          {{"layernorm", [](const T& x, const T&) { return Ts{layernorm(x), x.layernorm()}; }},
           {"rmsnorm", [](const T& x, const T&) { return Ts{rmsnorm(x, x[0])}; }},
           {"groupnorm", [](const T& x, const T&) { return Ts{groupnorm(x.unsqueeze(0), 1)}; }},
           {"instancenorm", [](const T& x, const T&) { return Ts{instancenorm(x.unsqueeze(0))}; }},
           {"batchnorm", [](const T& x, const T&) {
              return Ts{batchnorm(x, x[0], x[0], x.mean(0), (x.var(0, false, 0) + 1).rsqrt())};
            }}}};
}

Family windows() {
  const auto image = [](const T& x) {
    return x.unsqueeze(0).unsqueeze(0).pad({{0, 0}, {0, 0}, {2, 2}, {2, 2}});
  };
  return {"windows",
          {{"conv1d",
            [](const T& x, const T&) {
              return Ts{conv1d(x.unsqueeze(1), x.slice(1, Slice(0, 1)).unsqueeze(1))};
            }},
           {"conv2d",
            [image](const T& x, const T&) { return Ts{conv2d(image(x), T::ones({2, 1, 3, 3}))}; }},
           {"conv_transpose2d",
            [image](const T& x, const T&) {
              return Ts{conv_transpose2d(image(x), T::ones({1, 2, 2, 2}))};
            }},
           {"windows of one axis",
            [image](const T& x, const T&) {
              const T row = image(x).squeeze(0);
              const auto [values, at] = max_pool1d_with_places(row);
              return Ts{conv_transpose1d(x.unsqueeze(1), T::ones({1, 2, 2})), max_pool1d(row),
                        avg_pool1d(row), max_unpool1d(values, at)};
            }},
           {"windows of three axes",
            [image](const T& x, const T&) {
              const T box = image(x).unsqueeze(2).expand({-1, -1, 2, -1, -1});
              const auto [values, at] = max_pool3d_with_places(box);
              return Ts{conv3d(box, T::ones({1, 1, 2, 2, 2})),
                        conv_transpose3d(box, T::ones({1, 1, 2, 2, 2})), max_pool3d(box),
                        avg_pool3d(box), max_unpool3d(values, at)};
            }},
           {"windows of any axes",
            [image](const T& x, const T&) {
              return Ts{conv(image(x), T::ones({1, 1, 2, 2})),
                        conv_transpose(image(x), T::ones({1, 1, 2, 2}))};
            }},
           {"windows of members",
            [image](const T& x, const T&) {
              const T y = image(x);
              return Ts{y.conv2d(T::ones({1, 1, 2, 2})), y.max_pool2d(), y.avg_pool2d()};
            }},
           {"max_pool2d", [image](const T& x, const T&) { return Ts{max_pool2d(image(x))}; }},
           {"avg_pool2d", [image](const T& x, const T&) { return Ts{avg_pool2d(image(x))}; }},
           {"max_unpool2d",
            [image](const T& x, const T&) {
              const auto [values, at] = max_pool2d_with_places(image(x));
              return Ts{max_unpool2d(values, at), at};
            }},
           {"interpolate", [image](const T& x, const T&) {
              return Ts{interpolate(image(x), {.scale = {1.5, 1.5}})};
            }}}};
}

Family losses() {
  const auto labels = [](const T& x, const T& at) {
    return at.slice(1, Slice(0, 1)).squeeze(1) % x.size(1);
  };
  return {
      "losses",
      {{"cross_entropy",
        [labels](const T& x, const T& at) { return Ts{cross_entropy(x, labels(x, at))}; }},
       {"smoothed cross_entropy",
        [labels](const T& x, const T& at) {
          return Ts{cross_entropy(x, labels(x, at),
                                  {.label_smoothing = 0.1, .weight = x[0].detach().abs()})};
        }},
       {"sparse_categorical_crossentropy",
        [labels](const T& x, const T& at) {
          return Ts{sparse_categorical_crossentropy(x, labels(x, at), {.ignore_index = 0})};
        }},
       {"nll_loss",
        [labels](const T& x, const T& at) {
          return Ts{nll_loss(x.log_softmax(1), labels(x, at))};
        }},
       {"binary_crossentropy",
        [](const T& x, const T& at) {
          return Ts{binary_crossentropy(x.sigmoid(), at % 2),
                    binary_crossentropy_logits(x, at % 2)};
        }},
       {"mse_loss", [](const T& x, const T& at) { return Ts{mse_loss(x, target(at))}; }},
       {"l1_loss", [](const T& x, const T& at) { return Ts{l1_loss(x, target(at))}; }},
       {"huber_loss",
        [](const T& x, const T& at) {
          return Ts{huber_loss(x, target(at)), smooth_l1_loss(x, target(at))};
        }},
       {"kl_div", [](const T& x,
                     const T& at) { return Ts{kl_div(x.log_softmax(1), target(at).softmax(1))}; }},
       {"margin_ranking_loss", [](const T& x, const T& at) {
          return Ts{margin_ranking_loss(x, x * 2, where(at % 2 == 0, 1.0, -1.0)),
                    hinge_embedding_loss(x, where(at % 2 == 0, 1.0, -1.0))};
        }}}};
}

Family attentions() {
  const auto heads = [](const T& x) { return x.reshape({1, x.size(0), x.size(1)}); };
  return {"attention",
          {{"whole",
            [heads](const T& x, const T&) {
              const T q = heads(x);
              return Ts{scaled_dot_product_attention(q, q * 0.5, q + 1)};
            }},
           {"causal",
            [heads](const T& x, const T&) {
              const T q = heads(x);
              return Ts{scaled_dot_product_attention(q, q * 0.5, q + 1, {}, true)};
            }},
           {"masked by data", [heads](const T& x, const T& at) {
              const T q = heads(x);
              const T mask = at.sum(1) % 2 == 0;
              return Ts{scaled_dot_product_attention(q, q * 0.5, q + 1,
                                                     mask.expand({x.size(0), x.size(0)}))};
            }}}};
}

}  // namespace

std::vector<Family> network_families() {
  return {products(), normalisations(), windows(), losses(), attentions()};
}

}  // namespace plugrad
