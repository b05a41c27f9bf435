// Renders CAST and BITCAST, exact or rounded once for every pair of dtypes.
#include "plugrad/sdk/op_info.h"
#include "render/text.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {
namespace {

bool is_float(uint32_t dtype) {
  return sdk::dtype_info(dtype)->is_float;
}
bool is_small_float(uint32_t dtype) {
  return dtype == PGR_DTYPE_F16 || dtype == PGR_DTYPE_BF16;
}

}  // namespace

// `prec` is the precedence of `text`, then of the result. Neither type is bool.
std::string KernelWriter::cast_text(std::string text, Type from, Type to, Prec& prec) {
  if (from.dtype == to.dtype) return text;
  const Type f32{PGR_DTYPE_F32, from.lanes}, f64{PGR_DTYPE_F64, from.lanes};
  const auto call = [&](const Helper& helper, Type result) {
    text = prelude_.helper(helper, from, result) + "(" + text + ")";
    prec = Prec::Atom;
    return text;
  };
  if (from.dtype == PGR_DTYPE_BF16)
    return cast_text(call(*dialect_.bf16_to_f32, f32), f32, to, prec);
  if (from.dtype == PGR_DTYPE_F16 && dialect_.f16_to_f32)
    return cast_text(call(*dialect_.f16_to_f32, f32), f32, to, prec);
  if (from.dtype == PGR_DTYPE_F16 && to.dtype != PGR_DTYPE_F32) {
    text = cast_text(text, from, f32, prec);
    return cast_text(text, f32, to, prec);
  }
  if (is_small_float(to.dtype) && from.dtype == PGR_DTYPE_F64)
    return cast_text(call(*dialect_.f64_to_f32_odd, f32), f32, to, prec);
  if (is_small_float(to.dtype) && from.dtype != PGR_DTYPE_F32) {
    // An integer is exact in f32, or too large for f16; bf16 has a larger range.
    const bool is_exact = to.dtype == PGR_DTYPE_F16 || bits_of(from.dtype) < 32;
    const Type middle = is_exact ? f32 : f64;
    if (!is_exact && bits_of(from.dtype) == 64)
      call(*dialect_.i64_to_f64_odd, middle);
    else
      text = cast_text(text, from, middle, prec);
    return cast_text(text, middle, to, prec);
  }
  if (to.dtype == PGR_DTYPE_BF16) return call(*dialect_.f32_to_bf16, to);
  if (to.dtype == PGR_DTYPE_F16 && dialect_.f32_to_f16) return call(*dialect_.f32_to_f16, to);
  if (is_float(from.dtype) && !is_float(to.dtype)) return call(*dialect_.to_int, to);
  if (dialect_.i64_to_f32 && bits_of(from.dtype) == 64 && !is_float(from.dtype) &&
      to.dtype == PGR_DTYPE_F32)
    return call(*dialect_.i64_to_f32, to);
  const bool is_cast = to.lanes == 1 && !dialect_.is_strict;
  if (is_cast && prec > Prec::Unary) text = "(" + text + ")";
  prec = is_cast ? Prec::Unary : Prec::Atom;
  return convert(text, from, to);
}

void KernelWriter::cast_to_bool(uint32_t number, uint32_t source) {
  const Type from{inst(source).dtype, inst(number).lanes};
  values_[number].mask_bits = static_cast<uint16_t>(bits_of(from.dtype));
  std::string text = operand(source, from.lanes, 0, Prec::Unary);
  // stored as an integer, whose -0 is not 0
  const bool is_bits = prelude_.is_kept_as_bits(from.dtype);
  if (is_bits)
    text = "(" + text + " & " + (from.lanes == 1 ? "0x7fff" : splat(from, "0x7fff")) + ")";
  const uint32_t zero_dtype = is_bits ? uint32_t{PGR_DTYPE_U16} : from.dtype;
  const std::string zero = from.lanes == 1 ? prelude_.literal(zero_dtype, 0) : splat(from, "0");
  define(number, text + " != " + zero, Prec::Loose);
}

