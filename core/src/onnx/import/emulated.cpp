#include "onnx/import/emulated.h"

#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"

namespace plugrad::onnx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Sources: Micikevicius et al., FP8 formats for deep learning, 2022 (fn); Noune et al., 8-bit
// numerical formats for deep neural networks, 2022 (fnuz); OCP Microscaling formats 1.0 (e2m1).
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  double most;
  bool has_infinity;
  bool has_one_zero;  // whose negative is NaN
};

std::optional<FloatFormat> format_of(DataType type) {
  switch (type) {
    case DataType::Float8e4m3fn:
      return FloatFormat{4, 3, 7, 448, false, false};
    case DataType::Float8e4m3fnuz:
      return FloatFormat{4, 3, 8, 240, false, true};
    case DataType::Float8e5m2:
      return FloatFormat{5, 2, 15, 57344, true, false};
    case DataType::Float8e5m2fnuz:
      return FloatFormat{5, 2, 16, 57344, false, true};
    case DataType::Float4e2m1:
      return FloatFormat{2, 1, 1, 6, false, false};
    default:
      return {};
  }
}

// The layout of the floats that values are rounded in.
struct Wide {
  DType dtype, bits;
  int mantissa_bits;
  int64_t bias;
};
Wide wide_of(DType dtype) {
  return dtype == DType::F64 ? Wide{DType::F64, DType::I64, 52, 1023}
                             : Wide{DType::F32, DType::I32, 23, 127};
}

// The biased exponents of x.
Tensor exponents_of(const Tensor& x, const Wide& wide) {
  return (x.bitcast(wide.bits) >> wide.mantissa_bits) & (2 * wide.bias + 1);
}

Tensor rounded_to_format(const Tensor& given, const FloatFormat& format, bool saturates) {
  const Wide wide = wide_of(given.dtype());
  const Tensor x = given.cast(wide.dtype);
  const Tensor exponents = exponents_of(x, wide).maximum(wide.bias + 1 - format.bias);
  const Tensor step =
      ((exponents - format.mantissa_bits) << wide.mantissa_bits).bitcast(wide.dtype);
  Tensor y = (x / step).round() * step;
  const double beyond = saturates ? format.most : format.has_infinity ? kInf : kNan;
  y = (y > format.most).where(beyond, (y < -format.most).where(-beyond, y));
  if (format.has_one_zero) y = (y == 0).where(0.0, y);
  return y.cast(DType::F32);
}

// Powers of two: the exponent of f32 with the same bias. 0 and what is less than all of them is the
// least or NaN.
Tensor rounded_to_power(const Tensor& given, const Rounding& rounding) {
  const Tensor x = given.cast(DType::F32);
  const Tensor bits = x.bitcast(DType::I32), mantissa = bits & 0x7fffff;
  Tensor code = (bits >> 23) & 255;
  // Below 2^-126 the mantissa has the exponent: 2^-127 is its highest bit.
  const Tensor half = Tensor(0x400000).cast(DType::I32);
  if (rounding.mode == "up")
    code = code + (mantissa > (code == 0).where(half, 0)).cast(DType::I32);
  else if (rounding.mode == "nearest")
    code = code + (mantissa >= (code == 0).where(half + half / 2, half)).cast(DType::I32);
  Tensor y = (code << 23).bitcast(DType::F32);
  const double least = std::ldexp(1.0, -127), most = std::ldexp(1.0, 127);
  y = (code == 0).where(least, y);
  const Tensor is_low = x < (rounding.mode == "nearest" ? least * 0.5 : least);
  y = (code > 254).where(rounding.saturates ? most : kNan, y);
  y = is_low.where(rounding.saturates ? least : kNan, y);
  return x.isnan().where(kNan, y);
}

}  // namespace

bool is_emulated(DataType type) {
  switch (type) {
    case DataType::Int4:
    case DataType::Uint4:
    case DataType::Int2:
    case DataType::Uint2:
    case DataType::Float8e8m0:
      return true;
    default:
      return format_of(type).has_value();
  }
}

int bits_of(DataType type) {
  switch (type) {
    case DataType::Int2:
    case DataType::Uint2:
      return 2;
    case DataType::Int4:
    case DataType::Uint4:
    case DataType::Float4e2m1:
      return 4;
    default:
      return 8;
  }
}

IntegerRange range_of(DataType type, DType dtype) {
  const int bits = is_emulated(type) ? bits_of(type) : static_cast<int>(size_of(dtype)) * 8;
  if (is_unsigned(dtype)) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

double decoded(unsigned code, DataType type) {
  if (type == DataType::Float8e8m0)
    return code == 255 ? kNan : std::ldexp(1.0, static_cast<int>(code) - 127);
  const auto format = format_of(type);
  if (!format) {
    const bool is_negative =
        (type == DataType::Int4 || type == DataType::Int2) && code >> (bits_of(type) - 1) != 0;
    return static_cast<double>(code) - (is_negative ? std::ldexp(1.0, bits_of(type)) : 0);
  }
  const unsigned sign = code >> (bits_of(type) - 1);
  const int exponent =
      static_cast<int>(code >> format->mantissa_bits) & ((1 << format->exponent_bits) - 1);
  const int mantissa = static_cast<int>(code) & ((1 << format->mantissa_bits) - 1);
  if (format->has_one_zero && code == 0x80) return kNan;
  const double one = std::ldexp(1.0, format->mantissa_bits);
  double value = exponent == 0 ? std::ldexp(mantissa / one, 1 - format->bias)
                               : std::ldexp(1 + mantissa / one, exponent - format->bias);
  if (value > format->most) value = format->has_infinity && mantissa == 0 ? kInf : kNan;
  return sign != 0 ? -value : value;
}

Tensor rounded_to(const Tensor& x, DataType type, const Rounding& rounding) {
  if (type == DataType::Float8e8m0) return rounded_to_power(x, rounding);
  if (const auto format = format_of(type))
    return rounded_to_format(x, *format, rounding.saturates || type == DataType::Float4e2m1);
  const int bits = bits_of(type);
  const Tensor low = x.cast(DType::I32) & ((1 << bits) - 1);
  if (type == DataType::Uint4 || type == DataType::Uint2) return low.cast(DType::U8);
  const int sign = 1 << (bits - 1);
  return ((low ^ sign) - sign).cast(DType::I8);
}

}  // namespace plugrad::onnx
