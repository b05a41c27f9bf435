/// Exponential moving averages of a module's parameters.
#pragma once

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// average = decay * average + (1 - decay) * source for the parameters of `source`, at least in
/// f32; the other tensors of `source` are copied. Computes the result before it returns. Errors:
/// User for a decay outside [0, 1] and states that differ in names, shapes or dtypes.
PLUGRAD_API void update_average(const StateDict& average, const StateDict& source, double decay);

/// A copy of a module whose parameters are the exponential moving average of the original's and
/// need no gradients:
///   nn::Ema ema(net, 0.999);
///   … each step: optimizer.step(); ema.update(net);
///   ema.module(x)
/// Polyak and Juditsky 1992.
template <class Module>
struct Ema {
  explicit Ema(const Module& source, double decay_ = 0.999) : module(clone(source)), decay(decay_) {
    for (auto& [name, tensor] : state_dict(module))
      if (tensor.requires_grad()) Tensor(tensor).requires_grad_(false);
  }
  void update(const Module& source) {
    update_average(state_dict(module), state_dict(source), decay);
  }
  Module module;
  double decay;
};

}  // namespace plugrad::nn