void KernelWriter::cast_from_bool(uint32_t number, uint32_t source) {
  const Type to = type_of(number);
  const auto typed = [&](const std::string& text) {
    return to.lanes > 1 ? splat(to, text)
                        : expand(dialect_.convert_scalar, {{'T', prelude_.type(to)}, {'0', text}});
  };
  const bool is_bits = prelude_.is_kept_as_bits(to.dtype);
  const char* one = !is_bits ? "1" : to.dtype == PGR_DTYPE_F16 ? "0x3c00" : "0x3f80";
  const std::string condition = is_mask(source)
                                    ? mask_operand(source, to.lanes, bits_of(to.dtype), Prec::Unary)
                                    : use(source, Prec::Unary);
  if (to.lanes == 1 && !is_bits) return define(number, typed(condition), Prec::Unary);
  if (!is_mask(source))
    return define(number, condition + " ? " + typed(one) + " : " + typed("0"), Prec::Loose);
  Prec prec = Prec::Loose;
  std::string text = select(to, condition, typed(one), typed("0"), prec);
  define(number, std::move(text), prec);
}

void KernelWriter::write_cast(uint32_t number) {
  const uint32_t source = ir_.source(number, 0);
  const Type to = type_of(number), from{inst(source).dtype, inst(source).lanes};
  const bool is_from_bool = from.dtype == PGR_DTYPE_BOOL;
  if (to.dtype == PGR_DTYPE_BOOL && !is_from_bool) return cast_to_bool(number, source);
  if (to.dtype != PGR_DTYPE_BOOL && is_from_bool) return cast_from_bool(number, source);
  if (from.dtype == to.dtype) {
    if (is_mask(number)) values_[number].mask_bits = static_cast<uint16_t>(mask_bits_for(number));
    return define(number, operand(source, to.lanes, values_[number].mask_bits, Prec::Unary),
                  Prec::Unary);
  }
  // A scalar is cast once, and its result splatted.
  Prec prec = values_[source].prec;
  std::string text = use(source, Prec::Loose);
  if (dialect_.hide && inst(source).op == PGR_OP_CONST) {
    text = prelude_.helper(*dialect_.hide, from, from) + "(" + text + ")";
    prec = Prec::Atom;
  }
  text = cast_text(std::move(text), from, {to.dtype, from.lanes}, prec);
  if (from.lanes == to.lanes) return define(number, std::move(text), prec);
  if (prec != Prec::Atom) text = "(" + text + ")";
  define(number, splat(to, text), Prec::Unary);
}

// True if a scalar may be rendered as a lane of a vector instead of a variable.
bool KernelWriter::is_lane(uint32_t number) const {
  while (inst(number).op != PGR_OP_LANE || source(number, 0).lanes == 1) {
    const uint16_t op = inst(number).op;
    const bool is_same = (op == PGR_OP_CAST && source(number, 0).dtype == inst(number).dtype) ||
                         (op == PGR_OP_VECTOR && inst(number).lanes == 1) || op == PGR_OP_LANE;
    if (!is_same) return false;
    number = ir_.source(number, 0);
  }
  return true;
}

void KernelWriter::write_bitcast(uint32_t number) {
  const uint32_t source = ir_.source(number, 0);
  const Type to = type_of(number), from{inst(source).dtype, 1};
  if (dialect_.is_strict && to.lanes == 1) {
    const std::string bits = prelude_.to_bits(from.dtype, use(source, Prec::Loose));
    return define(number, prelude_.from_bits(to.dtype, bits), Prec::Atom);
  }
  // C promotes small integers to int, and __builtin_bit_cast of Clang 19 mistakes lane 0 for
  // another lane.
  const bool is_vector = to.lanes > 1;
  const bool is_cast = !is_vector && (bits_of(from.dtype) < 32 || is_lane(source));
  std::string text = operand(source, to.lanes, 0, is_vector || is_cast ? Prec::Unary : Prec::Loose);
  if (is_cast) text = "(" + prelude_.type(from) + ")" + text;
  define(number,
         expand(is_vector ? dialect_.bits_vector : dialect_.bits_scalar,
                {{'T', prelude_.type(to)}, {'0', text}}),
         is_vector ? Prec::Unary : Prec::Atom);
}

}  // namespace plugrad::render
