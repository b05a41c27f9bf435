// The steps of PTX's instructions, and the loops over groups and items.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "cuda/double/ptx.h"

namespace plugrad::cuda_double {
namespace {

// What an item may touch: memory of the device, and the kernel's own, which it runs with.
struct Own {
  const char* begin = nullptr;
  uint64_t size = 0;
};
thread_local CheckAccess device_access = nullptr;
thread_local Own own_params, own_shared, own_local;

void check_access(const char* at, uint64_t size) {
  for (const Own& own : {own_params, own_shared, own_local})
    if (at >= own.begin && at + size <= own.begin + own.size) return;
  device_access(at, size);
}

template <typename T>
using Wider = std::conditional_t<
    std::is_signed_v<T>, std::conditional_t<(sizeof(T) < 4), int32_t, int64_t>,
    std::conditional_t<(sizeof(T) < 4), uint32_t, uint64_t>>;
template <typename T>
using Unsigned = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// Integers wrap: computed without a sign, in a type that does not shrink to int.
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

// What a GPU gives for a zero divisor is anything: here a number that tests notice.
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
struct MulHi {
  template <typename T>
  static T of(T a, T b) {
    using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Product>(a) * b >> (sizeof(T) * 8));
  }
};
struct And {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <typename T, typename Op>
void binary(Item& item, const Inst& inst) {
  item.set<T>(inst.to[0], Op::of(item.get<T>(inst.from[0]), item.get<T>(inst.from[1])));
}

struct Mov {
  template <typename T>
  static T of(T a) {
    return a;
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
template <typename T, typename Op>
void unary(Item& item, const Inst& inst) {
  item.set(inst.to[0], Op::of(item.get<T>(inst.from[0])));
}

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
  item.set(inst.to[0],
           Add::of(wide_product<T>(item, inst), item.get<Wider<T>>(inst.from[2])));
}

// Counts from the width on shift everything out.
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
  const uint64_t both = uint64_t{item.get<uint32_t>(inst.from[1])} << 32 |
                        item.get<uint32_t>(inst.from[0]);
  const uint32_t count = item.get<uint32_t>(inst.from[2]) & 31;
  item.set<uint32_t>(inst.to[0], static_cast<uint32_t>(kLeft ? both << count >> 32 : both >> count));
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
void permute(Item& item, const Inst& inst) {  // prmt
  const uint64_t both = uint64_t{item.get<uint32_t>(inst.from[1])} << 32 |
                        item.get<uint32_t>(inst.from[0]);
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

enum class Compare { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
template <Compare kCompare, typename T>
bool compare(T a, T b) {
  const bool is_unordered = a != a || b != b;
  switch (kCompare) {
    case Compare::Eq: return a == b;
    case Compare::Ne: return a != b && !is_unordered;
    case Compare::Lt: return a < b;
    case Compare::Le: return a <= b;
    case Compare::Gt: return a > b;
    case Compare::Ge: return a >= b;
    case Compare::Equ: return a == b || is_unordered;
    case Compare::Neu: return a != b || is_unordered;
    case Compare::Ltu: return a < b || is_unordered;
    case Compare::Leu: return a <= b || is_unordered;
    case Compare::Gtu: return a > b || is_unordered;
    case Compare::Geu: return a >= b || is_unordered;
    case Compare::Num: return !is_unordered;
    case Compare::Nan: return is_unordered;
  }
  return false;
}
template <Compare kCompare, typename T>
void set_predicate(Item& item, const Inst& inst) {
  item.set<uint8_t>(inst.to[0],
                    compare<kCompare>(item.get<T>(inst.from[0]), item.get<T>(inst.from[1])));
}
template <Compare kCompare, typename T, typename Combine>
void set_predicate_with(Item& item, const Inst& inst) {
  const uint8_t own = compare<kCompare>(item.get<T>(inst.from[0]), item.get<T>(inst.from[1]));
  item.set<uint8_t>(inst.to[0], Combine::of(own, item.get<uint8_t>(inst.from[2])));
}
template <typename T>
void select(Item& item, const Inst& inst) {
  item.set<T>(inst.to[0],
              item.get<T>(item.get<uint8_t>(inst.from[2]) ? inst.from[0] : inst.from[1]));
}

// Integers from floats are clamped, NaN is 0; the sign of a narrower one reaches all bits.
template <typename To, typename From>
void convert(Item& item, const Inst& inst) {
  const From value = item.get<From>(inst.from[0]);
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To> && std::is_signed_v<To>)
    item.slots[inst.to[0]] = static_cast<uint64_t>(static_cast<int64_t>(static_cast<To>(value)));
  else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const double x = static_cast<double>(value);
    To out = 0;
    if (x >= std::ldexp(1.0, std::numeric_limits<To>::digits))
      out = std::numeric_limits<To>::max();
    else if (x < static_cast<double>(std::numeric_limits<To>::min()))
      out = std::numeric_limits<To>::min();
    else if (x == x)
      out = static_cast<To>(value);
    item.set<To>(inst.to[0], out);
  } else
    item.set<To>(inst.to[0], static_cast<To>(value));
}
template <typename T>
void to_integral(Item& item, const Inst& inst) {  // cvt.rzi.f32.f32
  item.set<T>(inst.to[0], std::trunc(item.get<T>(inst.from[0])));
}

char* address(Item& item, uint32_t slot, const Inst& inst, uint64_t size, uint64_t align) {
  const uint64_t at = item.slots[slot] + static_cast<uint64_t>(inst.offset);
  if (at % align != 0) throw Fault{716, "a misaligned address in " + inst.text};
  char* pointer = reinterpret_cast<char*>(at);
  check_access(pointer, size);
  return pointer;
}
template <typename T>
void load(Item& item, const Inst& inst) {
  const char* from =
      address(item, inst.from[0], inst, sizeof(T) * inst.lanes, sizeof(T) * inst.lanes);
  for (uint32_t lane = 0; lane < inst.lanes; ++lane) {
    T value;
    std::memcpy(&value, from + lane * sizeof(T), sizeof value);
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      item.slots[inst.to[lane]] = static_cast<uint64_t>(int64_t{value});
    else
      item.set<T>(inst.to[lane], value);
  }
}
template <typename T>
void store(Item& item, const Inst& inst) {
  char* to = address(item, inst.to[0], inst, sizeof(T) * inst.lanes, sizeof(T) * inst.lanes);
  for (uint32_t lane = 0; lane < inst.lanes; ++lane) {
    const T value = item.get<T>(inst.from[lane]);
    std::memcpy(to + lane * sizeof(T), &value, sizeof value);
  }
}
template <typename T>
void atomic_add(Item& item, const Inst& inst) {
  auto* at = reinterpret_cast<T*>(address(item, inst.to[0], inst, sizeof(T), sizeof(T)));
  const T value = item.get<T>(inst.from[0]);
  item.set<T>(inst.to[1], std::atomic_ref<T>(*at).fetch_add(value));
}

template <typename Whole, typename Part>
void pack(Item& item, const Inst& inst) {
  Part parts[sizeof(Whole) / sizeof(Part)];
  for (size_t i = 0; i < std::size(parts); ++i) parts[i] = item.get<Part>(inst.from[i]);
  item.set(inst.to[0], std::bit_cast<Whole>(parts));
}
template <typename Whole, typename Part>
void unpack(Item& item, const Inst& inst) {
  const Whole whole = item.get<Whole>(inst.from[0]);
  for (size_t i = 0; i < sizeof(Whole) / sizeof(Part); ++i) {
    Part part;
    std::memcpy(&part, reinterpret_cast<const char*>(&whole) + i * sizeof part, sizeof part);
    if (inst.to[i]) item.set(inst.to[i], part);
  }
}

void branch(Item& item, const Inst& inst) {
  item.at = inst.target;
}
void leave(Item& item, const Inst&) {
  item.is_done = true;
}
void barrier(Item& item, const Inst&) {
  item.is_waiting = true;
}
void nothing(Item&, const Inst&) {}

using Steps = std::unordered_map<std::string, Step>;

// Calls add(suffix, T{}) for types.
template <typename Add>
void each_integer(const Add& add) {
  add(".u16", uint16_t{}), add(".s16", int16_t{}), add(".u32", uint32_t{}), add(".s32", int32_t{});
  add(".u64", uint64_t{}), add(".s64", int64_t{});
}
template <typename Add>
void each_bits(const Add& add) {
  add(".b16", uint16_t{}), add(".b32", uint32_t{}), add(".b64", uint64_t{});
}
template <typename Add>
void each_float(const Add& add) {
  add(".f32", float{}), add(".f64", double{});
}
template <typename Add>
void each_small(const Add& add) {
  add(".u8", uint8_t{}), add(".s8", int8_t{}), add(".b8", uint8_t{});
}

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
  steps["pack2.b64"] = pack<uint64_t, uint32_t>;
  steps["unpack2.b64"] = unpack<uint64_t, uint32_t>;
  steps["pack2.b32"] = pack<uint32_t, uint16_t>;
  steps["unpack2.b32"] = unpack<uint32_t, uint16_t>;
  steps["pack4.b64"] = pack<uint64_t, uint16_t>;
  steps["unpack4.b64"] = unpack<uint64_t, uint16_t>;
}

void add_memory(Steps& steps) {
  const auto access = [&]<typename T>(const std::string& type, T) {
    steps["ld" + type] = load<T>;
    steps["st" + type] = store<T>;
  };
  each_integer(access), each_bits(access), each_float(access), each_small(access);
  const auto atomic = [&]<typename T>(const std::string& type, T) {
    if constexpr (sizeof(T) > 2)
      steps["red.add" + type] = steps["atom.add" + type] = atomic_add<T>;
  };
  each_integer(atomic), each_float(atomic);
}

template <Compare kCompare, typename T>
void add_comparison(Steps& steps, const std::string& name, const std::string& type) {
  steps["setp." + name + type] = set_predicate<kCompare, T>;
  steps["setp." + name + ".and" + type] = set_predicate_with<kCompare, T, And>;
  steps["setp." + name + ".or" + type] = set_predicate_with<kCompare, T, Or>;
  steps["setp." + name + ".xor" + type] = set_predicate_with<kCompare, T, Xor>;
}
void add_comparisons(Steps& steps) {
  const auto ordered = [&]<typename T>(const std::string& type, T) {
    add_comparison<Compare::Eq, T>(steps, "eq", type);
    add_comparison<Compare::Ne, T>(steps, "ne", type);
    add_comparison<Compare::Lt, T>(steps, "lt", type);
    add_comparison<Compare::Le, T>(steps, "le", type);
    add_comparison<Compare::Gt, T>(steps, "gt", type);
    add_comparison<Compare::Ge, T>(steps, "ge", type);
    if constexpr (std::is_unsigned_v<T>) {
      add_comparison<Compare::Lt, T>(steps, "lo", type);
      add_comparison<Compare::Le, T>(steps, "ls", type);
      add_comparison<Compare::Gt, T>(steps, "hi", type);
      add_comparison<Compare::Ge, T>(steps, "hs", type);
    }
  };
  each_integer(ordered), each_bits(ordered), each_float(ordered);
  each_float([&]<typename T>(const std::string& type, T) {
    add_comparison<Compare::Equ, T>(steps, "equ", type);
    add_comparison<Compare::Neu, T>(steps, "neu", type);
    add_comparison<Compare::Ltu, T>(steps, "ltu", type);
    add_comparison<Compare::Leu, T>(steps, "leu", type);
    add_comparison<Compare::Gtu, T>(steps, "gtu", type);
    add_comparison<Compare::Geu, T>(steps, "geu", type);
    add_comparison<Compare::Num, T>(steps, "num", type);
    add_comparison<Compare::Nan, T>(steps, "nan", type);
  });
}

void add_conversions(Steps& steps) {
  const auto from_each = [&]<typename To>(const std::string& to, To) {
    const auto from_integer = [&]<typename From>(const std::string& from, From) {
      steps["cvt" + to + from] = convert<To, From>;
      if constexpr (std::is_floating_point_v<To>) steps["cvt.rn" + to + from] = convert<To, From>;
    };
    each_integer(from_integer), each_small(from_integer);
    each_float([&]<typename From>(const std::string& from, From) {
      if constexpr (std::is_integral_v<To>) steps["cvt.rzi" + to + from] = convert<To, From>;
    });
  };
  each_integer(from_each), each_small(from_each), each_float(from_each);
  steps["cvt.f64.f32"] = convert<double, float>;
  steps["cvt.rn.f32.f64"] = convert<float, double>;
  steps["cvt.f32.f16"] = convert<float, _Float16>;
  steps["cvt.rn.f16.f32"] = convert<_Float16, float>;
}

Steps make_steps() {
  Steps steps;
  add_arithmetic(steps);
  add_bits(steps);
  add_memory(steps);
  add_comparisons(steps);
  add_conversions(steps);
  steps["bra"] = branch;
  steps["ret"] = steps["exit"] = leave;
  steps["bar"] = steps["barrier"] = barrier;
  steps["membar"] = steps["fence"] = nothing;
  return steps;
}

// Which of a mnemonic's modifiers say nothing to a machine of one item at a time.
bool is_dropped(const std::string& root, const std::string& part) {
  static const std::vector<std::string> kOfMemory = {
      "global", "shared", "local", "param", "const", "volatile", "relaxed", "weak", "nc",
      "gpu",    "sys",    "cta",   "L1",    "L2"};
  const auto is_one_of = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), part) != list.end();
  };
  if (root == "ld" || root == "st" || root == "atom" || root == "red") return is_one_of(kOfMemory);
  if (root == "bar" || root == "barrier" || root == "bra" || root == "membar" || root == "fence" ||
      root == "ret")
    return true;
  return root != "cvt" && part == "rn";
}

}  // namespace

