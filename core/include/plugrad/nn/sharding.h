/// Modules and optimisers on a mesh of devices (sharding.h).
///   Mesh mesh({{"data", 2}}, {"CPU", "OPENCL"});
///   nn::data_parallel(net, mesh);                      // parameters on every device
///   optim::Adam opt(nn::parameters(net));
///   Tensor loss = loss_of(net(x.shard(mesh, {"data"})), y.shard(mesh, {"data"}));
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugrad/nn/state.h"
#include "plugrad/sharding.h"

namespace plugrad::nn {

/// How tensors lie whose names match a pattern, in which `*` stands for any characters:
/// {"blocks.*.up.weight", {"model"}}.
struct ShardRule {
  std::string pattern;
  ShardSpec spec;
};

/// Moves each tensor of `state` to the mesh, by the first rule that matches its name; without one
/// every device has all of it, and always of a tensor without dimensions. Every handle of these
/// tensors sees the change; gradients are dropped. Errors: User for a rule that matches no name,
/// specs that do not fit, listed by name, a tensor with two names and two specs, values that differ
/// between processes, and in a jitted function; then nothing is moved.
PLUGRAD_API void shard_state(const StateDict& state, const Mesh& mesh,
                             const std::vector<ShardRule>& rules = {});
/// nn::shard(net, mesh, {{"*.up.weight", {"model"}}}), of a module or an optimiser. Optimisers that
/// hold tensors of the module are not moved: create them afterwards. Jitted functions are recorded
/// again.
template <class Module>
Module& shard(Module& module, const Mesh& mesh, const std::vector<ShardRule>& rules = {}) {
  shard_state(state_dict(module), mesh, rules);
  return module;
}

/// Every device has all parameters and takes a part of each batch: x.shard(mesh, {"data"}). Losses
/// and gradients are those of the whole batch; the rules of propagation add their terms.
template <class Module>
Module& data_parallel(Module& module, const Mesh& mesh) {
  return shard(module, mesh);
}

/// Rules that cut the matrices of a state along an axis of a mesh. MultiHeadAttention: q_proj,
/// k_proj and v_proj by heads, out_proj by its inputs. A pair of Linear that follow each other in
/// one module, the second taking as many values as the first returns: the first by outputs, the
/// second by inputs, so that each device computes its part of the values between them. Every other
/// Linear by outputs, and Embedding by rows. To keep a tensor whole, put a rule of its own in front:
/// rules.insert(rules.begin(), {"place.weight", {}}). Shoeybi et al. 2019.
PLUGRAD_API std::vector<ShardRule> tensor_parallel_rules(const StateDict& state,
                                                         std::string_view axis);
/// nn::shard(net, mesh, nn::tensor_parallel(net, "model")).
template <class Module>
std::vector<ShardRule> tensor_parallel(const Module& module, std::string_view axis) {
  return tensor_parallel_rules(state_dict(module), axis);
}

}  // namespace plugrad::nn
