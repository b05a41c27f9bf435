// CAST and BITCAST: exact or rounded once, whatever the pair of dtypes.
#include "plugrad/sdk/op_info.h"
#include "render/kernel_writer.h"
#include "render/text.h"

namespace plugrad::render {
namespace {

bool is_float(uint32_t dtype) { return sdk::dtype_info(dtype)->is_float; }
bool is_small_float(uint32_t dtype) { return dtype == PGR_DTYPE_F16 || dtype == PGR_DTYPE_BF16; }

}  // namespace

// `prec` is that of `text`, then that of the result. Neither type is bool.
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
  if (from.dtype == PGR_DTYPE_F16 && to.dtype != PGR_DTYPE_F32) {
    text = cast_text(text, from, f32, prec);
    return cast_text(text, f32, to, prec);
  }
  if (is_small_float(to.dtype) && from.dtype == PGR_DTYPE_F64)
    return cast_text(call(*dialect_.f64_to_f32_odd, f32), f32, to, prec);
  if (is_small_float(to.dtype) && from.dtype != PGR_DTYPE_F32) {
    // f32 holds an integer exactly, or it is too large for f16 anyway; bf16 reaches further.
    const bool is_exact = to.dtype == PGR_DTYPE_F16 || bits_of(from.dtype) < 32;
    const Type middle = is_exact ? f32 : f64;
    text = cast_text(text, from, middle, prec);
    return cast_text(text, middle, to, prec);
  }
  if (to.dtype == PGR_DTYPE_BF16) return call(*dialect_.f32_to_bf16, to);
  if (is_float(from.dtype) && !is_float(to.dtype)) return call(*dialect_.to_int, to);
  if (to.lanes == 1 && prec > Prec::Unary) text = "(" + text + ")";
  prec = to.lanes == 1 ? Prec::Unary : Prec::Atom;
  return convert(text, from, to);
}

void KernelWriter::write_cast(uint32_t number) {
  const uint32_t source = ir_.source(number, 0);
  const Type to = type_of(number), from{inst(source).dtype, to.lanes};
  if (to.dtype == PGR_DTYPE_BOOL && from.dtype != PGR_DTYPE_BOOL) {
    const uint64_t zero = 0;
    std::string text = operand(source, to.lanes, 0, Prec::Unary);
    const bool is_bits = from.dtype == PGR_DTYPE_BF16;  // an integer in C: -0 is not 0
    if (is_bits) text = "(" + text + " & 0x7fff)";
    values_[number].mask_bits = static_cast<uint16_t>(bits_of(from.dtype));
    const std::string none =
        to.lanes == 1 ? prelude_.literal(is_bits ? uint32_t{PGR_DTYPE_U16} : from.dtype, zero)
                      : "(" + prelude_.type(from) + ")0";
    return define(number, text + " != " + none, Prec::Loose);
  }
  if (from.dtype == PGR_DTYPE_BOOL && to.dtype != PGR_DTYPE_BOOL) {
    const bool is_bits = to.dtype == PGR_DTYPE_BF16;
    const std::string one = is_bits ? "0x3f80" : "1", type = prelude_.type(to);
    if (to.lanes == 1)
      return define(number, is_bits ? use(source, Prec::Unary) + " ? 0x3f80 : 0"
                                    : "(" + type + ")" + use(source, Prec::Unary),
                    is_bits ? Prec::Loose : Prec::Unary);
    const std::string mask = inst(source).lanes == 1
                                 ? use(source, Prec::Unary)
                                 : mask_operand(source, to.lanes, bits_of(to.dtype), Prec::Unary);
    return define(number, mask + " ? (" + type + ")" + one + " : (" + type + ")0", Prec::Loose);
  }
  if (to.dtype == PGR_DTYPE_BOOL)
    values_[number].mask_bits = static_cast<uint16_t>(mask_bits_for(number));
  // Of one lane and many: the cast is done once, and its result repeated.
  const bool is_repeated = inst(source).lanes == 1 && to.lanes > 1;
  if (is_repeated && to.dtype != PGR_DTYPE_BOOL) {
    Prec prec = values_[source].prec;
    std::string text = cast_text(use(source, Prec::Loose), {from.dtype, 1}, {to.dtype, 1}, prec);
    if (prec != Prec::Atom) text = "(" + text + ")";
    return define(number, expand(dialect_.splat, {{'T', prelude_.type(to)}, {'0', text}}),
                  Prec::Unary);
  }
  Prec prec = Prec::Loose;
  std::string text = operand(source, to.lanes, values_[number].mask_bits, Prec::Loose);
  if (to.dtype != PGR_DTYPE_BOOL) {
    prec = values_[source].prec;
    text = cast_text(std::move(text), from, to, prec);
  }
  define(number, std::move(text), prec);
}

void KernelWriter::write_bitcast(uint32_t number) {
  const uint32_t source = ir_.source(number, 0);
  const Type to = type_of(number);
  const bool is_vector = to.lanes > 1;
  const std::string text = operand(source, to.lanes, 0, is_vector ? Prec::Unary : Prec::Loose);
  define(number,
         expand(is_vector ? dialect_.bits_vector : dialect_.bits_scalar,
                {{'T', prelude_.type(to)}, {'0', text}}),
         is_vector ? Prec::Unary : Prec::Atom);
}

}  // namespace plugrad::render
