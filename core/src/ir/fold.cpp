// Folds by operand kind: integers in int64 or uint64 with wrapping, f32 in float, other floats in
// double with one rounding. For +, -, *, / and sqrt of floats with at most 24 bits, rounding the
// double result equals rounding once (53 >= 2 * 24 + 2 bits); fma is excluded.
#include "ir/fold.h"

#include <bit>
#include <cmath>

#include "ir/random/threefry.h"
#include "ir/round.h"

namespace plugrad {
namespace {

int bits_in(DType dtype) {
  if (dtype == DType::Bool) return 1;
  return dtype == DType::Index ? 64 : static_cast<int>(size_of(dtype)) * 8;
}

int64_t shift_left(int64_t a, int64_t count, DType dtype) {
  if (count < 0 || count >= bits_in(dtype)) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(a) << count);
}

int64_t shift_right(int64_t a, int64_t count, DType dtype) {
  const bool negative = !is_unsigned(dtype) && a < 0;
  if (count < 0 || count >= bits_in(dtype)) return negative ? -1 : 0;
  return is_unsigned(dtype) ? static_cast<int64_t>(static_cast<uint64_t>(a) >> count) : a >> count;
}

// Quotients: U64 divides as unsigned; smaller unsigned dtypes fit in int64_t.
int64_t quotient(Op op, int64_t a, int64_t b, DType dtype) {
  if (dtype == DType::U64) {
    return b == 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  }
  return op == Op::IDiv ? truncated_div(a, b) : floor_div(a, b);
}

int64_t remainder_of(Op op, int64_t a, int64_t b, DType dtype) {
  if (dtype == DType::U64) {
    return b == 0 ? a : static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  }
  return op == Op::Mod ? truncated_mod(a, b) : floor_mod(a, b);
}

bool is_less(int64_t a, int64_t b, DType dtype) {
  return dtype == DType::U64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

}  // namespace

std::optional<int64_t> fold_int(Op op, DType dtype, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Add:
      return static_cast<int64_t>(ua + ub);
    case Op::Sub:
      return static_cast<int64_t>(ua - ub);
    case Op::Mul:
      return static_cast<int64_t>(ua * ub);
    case Op::Neg:
      return static_cast<int64_t>(0 - ua);
    case Op::IDiv:
    case Op::FloorDiv:
      return quotient(op, a, b, dtype);
    case Op::Mod:
    case Op::FloorMod:
      return remainder_of(op, a, b, dtype);
    case Op::Max:
      return is_less(a, b, dtype) ? b : a;
    case Op::And:
      return a & b;
    case Op::Or:
      return a | b;
    case Op::Xor:
      return a ^ b;
    case Op::Shl:
      return shift_left(a, b, dtype);
    case Op::Shr:
      return shift_right(a, b, dtype);
    default:
      return std::nullopt;
  }
}

namespace {

template <class F>
std::optional<double> fold_basic(Op op, F a, F b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::FDiv:
      return a / b;
    case Op::Recip:
      return F{1} / a;
    case Op::Sqrt:
      return std::sqrt(a);
    case Op::Neg:
      return -a;
    case Op::Trunc:
      return std::trunc(a);
    case Op::Mod:
      return std::fmod(a, b);  // exact
    case Op::Max:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : (a < b ? b : a);
    default:
      return std::nullopt;
  }
}

std::optional<double> fold_float(Op op, DType dtype, double a, double b, double c) {
  switch (op) {
    case Op::Exp2:
      return std::exp2(a);
    case Op::Log2:
      return std::log2(a);
    case Op::Sin:
      return std::sin(a);
    case Op::Exp:
      return std::exp(a);
    case Op::Log:
      return std::log(a);
    case Op::Pow:
      return std::isnan(b * std::log(a)) ? std::nan("") : std::pow(std::fabs(a), b);
    case Op::Cos:
      return std::cos(a);
    case Op::Tan:
      return std::tan(a);
    case Op::Fma:
      if (dtype == DType::F32) {
        return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
      }
      if (dtype == DType::F64) return std::fma(a, b, c);
      return std::nullopt;
    default:
      break;
  }
  if (dtype == DType::F32) return fold_basic(op, static_cast<float>(a), static_cast<float>(b));
  return fold_basic(op, a, b);
}

std::optional<bool> fold_compare(const Graph& g, Op op, Id a, Id b) {
  const DType dtype = g[a].dtype;
  if (is_float(dtype)) {
    const double x = const_float(g, a), y = const_float(g, b);
    return op == Op::CmpLt ? x < y : op == Op::CmpEq ? x == y : x != y;
  }
  const int64_t x = const_int(g, a), y = const_int(g, b);
  return op == Op::CmpLt ? is_less(x, y, dtype) : op == Op::CmpEq ? x == y : x != y;
}

