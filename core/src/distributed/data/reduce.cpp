#include "distributed/data/reduce.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "ir/round.h"

namespace plugrad::distributed {
namespace {

// Each format has the type that is stored, the type that is computed with, and how to convert.
template <class T>
struct Plain {
  using Stored = T;
  static T decode(T x) { return x; }
  static T encode(T x) { return x; }
};

struct Half {
  using Stored = std::uint16_t;
  static float decode(Stored h) {
    // Scaling by 2^112 moves the exponent from a bias of 15 to one of 127, subnormals included.
    const float magnitude =
        std::bit_cast<float>(static_cast<std::uint32_t>(h & 0x7fff) << 13) * 0x1p112f;
    std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
    if ((h & 0x7c00) == 0x7c00) bits |= 0x7f800000u;
    return std::bit_cast<float>(bits | static_cast<std::uint32_t>(h & 0x8000) << 16);
  }
  static Stored encode(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), magnitude = bits & 0x7fffffffu;
    std::uint32_t half;
    if (magnitude >= 0x47800000u) {  // 2^16 and more, infinity, NaN
      half = magnitude > 0x7f800000u ? 0x7e00 : 0x7c00;
    } else if (magnitude < 0x38800000u) {
      // Below 2^-14: 0.5 has the unit 2^-24 of subnormal halves, to which the addition rounds.
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    } else {
      half = (magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    return static_cast<Stored>(half | (bits >> 16 & 0x8000));
  }
};

struct Bfloat {
  using Stored = std::uint16_t;
  static float decode(Stored b) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
  }
  static Stored encode(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<Stored>(bits >> 16 | 0x40);
    return static_cast<Stored>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

template <DType dtype>
struct SmallFloat {
  using Stored = std::uint8_t;
  static float decode(Stored x) { return static_cast<float>(decode_small_float(x, dtype)); }
  static Stored encode(float x) { return static_cast<Stored>(encode_small_float(x, dtype)); }
};

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)  // unsigned, so that it wraps around
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

// A NaN compares false with everything, so that `b` is chosen unless `a` is the NaN.
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a > b || a != a ? a : b;
  return a > b ? a : b;
}

template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || a != a ? a : b;
  return a < b ? a : b;
}

template <class Format, class Combine>
void apply(std::byte* out, const std::byte* a, const std::byte* b, std::int64_t count,
           Combine combine) {
  using Stored = typename Format::Stored;
  auto* o = reinterpret_cast<Stored*>(out);
  const auto* x = reinterpret_cast<const Stored*>(a);
  const auto* y = reinterpret_cast<const Stored*>(b);
  for (std::int64_t i = 0; i < count; ++i)
    o[i] = Format::encode(combine(Format::decode(x[i]), Format::decode(y[i])));
}

template <class Format>
void reduce_format(Reduction reduction, std::byte* out, const std::byte* a, const std::byte* b,
                   std::int64_t count) {
  using T = decltype(Format::decode(typename Format::Stored{}));
  switch (reduction) {
    case Reduction::Add:
      return apply<Format>(out, a, b, count, [](T x, T y) { return add(x, y); });
    case Reduction::Mul:
      return apply<Format>(out, a, b, count, [](T x, T y) { return multiply(x, y); });
    case Reduction::Max:
      return apply<Format>(out, a, b, count, [](T x, T y) { return larger(x, y); });
    case Reduction::Min:
      return apply<Format>(out, a, b, count, [](T x, T y) { return smaller(x, y); });
  }
}

}  // namespace

void reduce(Reduction reduction, DType dtype, std::byte* out, const std::byte* a,
            const std::byte* b, std::int64_t count) {
  using Function =
      void (*)(Reduction, std::byte*, const std::byte*, const std::byte*, std::int64_t);
  const Function function = [&]() -> Function {
    switch (static_cast<int>(dtype)) {
      case static_cast<int>(DType::I8):
        return reduce_format<Plain<std::int8_t>>;
      case static_cast<int>(DType::U8):
        return reduce_format<Plain<std::uint8_t>>;
      case static_cast<int>(DType::I16):
        return reduce_format<Plain<std::int16_t>>;
      case static_cast<int>(DType::U16):
        return reduce_format<Plain<std::uint16_t>>;
      case static_cast<int>(DType::I32):
        return reduce_format<Plain<std::int32_t>>;
      case static_cast<int>(DType::U32):
        return reduce_format<Plain<std::uint32_t>>;
      case static_cast<int>(DType::I64):
        return reduce_format<Plain<std::int64_t>>;
      case static_cast<int>(DType::U64):
        return reduce_format<Plain<std::uint64_t>>;
      case static_cast<int>(DType::F16):
        return reduce_format<Half>;
      case static_cast<int>(DType::BF16):
        return reduce_format<Bfloat>;
      case static_cast<int>(DType::F32):
        return reduce_format<Plain<float>>;
      case static_cast<int>(DType::F64):
        return reduce_format<Plain<double>>;
      case static_cast<int>(DType::F8E4M3):
        return reduce_format<SmallFloat<DType::F8E4M3>>;
      case static_cast<int>(DType::F8E5M2):
        return reduce_format<SmallFloat<DType::F8E5M2>>;
      default:
        return nullptr;
    }
  }();
  if (dtype == DType::Bool) {  // 0 or 1: "or" is the larger, "and" the smaller
    const bool is_or = reduction == Reduction::Add || reduction == Reduction::Max;
    return reduce_format<Plain<std::uint8_t>>(is_or ? Reduction::Max : Reduction::Min, out, a, b,
                                              count);
  }
  ensure(function != nullptr, "{} has no memory to reduce", name_of(dtype));
  function(reduction, out, a, b, count);
}

void reduce_tree(Reduction reduction, DType dtype, std::byte* out,
                 std::span<Contribution> contributions, std::int64_t count) {
  std::size_t left = contributions.size();
  ensure(left > 0);
  if (left == 1 && contributions[0].data != out)
    std::memcpy(out, contributions[0].data, static_cast<std::size_t>(count) * size_of(dtype));
  while (left > 1) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < left; i += 2) {
      Contribution result = contributions[i];
      if (i + 1 < left) {
        const Contribution a = contributions[i], b = contributions[i + 1];
        std::byte* target = left == 2 ? out : a.scratch ? a.scratch : b.scratch;
        reduce(reduction, dtype, target, a.data, b.data, count);
        result = {target, target};
      }
      contributions[kept++] = result;
    }
    left = kept;
  }
}

}  // namespace plugrad::distributed
