// An n-dimensional array of exact values, used by the evaluator of tensor graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad::oracle {

/// Row-major. Each element has the form of graph.h's constants of the dtype: an int64_t or a
/// double.
struct Array {
  DType dtype = DType::Void;
  std::vector<int64_t> shape;
  std::vector<uint64_t> bits;

  size_t size() const { return bits.size(); }
  int64_t integer(size_t i) const { return static_cast<int64_t>(bits[i]); }
  double real(size_t i) const;  ///< element i of any dtype as a double
};

/// Converts from and to the storage form of device memory.
Array from_bytes(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes);
std::vector<std::byte> to_bytes(const Array& array);

}  // namespace plugrad::oracle
