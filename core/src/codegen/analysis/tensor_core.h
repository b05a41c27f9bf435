// A tensor core of the device as index arithmetic: which element each lane of a work-item is.
#pragma once

#include <optional>
#include <span>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Which bit of m, n or k each bit of a lane's number is (PGR_LANE_BIT), and each bit of its
/// work-item's.
struct LaneBits {
  std::span<const uint8_t> lane, item;
};
struct LaneLayout {
  LaneBits a, b, c;
};

struct TensorCore {
  uint32_t number;  // in the device's table
  int64_t m, n, k, items;
  DType input;
  uint32_t lanes_a, lanes_b, lanes_c;
  bool rounds_inputs;
  LaneLayout layout;  // lives as long as the device's capabilities
};

/// Tensor core `number` of the device; nothing where there is none, or none that kernels can use.
std::optional<TensorCore> find_tensor_core(const pgr_device_caps& caps, uint32_t number);

/// Along `axis` (PGR_LANE_AXIS_*), where lane `lane` of work-item `item` (an expression) lies.
Id place_along(Graph& g, const LaneBits& bits, uint32_t axis, Id item, uint32_t lane);

/// The same for a work-item that is known.
int64_t place_of(const LaneBits& bits, uint32_t axis, uint32_t item, uint32_t lane);

/// Whether a WMMA is below.
bool has_wmma(const Graph& g, Id root);

}  // namespace plugrad::codegen
