#include "codegen/emit/ir_bits.h"

#include <bit>

#include "ir/facts.h"
#include "ir/round.h"

namespace plugrad::codegen {

uint64_t ir_bits(const Graph& g, Id id) {
  const DType dtype = g[id].dtype;
  if (!is_float(dtype)) return g[id].arg;
  const double value = const_float(g, id);
  if (dtype == DType::F64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode_small_float(value, dtype);
}

}  // namespace plugrad::codegen