Step find_step(const std::string& mnemonic, uint32_t& lanes) {
  static const Steps steps = make_steps();
  size_t end = std::min(mnemonic.find('.'), mnemonic.size());
  const std::string root = mnemonic.substr(0, end);
  if (root == "cvta") return unary<uint64_t, Mov>;  // one address space
  std::string name = root;
  while (end < mnemonic.size()) {
    const size_t next = std::min(mnemonic.find('.', end + 1), mnemonic.size());
    const std::string part = mnemonic.substr(end + 1, next - end - 1);
    if (part == "v2" || part == "v4")
      lanes = part == "v2" ? 2 : 4;
    else if (!is_dropped(root, part))
      name += "." + part;
    end = next;
  }
  const auto found = steps.find(name);
  return found == steps.end() ? nullptr : found->second;
}

namespace {

void run_item(const Kernel& kernel, Item& item) {
  while (!item.is_done && !item.is_waiting) {
    const Inst& inst = kernel.code[item.at++];
    if (inst.guard >= 0) {
      const bool holds = item.get<uint8_t>(static_cast<uint32_t>(inst.guard)) != 0;
      if (holds == inst.is_guard_negated) continue;
    }
    inst.step(item, inst);
  }
}

void begin_item(const Kernel& kernel, Item& item, const std::vector<char>& params,
                std::vector<char>& shared, const std::array<uint32_t, 12>& specials) {
  item.slots = kernel.slots;
  item.local.assign(kernel.local_size + 64, '\x7e');
  item.at = 0;
  item.is_done = kernel.code.empty();
  item.is_waiting = false;
  const auto point = [&](const std::vector<Symbol>& symbols, const char* base) {
    for (const Symbol& symbol : symbols)
      item.slots[symbol.slot] = reinterpret_cast<uint64_t>(base) + symbol.offset;
  };
  const auto align = [](char* at) {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(at) + 63) / 64 * 64);
  };
  point(kernel.params, params.data());
  point(kernel.shared, align(shared.data()));
  point(kernel.local, align(item.local.data()));
  for (size_t i = 0; i < specials.size(); ++i)
    if (kernel.specials[i]) item.slots[kernel.specials[i]] = specials[i];
}

