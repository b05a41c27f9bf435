// One function per op and dtype, generated from one line per op.
#include <algorithm>
#include <cmath>
#include <limits>

#include "program.h"
#include "values.h"

namespace plugrad::sdk {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// Wraps in the width of T: 64-bit unsigned arithmetic cannot overflow, and its low bits are
// correct.
template <typename T, typename Op>
T wrapping(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(op(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  else
    return op(a, b);
}

struct Add {
  template <typename T>
  static T run(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Sub {
  template <typename T>
  static T run(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Mul {
  template <typename T>
  static T run(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Neg {
  template <typename T>
  static T run(T a) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(0 - static_cast<uint64_t>(a));
    else
      return -a;
  }
};
struct IDiv {
  template <typename T>
  static T run(T a, T b) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return Neg::run(a);
    return static_cast<T>(a / b);
  }
};
struct Mod {
  template <typename T>
  static T run(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};
struct Max {
  template <typename T>
  static T run(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return std::max(a, b);
  }
};
struct Recip {
  template <typename T>
  static T run(T a) {
    return T(1) / a;
  }
};
struct FDiv {
  template <typename T>
  static T run(T a, T b) {
    return a / b;
  }
};
struct Sqrt {
  template <typename T>
  static T run(T a) {
    return std::sqrt(a);
  }
};
struct Trunc {
  template <typename T>
  static T run(T a) {
    return std::trunc(a);
  }
};
struct And {
  template <typename T>
  static T run(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T run(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T run(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// A negative count becomes a large unsigned one.
template <typename T>
bool is_shift(T count) {
  return static_cast<uint64_t>(count) < sizeof(T) * 8;
}
struct Shl {
  template <typename T>
  static T run(T a, T count) {
    return is_shift(count) ? static_cast<T>(static_cast<uint64_t>(a) << count) : T(0);
  }
};
struct Shr {
  template <typename T>
  static T run(T a, T count) {
    if (!is_shift(count)) return a < 0 ? T(-1) : T(0);
    return static_cast<T>(a >> count);
  }
};
struct CmpLt {
  template <typename T>
  static bool run(T a, T b) {
    return a < b;
  }
};
struct CmpEq {
  template <typename T>
  static bool run(T a, T b) {
    return a == b;
  }
};
struct CmpNe {
  template <typename T>
  static bool run(T a, T b) {
    return a != b;
  }
};
// Computed in double; the float result is correctly rounded except very near a tie.
struct Exp2 {
  template <typename T>
  static T run(T a) {
    return static_cast<T>(std::exp2(static_cast<double>(a)));
  }
};
struct Log2 {
  template <typename T>
  static T run(T a) {
    return static_cast<T>(std::log2(static_cast<double>(a)));
  }
};
struct Sin {
  template <typename T>
  static T run(T a) {
    return static_cast<T>(std::sin(static_cast<double>(a)));
  }
};

template <typename Op>
struct Unary {
  template <uint32_t D>
  static void run(const Step& s, uint64_t* slots) {
    using N = NumberOf<D>;
    for (uint32_t i = 0; i < s.lanes; ++i)
      slots[s.dst + i] = N::put(Op::run(N::get(slots[s.src[0] + i * s.stride[0]])));
  }
};

template <typename Op>
struct Binary {
  template <uint32_t D>
  static void run(const Step& s, uint64_t* slots) {
    using N = NumberOf<D>;
    for (uint32_t i = 0; i < s.lanes; ++i)
      slots[s.dst + i] = N::put(Op::run(N::get(slots[s.src[0] + i * s.stride[0]]),
                                        N::get(slots[s.src[1] + i * s.stride[1]])));
  }
};

template <typename Op>
struct Compare {
  template <uint32_t D>
  static void run(const Step& s, uint64_t* slots) {
    using N = NumberOf<D>;
    for (uint32_t i = 0; i < s.lanes; ++i)
      slots[s.dst + i] = Op::run(N::get(slots[s.src[0] + i * s.stride[0]]),
                                 N::get(slots[s.src[1] + i * s.stride[1]]));
  }
};

void run_where(const Step& s, uint64_t* slots) {
  for (uint32_t i = 0; i < s.lanes; ++i) {
    const uint32_t which = slots[s.src[0] + i * s.stride[0]] ? 1 : 2;
    slots[s.dst + i] = slots[s.src[which] + i * s.stride[which]];
  }
}

constexpr uint32_t kBool = 1, kInt = 2, kFloat = 4;

template <typename Family, uint32_t Set, uint32_t D>
AluFn for_dtype() {
  constexpr bool in_set = ((Set & kBool) && kIsBool<D>) || ((Set & kInt) && kIsInt<D>) ||
                          ((Set & kFloat) && kIsMathFloat<D>);
  if constexpr (in_set)
    return Family::template run<D>;
  else
    return nullptr;
}

template <typename Family, uint32_t Set>
AluFn pick(uint32_t dtype) {
#define DTYPE_ENTRY(NAME, Pascal, number, size, text) for_dtype<Family, Set, number>(),
  static const AluFn kTable[] = {PGR_DTYPES(DTYPE_ENTRY)};
#undef DTYPE_ENTRY
  return dtype < PGR_DTYPE_COUNT ? kTable[dtype] : nullptr;
}

AluFn pick_where(uint32_t) {
  return run_where;
}

struct OpRow {
  uint16_t op;
  AluFn (*pick)(uint32_t dtype);
};

constexpr OpRow kRows[] = {
    {PGR_OP_ADD, pick<Binary<Add>, kInt | kFloat>},
    {PGR_OP_SUB, pick<Binary<Sub>, kInt | kFloat>},
    {PGR_OP_MUL, pick<Binary<Mul>, kInt | kFloat>},
    {PGR_OP_NEG, pick<Unary<Neg>, kInt | kFloat>},
    {PGR_OP_IDIV, pick<Binary<IDiv>, kInt>},
    {PGR_OP_MOD, pick<Binary<Mod>, kInt>},
    {PGR_OP_MAX, pick<Binary<Max>, kBool | kInt | kFloat>},
    {PGR_OP_RECIP, pick<Unary<Recip>, kFloat>},
    {PGR_OP_FDIV, pick<Binary<FDiv>, kFloat>},
    {PGR_OP_SQRT, pick<Unary<Sqrt>, kFloat>},
    {PGR_OP_FMA, find_fma},
    {PGR_OP_TRUNC, pick<Unary<Trunc>, kFloat>},
    {PGR_OP_AND, pick<Binary<And>, kBool | kInt>},
    {PGR_OP_OR, pick<Binary<Or>, kBool | kInt>},
    {PGR_OP_XOR, pick<Binary<Xor>, kBool | kInt>},
    {PGR_OP_SHL, pick<Binary<Shl>, kInt>},
    {PGR_OP_SHR, pick<Binary<Shr>, kInt>},
    {PGR_OP_CMPLT, pick<Compare<CmpLt>, kBool | kInt | kFloat>},
    {PGR_OP_CMPEQ, pick<Compare<CmpEq>, kBool | kInt | kFloat>},
    {PGR_OP_CMPNE, pick<Compare<CmpNe>, kBool | kInt | kFloat>},
    {PGR_OP_WHERE, pick_where},
    {PGR_OP_EXP2, pick<Unary<Exp2>, kFloat>},
    {PGR_OP_LOG2, pick<Unary<Log2>, kFloat>},
    {PGR_OP_SIN, pick<Unary<Sin>, kFloat>},
};

}  // namespace

AluFn find_alu(uint32_t op, uint32_t dtype) {
  for (const OpRow& row : kRows)
    if (row.op == op) return row.pick(dtype);
  return nullptr;
}

}  // namespace plugrad::sdk
