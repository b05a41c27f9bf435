// Exponential moving averages of parameters.
#include "plugrad/nn/ema.h"

#include "base/check.h"

namespace plugrad::nn {
namespace {

Tensor averaged(const Tensor& average, const Tensor& source, double decay) {
  const DType own = average.dtype(), compute = own == DType::F64 ? own : DType::F32;
  const Tensor before = average.detach().cast(compute), now = source.detach().cast(compute);
  return (now + (before - now) * decay).cast(own);
}

}  // namespace

void update_average(const StateDict& average, const StateDict& source, double decay) {
  require(decay >= 0.0 && decay <= 1.0, "[nn::Ema] the decay is {}, not in [0, 1]", decay);
  require(average.size() == source.size(), "[nn::Ema] {} tensors are to follow {}", average.size(),
          source.size());
  std::vector<Tensor> changed;
  for (size_t i = 0; i < average.size(); ++i) {
    const auto& [name, from] = source[i];
    Tensor to = average[i].second;
    require(average[i].first == name && to.shape() == from.shape() && to.dtype() == from.dtype(),
            "[nn::Ema] {} {} {} cannot follow {} {} {}", average[i].first, to_string(to.shape()),
            name_of(to.dtype()), name, to_string(from.shape()), name_of(from.dtype()));
    to.assign(from.requires_grad() ? averaged(to, from, decay) : from.detach());
    changed.push_back(to);
  }
  Tensor::realize(changed);
}

}  // namespace plugrad::nn
