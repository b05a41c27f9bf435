// int64 emulation: 64-bit integers become pairs of 32-bit words on devices without 64-bit
// arithmetic. Works on kernel IR.
#pragma once

#include "codegen/emit/ir_writer.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::codegen {

/// Whether the kernel uses 64-bit integers in an op that the device does not claim.
bool needs_int64_emulation(const IrWriter& kernel, const pgr_device_caps& caps);

/// The kernel without 64-bit integers: buffers and arrays hold twice as many u32, indices are i32.
/// Errors: Unsupported for buffers with more elements than i32 can count, and for a bitcast between
/// f64 and a 64-bit integer.
IrWriter emulate_int64(const IrWriter& kernel, const pgr_device_caps& caps);

/// A 64-bit value: two u32 instructions with the same lanes, or one lane for all.
struct Pair {
  uint32_t low, high;
};

/// Arithmetic on pairs. Each function appends instructions and returns the result's numbers.
class Int64Math {
 public:
  /// `divides_words`: whether the device divides u32.
  Int64Math(IrWriter& writer, bool divides_words)
      : writer_(writer), divides_words_(divides_words) {}

  // Operations on single words and conditions.
  uint32_t word(uint32_t value);
  uint32_t op(uint16_t op, DType dtype, std::initializer_list<uint32_t> sources);
  uint32_t u32(uint16_t op_number, uint32_t a, uint32_t b) {
    return op(op_number, DType::U32, {a, b});
  }
  uint32_t flag(uint16_t compare, uint32_t a, uint32_t b) {
    return op(compare, DType::Bool, {a, b});
  }
  uint32_t cast(uint32_t a, DType dtype) { return op(PGR_OP_CAST, dtype, {a}); }
  uint32_t invert(uint32_t condition);
  uint32_t number(uint32_t condition) {
    return op(PGR_OP_WHERE, DType::U32, {condition, word(1), word(0)});
  }
  uint32_t lanes(uint32_t a) const { return writer_.insts()[a].lanes; }

  Pair constant(uint64_t value);
  Pair where(uint32_t condition, Pair yes, Pair no);
  Pair bitwise(uint16_t op_number, Pair a, Pair b);
  Pair add(Pair a, Pair b);
  Pair sub(Pair a, Pair b);
  Pair negate(Pair a) { return sub(constant(0), a); }
  Pair mul(Pair a, Pair b);
  Pair max(Pair a, Pair b, bool is_signed) { return where(less(a, b, is_signed), b, a); }
  Pair shift_left(Pair a, Pair count);
  Pair shift_right(Pair a, Pair count, bool is_signed);
  uint32_t less(Pair a, Pair b, bool is_signed);
  uint32_t equal(Pair a, Pair b);
  uint32_t is_negative(Pair a);
  Pair magnitude(Pair a) { return where(is_negative(a), negate(a), a); }

  struct Division {
    Pair quotient, remainder;
  };
  /// Truncating; x / 0 is 0 with remainder x.
  Division divide(Pair a, Pair b, bool is_signed);

  /// Conversions by the rules of docs/kernel-ir.md; floats out of range saturate, NaN gives 0.
  Pair from(uint32_t value, DType dtype, bool is_signed);
  uint32_t to(Pair a, DType dtype, bool is_signed);

 private:
  uint32_t high_product(uint32_t a, uint32_t b);
  Division divide_unsigned(Pair a, Pair b);
  void divide_step(Pair divisor, const uint32_t arrays[4], uint32_t lanes);
  uint32_t new_array(uint32_t lanes, uint32_t start);
  uint32_t spread(uint32_t value, uint32_t lanes);
  uint32_t real(double value, DType dtype);
  Pair from_float(uint32_t value, DType dtype, bool is_signed);
  uint32_t to_f32(Pair a, bool is_signed, bool to_odd);

  IrWriter& writer_;
  const bool divides_words_;
};

}  // namespace plugrad::codegen
