// Types of elements that no dtype of the devices is equal to: their values lie in tensors of a wider
// dtype, to which operators round and saturate them.
#pragma once

#include <string_view>

#include "onnx/file/messages.h"
#include "plugrad/tensor.h"

namespace plugrad::onnx {

/// int4, uint4, int2 and uint2 lie in i8 and u8; the float types of 8 and 4 bits in f32.
bool is_emulated(DataType type);
/// Bits of an element in a file.
int bits_of(DataType type);

struct IntegerRange {
  double low, high;
};
/// Of an emulated integer type, or else of the dtype.
IntegerRange range_of(DataType type, DType dtype);

/// The value of an element of an emulated type in a file.
double decoded(unsigned code, DataType type);

/// How values that the type does not have are rounded to it. Source: the operator Cast of ONNX.
struct Rounding {
  bool saturates = true;         // else NaN, or infinity where the type has it
  std::string_view mode = "up";  // of float8e8m0: "up", "down" or "nearest"
};
/// The values of x in the emulated type's dtype. Floats are rounded to the nearest value, halves
/// to even; integers keep their lowest bits.
Tensor rounded_to(const Tensor& x, DataType type, const Rounding& rounding);

}  // namespace plugrad::onnx
