// How the state of optimisers lies on a mesh.
#include <algorithm>

#include "base/check.h"
#include "nn/become.h"
#include "plugrad/optim.h"
#include "plugrad/sharding.h"

namespace plugrad::optim {
namespace {

bool names_axis_of(const std::string& dim, const std::string& axes) {
  const std::string within = "+" + dim + "+";
  for (size_t begin = 0, end; begin < axes.size(); begin = end + 1) {
    end = std::min(axes.find('+', begin), axes.size());
    if (within.find("+" + axes.substr(begin, end - begin) + "+") != std::string::npos) return true;
  }
  return false;
}

/// `spec` with the first dimension that is not cut, cut along `axes`; itself if there is none.
ShardSpec cut_along(const ShardSpec& spec, const std::string& axes) {
  std::vector<std::string> dims = spec.dims();
  if (std::ranges::any_of(dims, [&](const auto& dim) { return names_axis_of(dim, axes); }))
    return spec;
  const auto free = std::ranges::find(dims, "");
  if (free != dims.end()) *free = axes;
  return ShardSpec(std::move(dims));
}

}  // namespace

void Optimizer::shard_state(std::string_view axes) {
  nn::require_outside_jit("shard_state");
  require(!axes.empty(), "[shard_state] no axis is named; give one of the mesh: \"data\"");
  const bool is_any_sharded =
      std::ranges::any_of(parameters_, [](const Tensor& p) { return p.is_sharded(); });
  require(is_any_sharded,
          "[shard_state] no parameter is on a mesh; call nn::shard(net, mesh) or "
          "nn::data_parallel(net, mesh) before the optimiser is made");
  for (const Tensor& p : parameters_)  // throws for an unknown axis before anything moves
    if (p.is_sharded()) p.detach().reshape({p.numel()}).shard(p.mesh(), {axes});
  std::vector<Tensor> changed;
  for (size_t i = 0; i < states_.size(); ++i) {
    const Tensor& parameter = parameters_[i % parameters_.size()];
    if (!parameter.is_sharded()) continue;
    const ShardSpec spec = cut_along(parameter.shard_spec(), std::string(axes));
    if (states_[i].shard_spec() == spec) continue;
    nn::become("shard_state", states_[i], states_[i].detach().shard(states_[i].mesh(), spec));
    changed.push_back(states_[i]);
  }
  if (!changed.empty()) Tensor::realize(changed);
}

/// Moves x, of the shape of parameter i, to where the state of the parameter lies.
Tensor Optimizer::as_state(size_t i, const Tensor& x) const {
  if (states_.empty() || !x.is_sharded()) return x;
  const Tensor& state = states_[i];
  require(
      state.is_sharded() && state.mesh() == x.mesh(),
      "[optim] parameter {}, of shape {}, is on {}, its state on {}; create the optimiser after "
      "nn::shard, or move it as well: nn::shard(optimizer, mesh)",
      i, to_string(x.shape()), x.device(), state.device());
  const ShardSpec spec = state.shard_spec();
  return x.shard_spec() == spec ? x : x.shard(x.mesh(), spec);
}

}  // namespace plugrad::optim
