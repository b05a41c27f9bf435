// A tensor core of the device as index arithmetic: which element each lane of a work-item is.
#pragma once

#include <optional>
#include <string_view>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// The bits of a published layout, as docs/kernel-ir.md writes them.
struct LaneLayout {
  uint32_t number;
  std::string_view a, b, c;
};
inline constexpr LaneLayout kLaneLayouts[] = {
    {1, "k0 m3 k3 | k1 k2 m0 m1 m2", "k0 k3 | k1 k2 n0 n1 n2", "n0 m3 | n1 n2 m0 m1 m2"},
    {2, "m3 k2 | k0 k1 m0 m1 m2", "k2 | k0 k1 n0 n1 n2", "n0 m3 | n1 n2 m0 m1 m2"},
};

struct TensorCore {
  uint32_t number;  // in the device's table
  int64_t m, n, k, items;
  DType input;
  uint32_t lanes_a, lanes_b, lanes_c;
  LaneLayout layout;
};

/// Tensor core `number` of the device; nothing where there is none, or none that kernels can use.
std::optional<TensorCore> find_tensor_core(const pgr_device_caps& caps, uint32_t number);

/// Along `axis` ('m', 'n' or 'k'), where lane `lane` of work-item `item` (an expression) lies.
Id place_along(Graph& g, std::string_view fragment, char axis, Id item, uint32_t lane);

/// The same for a work-item that is known.
int64_t place_of(std::string_view fragment, char axis, uint32_t item, uint32_t lane);

/// Whether a WMMA is below.
bool has_wmma(const Graph& g, Id root);

}  // namespace plugrad::codegen
