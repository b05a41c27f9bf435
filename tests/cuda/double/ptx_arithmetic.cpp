// Steps of arithmetic, shifts and bit operations.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "double/ptx_steps.h"

namespace plugrad::cuda_double {
namespace {

template <typename T>
using Wider =
    std::conditional_t<std::is_signed_v<T>, std::conditional_t<(sizeof(T) < 4), int32_t, int64_t>,
                       std::conditional_t<(sizeof(T) < 4), uint32_t, uint64_t>>;
template <typename T>
using Unsigned =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// Integers wrap: computed in an unsigned type that is not promoted to int.
template <typename T, typename Compute>
T wrapping(T a, T b, const Compute& compute) {
  return static_cast<T>(compute(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

#define PLUGRAD_ARITHMETIC(Name, sign)                                          \
  struct Name {                                                                 \
    template <typename T>                                                       \
    static T of(T a, T b) {                                                     \
      if constexpr (std::is_floating_point_v<T>)                                \
        return a sign b;                                                        \
      else                                                                      \
        return wrapping(a, b, [](uint64_t x, uint64_t y) { return x sign y; }); \
    }                                                                           \
  }
PLUGRAD_ARITHMETIC(Add, +);
PLUGRAD_ARITHMETIC(Sub, -);
PLUGRAD_ARITHMETIC(Mul, *);

// Division by zero is undefined on a GPU: returns a number that tests detect.
struct Div {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == 0) return static_cast<T>(0x5a5a5a5a5a5a5a5aull);
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return wrapping<T>(0, a, [](uint64_t x, uint64_t y) { return x - y; });
      return static_cast<T>(a / b);
    }
  }
};
struct Rem {
  template <typename T>
  static T of(T a, T b) {
    if (b == 0) return static_cast<T>(0x5a5a5a5a5a5a5a5aull);
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmin(a, b);
    else
      return a < b ? a : b;
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmax(a, b);
    else
      return a > b ? a : b;
  }
};
struct MaxNan {
  template <typename T>
  static T of(T a, T b) {
    return a != a ? a : b != b ? b : a > b ? a : b;
  }
};
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;
struct MulHi {
  template <typename T>
  static T of(T a, T b) {
    using Product = std::conditional_t<std::is_signed_v<T>, Int128, Uint128>;
    return static_cast<T>(static_cast<Product>(a) * b >> (sizeof(T) * 8));
  }
};
struct Neg {
  template <typename T>
  static T of(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return -a;
    else
      return Sub::of(T{0}, a);
  }
};
struct Abs {
  template <typename T>
  static T of(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else
      return a < 0 ? Neg::of(a) : a;
  }
};
struct Not {
  template <typename T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};
struct NotPred {
  static uint8_t of(uint8_t a) { return !a; }
};
struct Sqrt {
  template <typename T>
  static T of(T a) {
    return std::sqrt(a);
  }
};
struct Rcp {
  template <typename T>
  static T of(T a) {
    return 1 / a;
  }
};
struct Ex2 {
  static float of(float a) { return static_cast<float>(std::exp2(static_cast<double>(a))); }
};
struct Popc {
  template <typename T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <typename T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
template <typename T>
void fma_step(Item& item, const Inst& inst) {
  item.set<T>(inst.to[0], std::fma(item.get<T>(inst.from[0]), item.get<T>(inst.from[1]),
                                   item.get<T>(inst.from[2])));
}
template <typename T, typename Op>
void multiply_add(Item& item, const Inst& inst) {
  const T product = Op::of(item.get<T>(inst.from[0]), item.get<T>(inst.from[1]));
  item.set<T>(inst.to[0], Add::of(product, item.get<T>(inst.from[2])));
}
template <typename T>
Wider<T> wide_product(Item& item, const Inst& inst) {
  return static_cast<Wider<T>>(static_cast<Wider<T>>(item.get<T>(inst.from[0])) *
                               static_cast<Wider<T>>(item.get<T>(inst.from[1])));
}
template <typename T>
void mul_wide(Item& item, const Inst& inst) {
  item.set(inst.to[0], wide_product<T>(item, inst));
}
template <typename T>
void mad_wide(Item& item, const Inst& inst) {
  item.set(inst.to[0], Add::of(wide_product<T>(item, inst), item.get<Wider<T>>(inst.from[2])));
}

// Counts of the width or more shift all bits out.
template <typename T>
void shift_left(Item& item, const Inst& inst) {
  const uint32_t count = item.get<uint32_t>(inst.from[1]);
  const uint64_t value = item.get<T>(inst.from[0]);
  item.set<T>(inst.to[0], count >= sizeof(T) * 8 ? T{0} : static_cast<T>(value << count));
}
template <typename T>
void shift_right(Item& item, const Inst& inst) {
  const uint32_t most = sizeof(T) * 8 - 1, count = item.get<uint32_t>(inst.from[1]);
  const T value = item.get<T>(inst.from[0]);
  if (std::is_unsigned_v<T> && count > most)
    item.set<T>(inst.to[0], 0);
  else
    item.set<T>(inst.to[0], static_cast<T>(value >> std::min(count, most)));
}
template <bool kLeft>
void funnel_shift(Item& item, const Inst& inst) {  // shf.l.wrap and shf.r.wrap
  const uint64_t both =
      uint64_t{item.get<uint32_t>(inst.from[1])} << 32 | item.get<uint32_t>(inst.from[0]);
  const uint32_t count = item.get<uint32_t>(inst.from[2]) & 31;
  item.set<uint32_t>(inst.to[0],
                     static_cast<uint32_t>(kLeft ? both << count >> 32 : both >> count));
}
template <typename T>
void bit_field(Item& item, const Inst& inst) {  // bfe
  const uint32_t begin = item.get<uint32_t>(inst.from[1]) & 255;
  const uint32_t count = item.get<uint32_t>(inst.from[2]) & 255;
  constexpr uint32_t kBits = sizeof(T) * 8;
  if (count == 0 || begin >= kBits) return item.set<T>(inst.to[0], 0);
  const uint32_t kept = std::min(count, kBits - begin);
  const auto bits = static_cast<Unsigned<T>>(item.get<Unsigned<T>>(inst.from[0]) >> begin);
  const uint32_t drop = kBits - kept;
  item.set<T>(inst.to[0], static_cast<T>(static_cast<T>(bits << drop) >> drop));
}
template <typename T>
void insert_bits(Item& item, const Inst& inst) {  // bfi
  const uint32_t begin = item.get<uint32_t>(inst.from[2]) & 255;
  const uint32_t count = item.get<uint32_t>(inst.from[3]) & 255;
  constexpr uint32_t kBits = sizeof(T) * 8;
  const T field = count >= kBits ? ~T{0} : static_cast<T>((T{1} << count) - 1);
  const T mask = begin >= kBits ? T{0} : static_cast<T>(field << begin);
  const T bits = begin >= kBits ? T{0} : static_cast<T>(item.get<T>(inst.from[0]) << begin);
  item.set<T>(inst.to[0], (item.get<T>(inst.from[1]) & ~mask) | (bits & mask));
}
void permute(Item& item, const Inst& inst) {  // prmt
  const uint64_t both =
      uint64_t{item.get<uint32_t>(inst.from[1])} << 32 | item.get<uint32_t>(inst.from[0]);
  const uint32_t selector = item.get<uint32_t>(inst.from[2]);
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t which = selector >> (4 * i) & 15;
    uint32_t byte = both >> (8 * (which & 7)) & 255;
    if (which & 8) byte = byte & 128 ? 255 : 0;
    out |= byte << (8 * i);
  }
  item.set<uint32_t>(inst.to[0], out);
}

template <typename T>
void select(Item& item, const Inst& inst) {
  item.set<T>(inst.to[0],
              item.get<T>(item.get<uint8_t>(inst.from[2]) ? inst.from[0] : inst.from[1]));
}
template <typename T>
void to_integral(Item& item, const Inst& inst) {  // cvt.rzi.f32.f32
  item.set<T>(inst.to[0], std::trunc(item.get<T>(inst.from[0])));
}

}  // namespace

void add_arithmetic(Steps& steps) {
  const auto arithmetic = [&]<typename T>(const std::string& type, T) {
    steps["add" + type] = binary<T, Add>;
    steps["sub" + type] = binary<T, Sub>;
    steps["div" + type] = binary<T, Div>;
    steps["min" + type] = binary<T, Min>;
    steps["max" + type] = binary<T, Max>;
    steps["neg" + type] = unary<T, Neg>;
    steps["abs" + type] = unary<T, Abs>;
    steps["mul" + type] = steps["mul.lo" + type] = binary<T, Mul>;
  };
  each_integer(arithmetic);
  each_float(arithmetic);
  each_integer([&]<typename T>(const std::string& type, T) {
    steps["rem" + type] = binary<T, Rem>;
    steps["mul.hi" + type] = binary<T, MulHi>;
    steps["mad.lo" + type] = multiply_add<T, Mul>;
    steps["mad.hi" + type] = multiply_add<T, MulHi>;
    steps["shr" + type] = shift_right<T>;
    if constexpr (sizeof(T) < 8) {
      steps["mul.wide" + type] = mul_wide<T>;
      steps["mad.wide" + type] = mad_wide<T>;
    }
    if constexpr (sizeof(T) > 2) steps["bfe" + type] = bit_field<T>;
  });
  each_float([&]<typename T>(const std::string& type, T) {
    steps["fma" + type] = fma_step<T>;
    steps["sqrt" + type] = unary<T, Sqrt>;
    steps["rcp" + type] = unary<T, Rcp>;
    steps["max.NaN" + type] = binary<T, MaxNan>;
    steps["cvt.rzi" + type + type] = to_integral<T>;
  });
  steps["ex2.approx.f32"] = unary<float, Ex2>;
}

void add_bits(Steps& steps) {
  each_bits([&]<typename T>(const std::string& type, T) {
    steps["and" + type] = binary<T, And>;
    steps["or" + type] = binary<T, Or>;
    steps["xor" + type] = binary<T, Xor>;
    steps["not" + type] = unary<T, Not>;
    steps["shl" + type] = shift_left<T>;
    steps["shr" + type] = shift_right<T>;
    if constexpr (sizeof(T) > 2) {
      steps["bfi" + type] = insert_bits<T>;
      steps["popc" + type] = unary<T, Popc>;
      steps["clz" + type] = unary<T, Clz>;
    }
  });
  steps["and.pred"] = binary<uint8_t, And>;
  steps["or.pred"] = binary<uint8_t, Or>;
  steps["xor.pred"] = binary<uint8_t, Xor>;
  steps["not.pred"] = unary<uint8_t, NotPred>;
  steps["mov.pred"] = unary<uint8_t, Mov>;
  steps["prmt.b32"] = permute;
  steps["shf.l.wrap.b32"] = funnel_shift<true>;
  steps["shf.r.wrap.b32"] = funnel_shift<false>;
  const auto moved = [&]<typename T>(const std::string& type, T) {
    steps["mov" + type] = unary<T, Mov>;
    steps["selp" + type] = select<T>;
  };
  each_integer(moved), each_bits(moved), each_float(moved);
}

}  // namespace plugrad::cuda_double
