#include "jit/surface/families.h"

namespace plugrad {

namespace {

using Ts = std::vector<Tensor>;
using T = Tensor;
using F = std::function<Ts(const T& x, const T& at)>;

Family reductions() {
  return {"reductions",
          {{"sum", [](const T& x, const T&) { return Ts{x.sum(), x.sum(0), x.sum(1, true)}; }},
           {"prod", [](const T& x, const T&) { return Ts{(x * 0.1 + 1).prod(1)}; }},
           {"mean", [](const T& x, const T&) { return Ts{x.mean(1), x.mean()}; }},
           {"max", [](const T& x, const T&) { return Ts{x.max(1), x.max()}; }},
           {"min", [](const T& x, const T&) { return Ts{x.min(0), x.min()}; }},
           {"any, all", [](const T& x, const T&) { return Ts{(x > 2).any(1), (x > -2).all(0)}; },
            false},
           {"var", [](const T& x, const T&) { return Ts{x.var(1, false, 0)}; }},
           {"std", [](const T& x, const T&) { return Ts{(x + 1).std(1, false, 0)}; }},
           {"std_mean",
            [](const T& x, const T&) {
              const auto [a, b] = x.std_mean(1, true, 0);
              const auto [c, d] = x.var_mean(0, true, 0);
              return Ts{b, a, c, d};
            }},
           {"logsumexp", [](const T& x, const T&) { return Ts{x.logsumexp(1)}; }},
           {"argmax", [](const T& x, const T&) { return Ts{x.argmax(1), x.argmin(0), x.argmax()}; },
            false},
           {"softmax", [](const T& x, const T&) { return Ts{x.softmax(1), x.softmin(0)}; }},
           {"log_softmax", [](const T& x, const T&) { return Ts{x.log_softmax(1)}; }},
           {"normalize", [](const T& x, const T&) { return Ts{x.normalize()}; }},
           {"cosine_similarity", [](const T& x, const T& at) {
              return Ts{cosine_similarity(x, at.cast(DType::F32))};
            }}}};
}

Family movements() {
  return {
      "movements",
      {{"reshape", [](const T& x, const T&) { return Ts{x.reshape({-1}), x.flatten()}; }},
       {"permute", [](const T& x, const T&) { return Ts{x.permute({1, 0}), x.transpose()}; }},
       {"expand", [](const T& x, const T&) { return Ts{x.unsqueeze(0).expand({3, -1, -1})}; }},
       {"pad", [](const T& x, const T&) { return Ts{x.pad({{1, 2}, {0, 3}}, 5)}; }},
       {"pad_to", [](const T& x, const T&) { return Ts{x.pad_to({x.size(0) + 2, {}}, 1)}; }},
       {"shrink", [](const T& x, const T&) { return Ts{x.shrink({{0, 1}, {0, x.size(1)}})}; }},
       {"shrink_to", [](const T& x, const T&) { return Ts{x.shrink_to({1, {}})}; }},
       {"unflatten", [](const T& x, const T&) { return Ts{x.unflatten(1, {1, -1})}; }},
       {"flip", [](const T& x, const T&) { return Ts{x.flip({0, 1})}; }},
       {"split", [](const T& x, const T&) { return x.split(2); }},
       {"chunk", [](const T& x, const T&) { return x.chunk(3, 1); }},
       {"repeat", [](const T& x, const T&) { return Ts{x.repeat({2, 2})}; }},
       {"repeat_interleave", [](const T& x, const T&) { return Ts{x.repeat_interleave(2, 1)}; }},
       {"roll", [](const T& x, const T&) { return Ts{x.roll({1}, {1})}; }},
       {"diag", [](const T& x, const T&) { return Ts{x.diagonal(), x[0].diag()}; }},
       {"unfold", [](const T& x, const T&) { return Ts{x.unfold(1, 1, 1)}; }},
       {"tril", [](const T& x, const T&) { return Ts{x.tril() + x.triu(1)}; }},
       {"slice", [](const T& x, const T&) { return Ts{x.slice(1, Slice({}, {}, -2))}; }},
       {"cat", [](const T& x, const T& at) { return Ts{cat({x, at * 2.0, x}, 1)}; }},
       {"stack", [](const T& x, const T& at) { return Ts{stack({x, at * 2.0})}; }},
       {"meshgrid", [](const T& x, const T&) { return meshgrid({x[0], x.transpose()[0]}); }},
       {"rearrange", [](const T& x, const T&) { return Ts{x.rearrange("a b -> b a 1")}; }},
       {"contiguous", [](const T& x, const T&) { return Ts{x.transpose().contiguous() * 2}; }},
       {"clone", [](const T& x, const T&) { return Ts{x.clone()}; }},
       {"to", [](const T& x, const T&) { return Ts{x.to(x.device()) * 2}; }}}};
}

Family creations() {
  return {"creations",
          {{"full", [](const T& x, const T&) { return Ts{x + x.full_like(2) + x.ones_like()}; }},
           {"filled",
            [](const T& x, const T&) {
              return Ts{x + T::full(x.shape(), 3) + T::zeros(x.shape()) + x.zeros_like()};
            }},
           {"empty",
            [](const T& x, const T&) {
              T a = T::empty(x.shape()), b = x.empty_like();
              a.assign(x * 2);
              b.assign(a + 1);
              return Ts{a, b};
            },
            false},
           {"random",
            [](const T& x, const T&) { return Ts{x + T::rand(x.shape()) + T::randn(x.shape())}; }},
           {"arange", [](const T& x, const T&) { return Ts{x + T::arange(x.size(1))}; }},
           {"linspace", [](const T& x, const T&) { return Ts{x + T::linspace(0, 1, x.size(1))}; }},
           {"eye", [](const T& x, const T&) { return Ts{x.matmul(T::eye(x.size(1)))}; }},
           {"from", [](const T& x, const T&) { return Ts{x * T::from<float>({2.5f})}; }},
           {"rand", [](const T& x, const T&) { return Ts{x + x.rand_like() + x.randn_like()}; }},
           {"draws",
            [](const T& x, const T&) {
              return Ts{T::uniform(x.shape(), -1, 2), T::normal(x.shape(), 1, 2),
                        T::randint(x.shape(), 0, 9)};
            },
            false},
           {"initial weights",
            [](const T& x, const T&) {
              return Ts{T::kaiming_uniform(x.shape()), T::glorot_uniform(x.shape()),
                        T::kaiming_normal(x.shape()), T::scaled_uniform(x.shape())};
            },
            false},
           {"randperm", [](const T& x, const T&) { return Ts{T::randperm(x.size(1) + 1)}; }, false},
           {"multinomial",
            [](const T& x, const T&) { return Ts{(x.abs() + 0.1).multinomial(3, true)}; }, false},
           {"dropout", [](const T& x, const T&) { return Ts{x.dropout(0.4)}; }}}};
}

}  // namespace

std::vector<Family> shaping_families() {
  return {reductions(), movements(), creations()};
}

}  // namespace plugrad
