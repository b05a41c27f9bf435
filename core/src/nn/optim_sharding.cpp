// The state of optimisers: its first values, and how it lies on a mesh.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/check.h"
#include "nn/become.h"
#include "nn/optim_state.h"
#include "plugrad/device.h"
#include "plugrad/host_view.h"
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

/// Pages that nothing writes take no memory.
std::shared_ptr<const void> zero_bytes(size_t count) {
  void* const bytes = std::calloc(std::max<size_t>(count, 1), 1);
  if (bytes == nullptr) throw std::bad_alloc();
  return {bytes, [](void* memory) { std::free(memory); }};
}

uint64_t size_bytes(const Tensor& x, DType dtype) {
  return static_cast<uint64_t>(x.numel()) * size_of(dtype);
}

/// Zeros in place of `part`, which read the bytes of `zeros` until a step replaces them. A buffer of
/// its own: equal constants would share a node until the first step assigns to them, and that step
/// would have another graph than later ones.
Tensor zeros_like(const Tensor& part, DType dtype, const std::shared_ptr<const void>& zeros,
                  const std::string& device) {
  const std::span bytes(static_cast<const std::byte*>(zeros.get()), size_bytes(part, dtype));
  return Tensor::from_bytes(bytes, part.shape(), dtype, device, zeros);
}

/// The same in the parts of a tensor on a mesh.
Tensor zeros_like_parts(const Tensor& x, DType dtype, const std::shared_ptr<const void>& zeros) {
  std::vector<Tensor> parts;
  for (const Tensor& part : x.shards())
    parts.push_back(zeros_like(part, dtype, zeros, part.device()));
  if (parts.empty())  // the mesh is in other processes: nothing is read
    return zeros_like(x, dtype, zeros, Device::default_device()).shard(x.mesh(), x.shard_spec());
  return from_shards(x.mesh(), x.shard_spec(), x.shape(), parts);
}

}  // namespace

std::vector<Tensor> Optimizer::zeros_like_parameters() {
  if (!zeros_) {
    uint64_t most = 0;
    for (const Tensor& p : parameters_) most = std::max(most, size_bytes(p, state_dtype(p)));
    zeros_ = zero_bytes(most);
  }
  std::vector<Tensor> tensors;
  for (const Tensor& p : parameters_)
    tensors.push_back(p.is_sharded() ? zeros_like_parts(p, state_dtype(p), zeros_)
                                     : zeros_like(p, state_dtype(p), zeros_, p.device()));
  states_.insert(states_.end(), tensors.begin(), tensors.end());
  return tensors;
}

void Optimizer::shard_state(std::string_view axes) {
  nn::require_outside_jit("shard_state");
  require(!axes.empty(), "[shard_state] no axis is named; give one of the mesh: \"data\"");
  const bool is_any_sharded =
      std::ranges::any_of(parameters_, [](const Tensor& p) { return p.is_sharded(); });
  require(is_any_sharded,
          "[shard_state] no parameter is on a mesh; shard the module by shard(net, mesh) or "
          "data_parallel(net, mesh) before the optimiser is made");
  for (const Tensor& p : parameters_)  // throws for an unknown axis before anything moves
    if (p.is_sharded()) p.detach().reshape({p.numel()}).shard(p.mesh(), {axes});
  for (size_t i = 0; i < states_.size(); ++i) {
    const Tensor& parameter = parameters_[i % parameters_.size()];
    if (!parameter.is_sharded()) continue;
    const ShardSpec spec = cut_along(parameter.shard_spec(), std::string(axes));
    if (states_[i].shard_spec() == spec) continue;
    nn::become("shard_state", states_[i], states_[i].detach().shard(states_[i].mesh(), spec));
    states_[i].realize();  // one at a time, so that only one is there before and after
  }
}

/// Moves x, of the shape of parameter i, to where the state of the parameter lies.
Tensor Optimizer::as_state(size_t i, const Tensor& x) const {
  if (states_.empty() || !x.is_sharded()) return x;
  const Tensor& state = states_[i];
  require(
      state.is_sharded() && state.mesh() == x.mesh(),
      "[optim] parameter {}, of shape {}, is on {}, its state on {}; create the optimiser after "
      "shard(net, mesh), or move it as well: shard(optimizer, mesh)",
      i, to_string(x.shape()), x.device(), state.device());
  const ShardSpec spec = state.shard_spec();
  return x.shard_spec() == spec ? x : x.shard(x.mesh(), spec);
}

}  // namespace plugrad::optim
