/// Weights and data from a formula that equals record_with_pytorch.py's bit for bit, so that no
/// file of weights is needed.
#pragma once

#include <plugrad/plugrad.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace programs {

/// Numbers in [-1, 1) from a counter: 24 bits of a multiplied and shifted counter.
inline double noise_at(uint64_t seed, uint64_t i) {
  uint64_t x = (i + 1) * 6364136223846793005u + (seed + 1) * 1442695040888963407u;
  x ^= x >> 29;
  x *= 0x9E3779B97F4A7C15u;
  return static_cast<double>(x >> 40) / 8388608.0 - 1.0;
}

/// offset + scale * noise, computed in double and rounded once.
inline plugrad::Tensor noise(const plugrad::Shape& shape, uint64_t seed, double scale = 1.0,
                             double offset = 0.0) {
  uint64_t count = 1;
  for (int64_t size : shape) count *= static_cast<uint64_t>(size);
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(offset + scale * noise_at(seed, i));
  return plugrad::Tensor::from(values, shape);
}

/// Integers in [0, count).
inline plugrad::Tensor integers(const plugrad::Shape& shape, uint64_t seed, int32_t count) {
  uint64_t size = 1;
  for (int64_t axis : shape) size *= static_cast<uint64_t>(axis);
  std::vector<int32_t> values(size);
  for (uint64_t i = 0; i < size; ++i)
    values[i] = static_cast<int32_t>((noise_at(seed, i) + 1.0) / 2.0 * count);
  return plugrad::Tensor::from(values, shape);
}

/// Trained tensor k of the module has the seed 1000 + k: matrices and kernels have the variance
/// gain^2 / (fan in), vectors that are named "weight" are near 1, all others near 0.
template <class Module>
void set_parameters(const Module& module, double gain = 1.0) {
  uint64_t k = 0;
  for (auto& [name, tensor] : plugrad::nn::state_dict(module)) {
    if (!tensor.requires_grad()) continue;
    const uint64_t seed = 1000 + k++;
    const auto fan_in = static_cast<double>(tensor.numel() / tensor.size(0));
    const bool is_scale = tensor.ndim() == 1 && name.ends_with("weight");
    const double scale = tensor.ndim() == 1 ? 0.1 : gain * std::sqrt(3.0 / fan_in);
    plugrad::Tensor(tensor).assign(noise(tensor.shape(), seed, scale, is_scale ? 1.0 : 0.0));
  }
}

}  // namespace programs
