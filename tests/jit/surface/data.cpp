#include "jit/surface/families.h"

namespace plugrad {

namespace {

using Ts = std::vector<Tensor>;
using T = Tensor;

Ts both(std::pair<Tensor, Tensor> pair) {
  return {pair.first, pair.second};
}

Family totals() {
  return {"running totals",
          {{"cumsum", [](const T& x, const T& at) { return Ts{x.cumsum(1), at.cumsum(0)}; }},
           {"cumsum along rows", [](const T& x, const T&) { return Ts{x.cumsum(0)}; }},
           {"cumprod", [](const T& x, const T&) { return Ts{(x * 0.01 + 1).cumprod(1)}; }},
           {"logcumsumexp", [](const T& x, const T&) { return Ts{x.logcumsumexp(1)}; }},
           {"cummax", [](const T& x, const T&) { return both(x.cummax(1)); }},
           {"cummin", [](const T& x, const T&) { return both(x.cummin(1)); }},
           {"of half precision",
            [](const T& x, const T&) { return Ts{x.cast(DType::F16).cumsum(1)}; }}}};
}

Family orders() {
  return {
      "orders",
      {{"sort", [](const T& x, const T&) { return both(x.sort(1)); }},
       {"descending", [](const T& x, const T&) { return both(x.sort(1, true)); }},
       {"argsort", [](const T& x, const T& at) { return Ts{x.argsort(0), at.argsort(1)}; }, false},
       {"topk", [](const T& x, const T&) { return both(x.topk(1, 1)); }},
       {"bottomk", [](const T& x, const T&) { return both(x.topk(1, 0, false)); }}}};
}

Family reads() {
  return {
      "elements at places",
      {{"gather", [](const T& x, const T& at) { return Ts{x.gather(1, at)}; }},
       {"index_select", [](const T& x, const T& at) { return Ts{x.index_select(1, at[0])}; }},
       {"index of a list",
        [](const T& x, const T& at) { return Ts{x.index({at[0].slice(0, Slice(0, 1)) % 1})}; }},
       {"index", [](const T& x, const T& at) { return Ts{x[{Slice(), at[0] - 1}]}; }},
       {"embedding", [](const T& x, const T& at) { return Ts{embedding(x.transpose(), at)}; }},
       {"one_hot", [](const T& x, const T& at) { return Ts{at[0].one_hot(x.size(1))}; }, false},
       {"masked_select", [](const T& x, const T&) { return Ts{x.masked_select(x > 0, 9, -1)}; }},
       {"nonzero", [](const T&, const T& at) { return Ts{(at > 1).nonzero(9)}; }, false}}};
}

Family writes() {
  const auto combined = [](Combine how, bool with_self) {
    return [how, with_self](const T& x, const T& at) {
      return Ts{x.scatter_reduce(1, at, x * 2, how, with_self)};
    };
  };
  return {"elements put at places",
          {{"scatter", [](const T& x, const T& at) { return Ts{x.scatter(1, at, x * 2)}; }},
           {"a number", [](const T& x, const T& at) { return Ts{x.scatter(1, at, 7)}; }},
           {"sum", combined(Combine::Sum, true)},
           {"sum of what comes", combined(Combine::Sum, false)},
           {"mean", combined(Combine::Mean, true)},
           {"product",
            [](const T& x, const T& at) {
              return Ts{(x * 0.01 + 1).scatter_reduce(1, at, x * 0.01 + 1, Combine::Prod)};
            }},
           {"maximum", combined(Combine::Max, true)},
           {"minimum", combined(Combine::Min, false)},
           {"set_index", [](const T& x, const T& at) {
              Tensor y = x.clone();
              y.set_index({-1}, x[0] * 3);
              y[{Slice(), at[0]}] = 3;
              y[{0, Slice()}] = x[-1] * 2;
              return Ts{y};
            }}}};
}

}  // namespace

std::vector<Family> data_families() {
  return {totals(), orders(), reads(), writes()};
}

}  // namespace plugrad