void run_group(const Kernel& kernel, const Grid& grid, const std::array<uint32_t, 3>& group,
               const std::vector<char>& params, std::vector<Item>& items) {
  std::vector<char> shared(kernel.shared_size + 64, '\x7d');
  own_shared = {shared.data(), shared.size()};
  size_t number = 0;
  for (uint32_t z = 0; z < grid.items[2]; ++z)
    for (uint32_t y = 0; y < grid.items[1]; ++y)
      for (uint32_t x = 0; x < grid.items[0]; ++x)
        begin_item(kernel, items[number++], params, shared,
                   {x, y, z, grid.items[0], grid.items[1], grid.items[2], group[0], group[1],
                    group[2], grid.groups[0], grid.groups[1], grid.groups[2]});
  for (bool any = true; any;) {
    any = false;
    for (Item& item : items) {
      item.is_waiting = false;
      own_local = {item.local.data(), item.local.size()};
      run_item(kernel, item);
      any = any || !item.is_done;
    }
  }
}

}  // namespace

void run_kernel(const Kernel& kernel, const Grid& grid, const std::vector<char>& params,
                CheckAccess access) {
  device_access = access;
  own_params = {params.data(), params.size()};
  std::vector<Item> items(size_t{grid.items[0]} * grid.items[1] * grid.items[2]);
  for (uint32_t z = 0; z < grid.groups[2]; ++z)
    for (uint32_t y = 0; y < grid.groups[1]; ++y)
      for (uint32_t x = 0; x < grid.groups[0]; ++x)
        run_group(kernel, grid, {x, y, z}, params, items);
}

}  // namespace plugrad::cuda_double