// Rounds an integer to a double whose last bit is set if bits were cut off (round to odd), so that
// rounding the double to fewer bits equals rounding the integer once.
double rounded_to_odd(int64_t value, bool is_u64) {
  const bool negative = value < 0 && !is_u64;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  constexpr uint64_t kCut = (uint64_t{1} << 11) - 1;
  if (magnitude >> 53 != 0 && (magnitude & kCut) != 0) magnitude = (magnitude & ~kCut) | (kCut + 1);
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

uint64_t fold_cast(const Graph& g, Id source, DType to) {
  if (is_float(g[source].dtype)) return bits_of(const_float(g, source), to);
  if (!is_float(to)) return bits_of(const_int(g, source), to);
  // Converts 64-bit integers to f32 directly: by way of double they would be rounded twice.
  if (to == DType::F32) {
    const float value = g[source].dtype == DType::U64 ? static_cast<float>(g[source].arg)
                                                      : static_cast<float>(const_int(g, source));
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  }
  if (to == DType::F64) return bits_of(const_float(g, source), to);
  return bits_of(rounded_to_odd(const_int(g, source), g[source].dtype == DType::U64), to);
}

uint64_t zero_extended(uint64_t bits, DType dtype) {
  const uint32_t size = size_of(dtype);
  return size == 8 ? bits : bits & ((uint64_t{1} << (8 * size)) - 1);
}

std::optional<uint64_t> fold_bitcast(const Graph& g, Id source, DType to) {
  const DType from = g[source].dtype;
  if (size_of(from) == 0 || size_of(from) != size_of(to) || to == DType::Bool) return std::nullopt;
  // Constants cannot represent the payload of a NaN.
  if (is_float(from) && std::isnan(const_float(g, source))) return std::nullopt;
  const uint64_t result = constant_bits(zero_extended(storage_bits(g[source].arg, from), from), to);
  if (is_float(to) && std::isnan(std::bit_cast<double>(result))) return std::nullopt;
  return result;
}

std::optional<uint64_t> fold_arithmetic(const Graph& g, Op op, DType dtype, std::span<const Id> s) {
  if (is_float(dtype)) {
    const auto value = [&](size_t i) { return i < s.size() ? const_float(g, s[i]) : 0.0; };
    const auto result = fold_float(op, dtype, value(0), value(1), value(2));
    if (!result) return std::nullopt;
    return bits_of(std::isnan(*result) ? std::nan("") : *result, dtype);
  }
  if (op == Op::Threefry0 || op == Op::Threefry1) {
    const auto word = [&](size_t i) { return static_cast<uint32_t>(const_int(g, s[i])); };
    const auto words = threefry<uint32_t>({word(0), word(1)}, {word(2), word(3)});
    return bits_of(static_cast<int64_t>(words[op == Op::Threefry1]), dtype);
  }
  const int64_t a = const_int(g, s[0]), b = s.size() > 1 ? const_int(g, s[1]) : 0;
  if (op == Op::Fma) {
    const auto product = fold_int(Op::Mul, dtype, a, b);
    return bits_of(*fold_int(Op::Add, dtype, *product, const_int(g, s[2])), dtype);
  }
  const auto result = fold_int(op, dtype, a, b);
  return result ? std::optional(bits_of(*result, dtype)) : std::nullopt;
}

}  // namespace

int64_t truncated_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b;
}
int64_t truncated_mod(int64_t a, int64_t b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}
int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = truncated_div(a, b), r = truncated_mod(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}
int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t r = truncated_mod(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::optional<uint64_t> fold(const Graph& g, Op op, DType dtype, std::span<const Id> sources) {
  if (!is_alu(op) || sources.empty()) return std::nullopt;
  for (Id s : sources)
    if (!is_const(g, s)) return std::nullopt;
  if (is_compare(op)) return *fold_compare(g, op, sources[0], sources[1]);
  if (op == Op::Where) return g[sources[const_int(g, sources[0]) ? 1 : 2]].arg;
  if (op == Op::Cast) return fold_cast(g, sources[0], dtype);
  if (op == Op::Bitcast) return fold_bitcast(g, sources[0], dtype);
  return fold_arithmetic(g, op, dtype, sources);
}

Id add_folded(Graph& g, Op op, DType dtype, std::span<const Id> sources, uint64_t arg) {
  if (const auto bits = fold(g, op, dtype, sources)) return g.add(Op::Const, dtype, {}, *bits);
  return g.add(op, dtype, sources, arg);
}

}  // namespace plugrad
