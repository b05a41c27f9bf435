// The .npy format: magic, version, a Python literal that describes the array, its bytes.
//   \x93NUMPY 1 0 | u16 size | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } \n |
//   bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad::io {

struct NpyArray {
  DType dtype = DType::F32;
  bool swapped = false;  ///< big-endian
  bool fortran = false;  ///< the first axis is the innermost
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  ///< exactly what shape and dtype need
};

/// Checks the whole header and the size of the data. `name` is the prefix of messages, e.g.
/// "[load_npy] a.npy". Errors: User, with the name and the reason.
NpyArray parse_npy(std::span<const std::byte> file, std::string_view name);

/// The header of a row-major, little-endian array. Errors: User for a dtype that NumPy lacks.
std::string npy_header(DType dtype, std::span<const int64_t> shape);

}  // namespace plugrad::io
