// Shared by the tables of PTX instructions.
#pragma once

#include <string>
#include <unordered_map>

#include "double/ptx.h"

namespace plugrad::cuda_double {

using Steps = std::unordered_map<std::string, Step>;

// Calls add(suffix, T{}) for each type.
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

// Tables by subject.
void add_arithmetic(Steps& steps);
void add_bits(Steps& steps);
void add_comparisons(Steps& steps);
void add_conversions(Steps& steps);
void add_memory(Steps& steps);
void add_tiles(Steps& steps);

// Memory that the calling thread's item may access besides device memory.
struct Own {
  const char* begin = nullptr;
  uint64_t size = 0;
};
struct Reach {
  CheckAccess device = nullptr;
  Own params, shared, local;
};
Reach& reach();

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
template <typename T, typename Op>
void unary(Item& item, const Inst& inst) {
  item.set(inst.to[0], Op::of(item.get<T>(inst.from[0])));
}

}  // namespace plugrad::cuda_double
