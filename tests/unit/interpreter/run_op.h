// Runs one op on given lane bits and returns the result's bits.
#pragma once

#include <vector>

#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/interpreter.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::sdk {

inline constexpr uint32_t I32 = PGR_DTYPE_I32, F32 = PGR_DTYPE_F32;

inline void run_kernel(const IrBuilder& builder, std::vector<InterpreterBuffer> buffers,
                       std::vector<uint64_t> scalars = {}) {
  const auto block = builder.finish();
  const Interpreter interpreter(decode_ir(block));
  const pgr_ir_header& h = interpreter.ir().header();
  interpreter.run({buffers,
                   scalars,
                   {h.group_count[0], h.group_count[1], h.group_count[2]},
                   {h.local_size[0], h.local_size[1], h.local_size[2]}});
}

// Integers in the form of CONST: sign-extended if signed.
inline uint64_t run_op(uint32_t op, uint32_t dtype, std::vector<uint64_t> operands,
                       uint32_t result = PGR_DTYPE_VOID) {
  if (result == PGR_DTYPE_VOID) result = dtype;
  IrBuilder b("one_op");
  const auto out = b.buffer(result, 1);
  std::vector<IrBuilder::Value> sources;
  for (uint64_t bits : operands) sources.push_back(b.constant_bits(dtype, bits));
  const auto value = b.emit(op, result, 1, sources);
  b.store(out, b.constant_int(PGR_DTYPE_I32, 0), value);
  uint64_t memory = 0;
  run_kernel(b, {{&memory, dtype_size(result)}});
  const DtypeInfo& info = *dtype_info(result);
  const uint32_t bits = info.size_bytes * 8;
  if (info.is_int && info.is_signed && bits < 64 && (memory >> (bits - 1) & 1))
    memory |= ~uint64_t{0} << bits;
  return memory;
}

inline int64_t int_op(uint32_t op, uint32_t dtype, std::vector<int64_t> operands) {
  return static_cast<int64_t>(
      run_op(op, dtype, std::vector<uint64_t>(operands.begin(), operands.end())));
}

inline double float_op(uint32_t op, uint32_t dtype, std::vector<double> operands) {
  std::vector<uint64_t> bits;
  for (double value : operands) bits.push_back(encode_float(dtype, value));
  return decode_float(dtype, run_op(op, dtype, bits));
}

inline bool float_compare(uint32_t op, uint32_t dtype, double a, double b) {
  return run_op(op, dtype, {encode_float(dtype, a), encode_float(dtype, b)}, PGR_DTYPE_BOOL) != 0;
}

}  // namespace plugrad::sdk
