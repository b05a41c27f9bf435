#include "oracle/alu.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/graph.h"
#include "ir/round.h"
#include "oracle/array.h"

namespace plugrad::oracle {
namespace {

[[noreturn]] void refuse(Op op, DType dtype) {
  fail(ErrorKind::Unsupported, "[evaluate] {} does not work on {}", op_info(op).name,
       name_of(dtype));
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double max_float(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return a > b ? a : b;
}

double fused(double a, double b, double c, DType dtype) {
  if (dtype != DType::F32) return std::fma(a, b, c);
  return std::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

double float_alu(Op op, DType dtype, std::span<const double> x) {
  switch (op) {
    case Op::Add:
      return x[0] + x[1];
    case Op::Sub:
      return x[0] - x[1];
    case Op::Mul:
      return x[0] * x[1];
    case Op::FDiv:
      return x[0] / x[1];
    case Op::Max:
      return max_float(x[0], x[1]);
    case Op::Fma:
      return fused(x[0], x[1], x[2], dtype);
    case Op::Neg:
      return -x[0];
    case Op::Recip:
      return 1.0 / x[0];
    case Op::Sqrt:
      return std::sqrt(x[0]);
    case Op::Trunc:
      return std::trunc(x[0]);
    case Op::Mod:
      return std::fmod(x[0], x[1]);
    case Op::Exp2:
      return std::exp2(x[0]);
    case Op::Log2:
      return std::log2(x[0]);
    case Op::Sin:
      return std::sin(x[0]);
    case Op::Exp:
      return std::exp(x[0]);
    case Op::Log:
      return std::log(x[0]);
    case Op::Pow:
      return std::isnan(x[1] * std::log(x[0])) ? kNaN : std::pow(std::fabs(x[0]), x[1]);
    case Op::Cos:
      return std::cos(x[0]);
    case Op::Tan:
      return std::tan(x[0]);
    default:
      refuse(op, dtype);
  }
}

// T is int64_t or uint64_t: the two differ in order, division and right shift.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
  return a / b;
}

template <class T>
T floor_quotient(T a, T b) {
  const T q = quotient(a, b);
  const T rest = a - static_cast<T>(static_cast<uint64_t>(q) * static_cast<uint64_t>(b));
  return b != 0 && rest != 0 && ((rest < 0) != (b < 0)) ? q - 1 : q;
}

template <class T>
uint64_t shift(Op op, T a, int64_t count, DType dtype) {
  const int bits = dtype == DType::Index ? 64 : static_cast<int>(size_of(dtype)) * 8;
  const bool outside = count < 0 || count >= bits;
  if (op == Op::Shl) return outside ? 0 : static_cast<uint64_t>(a) << count;
  if (outside) return a < 0 ? ~uint64_t{0} : 0;
  return static_cast<uint64_t>(a >> count);
}

// threefry2x32 of Random123: a word of the key is added after every fourth round.
uint32_t threefry_word(std::span<const uint64_t> x, size_t word) {
  const uint32_t key[3] = {static_cast<uint32_t>(x[0]), static_cast<uint32_t>(x[1]),
                           static_cast<uint32_t>(x[0] ^ x[1] ^ 0x1BD11BDA)};
  const int distances[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t words[2] = {static_cast<uint32_t>(x[2]) + key[0], static_cast<uint32_t>(x[3]) + key[1]};
  for (uint32_t round = 1; round <= 20; ++round) {
    words[0] += words[1];
    words[1] = std::rotl(words[1], distances[(round - 1) % 8]) ^ words[0];
    if (round % 4 != 0) continue;
    words[0] += key[round / 4 % 3];
    words[1] += key[(round / 4 + 1) % 3] + round / 4;
  }
  return words[word];
}

template <class T>
uint64_t int_alu(Op op, DType dtype, std::span<const uint64_t> x) {
  const T a = static_cast<T>(x[0]), b = x.size() > 1 ? static_cast<T>(x[1]) : T{0};
  const auto rest = [&](T q) { return x[0] - static_cast<uint64_t>(q) * x[1]; };
  switch (op) {
    case Op::Add:
      return x[0] + x[1];
    case Op::Sub:
      return x[0] - x[1];
    case Op::Mul:
      return x[0] * x[1];
    case Op::Fma:
      return x[0] * x[1] + x[2];
    case Op::Neg:
      return 0 - x[0];
    case Op::Max:
      return a > b ? x[0] : x[1];
    case Op::And:
      return x[0] & x[1];
    case Op::Or:
      return x[0] | x[1];
    case Op::Xor:
      return x[0] ^ x[1];
    case Op::IDiv:
      return static_cast<uint64_t>(quotient(a, b));
    case Op::Mod:
      return rest(quotient(a, b));
    case Op::FloorDiv:
      return static_cast<uint64_t>(floor_quotient(a, b));
    case Op::FloorMod:
      return rest(floor_quotient(a, b));
    case Op::Shl:
    case Op::Shr:
      return shift(op, a, static_cast<int64_t>(x[1]), dtype);
    case Op::Threefry0:
      return threefry_word(x, 0);
    case Op::Threefry1:
      return threefry_word(x, 1);
    default:
      refuse(op, dtype);
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  return op == Op::CmpLt ? a < b : op == Op::CmpEq ? a == b : a != b;
}

uint64_t compare_bits(Op op, DType source, std::span<const uint64_t> x) {
  if (is_float(source))
    return compare(op, std::bit_cast<double>(x[0]), std::bit_cast<double>(x[1]));
  if (is_unsigned(source)) return compare(op, x[0], x[1]);
  return compare(op, static_cast<int64_t>(x[0]), static_cast<int64_t>(x[1]));
}

}  // namespace

uint64_t apply(Op op, DType dtype, DType source, std::span<const uint64_t> args) {
  if (op == Op::Where) return args[0] ? args[1] : args[2];
  if (is_compare(op)) return compare_bits(op, source, args);
  if (op == Op::Cast) return cast_value(args[0], source, dtype);
  if (op == Op::Bitcast) return bitcast_value(args[0], source, dtype);
  if (!is_float(dtype)) {
    const uint64_t wide =
        is_unsigned(dtype) ? int_alu<uint64_t>(op, dtype, args) : int_alu<int64_t>(op, dtype, args);
    return static_cast<uint64_t>(round_int(static_cast<int64_t>(wide), dtype));
  }
  double real[3];
  for (size_t i = 0; i < args.size(); ++i) real[i] = std::bit_cast<double>(args[i]);
  const double result = float_alu(op, dtype, std::span(real, args.size()));
  return std::bit_cast<uint64_t>(round_float(result, dtype));
}

uint64_t cast_value(uint64_t bits, DType from, DType to) {
  if (is_float(from)) return bits_of(std::bit_cast<double>(bits), to);
  if (!is_float(to)) return bits_of(static_cast<int64_t>(bits), to);
  // Rounded once: a conversion through double would round a 64-bit integer twice, so the bits
  // beyond double's precision are merged into its last bit.
  const bool negative = from != DType::U64 && static_cast<int64_t>(bits) < 0;
  uint64_t magnitude = negative ? 0 - bits : bits;
  if (to != DType::F64 && magnitude >> 53 != 0)
    magnitude = (magnitude & ~uint64_t{0x7ff}) | ((magnitude & 0x7ff) != 0) << 11;
  const double value = static_cast<double>(magnitude);
  return bits_of(negative ? -value : value, to);
}

uint64_t bitcast_value(uint64_t bits, DType from, DType to) {
  const Array one{from, {}, {bits}};
  return from_bytes(to, {}, to_bytes(one)).bits[0];
}

}  // namespace plugrad::oracle
