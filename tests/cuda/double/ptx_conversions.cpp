// Steps of comparisons and casts.
#include <cmath>
#include <limits>
#include <type_traits>

#include "double/ptx_steps.h"

namespace plugrad::cuda_double {
namespace {

enum class Compare { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
template <Compare kCompare, typename T>
bool compare(T a, T b) {
  const bool is_unordered = a != a || b != b;
  switch (kCompare) {
    case Compare::Eq:
      return a == b;
    case Compare::Ne:
      return a != b && !is_unordered;
    case Compare::Lt:
      return a < b;
    case Compare::Le:
      return a <= b;
    case Compare::Gt:
      return a > b;
    case Compare::Ge:
      return a >= b;
    case Compare::Equ:
      return a == b || is_unordered;
    case Compare::Neu:
      return a != b || is_unordered;
    case Compare::Ltu:
      return a < b || is_unordered;
    case Compare::Leu:
      return a <= b || is_unordered;
    case Compare::Gtu:
      return a > b || is_unordered;
    case Compare::Geu:
      return a >= b || is_unordered;
    case Compare::Num:
      return !is_unordered;
    case Compare::Nan:
      return is_unordered;
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

// Float to integer clamps, NaN gives 0; narrower signed results are sign-extended.
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

template <Compare kCompare, typename T>
void add_comparison(Steps& steps, const std::string& name, const std::string& type) {
  steps["setp." + name + type] = set_predicate<kCompare, T>;
  steps["setp." + name + ".and" + type] = set_predicate_with<kCompare, T, And>;
  steps["setp." + name + ".or" + type] = set_predicate_with<kCompare, T, Or>;
  steps["setp." + name + ".xor" + type] = set_predicate_with<kCompare, T, Xor>;
}
}  // namespace

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

}  // namespace plugrad::cuda_double
