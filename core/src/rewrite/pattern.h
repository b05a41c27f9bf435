// Patterns of graph nodes: constexpr values in the syntax of algebra.
//   x, y, z, w, u, v match any node; c0 to c3 match constants; a name that occurs twice matches the
//   same node. Numbers match constants of that value (an integer literal matches a float constant, too:
//   0 is +0.0). Operators: + - * / % (floor division and modulus) & | ^ < == !=; other ops by name:
//   where(x, y, z), …. one_of(ops) matches a node of any op of a set.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "ir/graph.h"

namespace plugrad {

/// Dtype classes that a pattern may ask for, as bits.
enum DTypeClass : uint8_t {
  kBoolClass = 1,
  kSmallIntClass = 2,  // 8 and 16 bits
  kI32Class = 4,
  kU32Class = 8,
  kWideIntClass = 16,  // 64 bits
  kIndexClass = 32,
  kSmallFloatClass = 64,  // 8 and 16 bits
  kRealClass = 128,       // f32, f64
  kIntClass = kSmallIntClass | kI32Class | kU32Class | kWideIntClass,
  kFloatClass = kSmallFloatClass | kRealClass,
  kAnyClass = 255
};
inline constexpr uint8_t kIntegerClass = kIntClass | kIndexClass;  // of is_int()

enum class PatternKind : uint8_t {
  Name,        // any node, bound to `name`
  Constant,    // a Const, bound to `name`
  Literal,     // a Const of the value `literal`
  Op,          // a node of `op` whose sources match `child`; bound to `name` unless kNoName
  OpAny,       // a node of `op` with any sources, bound to `name`
  OneOf,       // a node of an op of the set `literal`; without children: any sources
  ClassGuard,  // in guards: the dtype of child 0 (a name) is in `classes`
};

inline constexpr uint8_t kNoName = 255;
inline constexpr int kNameCount = 10, kFirstConstantName = 6;

struct PatternNode {
  PatternKind kind = PatternKind::Name;
  Op op = Op::Nop;
  uint8_t name = kNoName;
  uint8_t child_count = 0;
  uint8_t child[4] = {};
  uint8_t classes = kAnyClass;
  bool open = false;           // further sources may follow the children
  bool float_literal = false;  // literal holds a double
  bool typed = false;          // on a right side: a Cast or Bitcast to the dtype number `literal`
  uint64_t literal = 0;
};

/// A tree of pattern nodes, children before parents; the last is the root.
struct Pattern {
  static constexpr int kCapacity = 20;
  PatternNode nodes[kCapacity];
  uint8_t count = 0;

  constexpr Pattern() = default;
  // NOLINTBEGIN(google-explicit-constructor): patterns use numbers as algebra does.
  constexpr Pattern(int value)
      : Pattern(literal(static_cast<uint64_t>(static_cast<int64_t>(value)), false)) {}
  constexpr Pattern(double value) : Pattern(literal(__builtin_bit_cast(uint64_t, value), true)) {}
  constexpr Pattern(bool value) : Pattern(static_cast<int>(value)) {}
  // NOLINTEND(google-explicit-constructor)

  constexpr const PatternNode& root() const { return nodes[count - 1]; }
  constexpr PatternNode& root() { return nodes[count - 1]; }

  /// Appends the nodes of `other`; returns the index of its root.
  constexpr uint8_t append(const Pattern& other) {
    if (count + other.count > kCapacity)
      throw "pattern is too large: raise Pattern::kCapacity or use a function";
    for (int i = 0; i < other.count; ++i) {
      PatternNode n = other.nodes[i];
      for (int k = 0; k < n.child_count; ++k) n.child[k] = static_cast<uint8_t>(n.child[k] + count);
      nodes[count + i] = n;
    }
    count = static_cast<uint8_t>(count + other.count);
    return static_cast<uint8_t>(count - 1);
  }
  constexpr void push(const PatternNode& n) {
    if (count == kCapacity)
      throw "pattern is too large: raise Pattern::kCapacity or use a function";
    nodes[count++] = n;
  }

 private:
  static constexpr Pattern literal(uint64_t bits, bool is_double) {
    Pattern p;
    p.push({.kind = PatternKind::Literal, .float_literal = is_double, .literal = bits});
    return p;
  }
};

/// The pattern language; rule files use `using namespace rules`.
namespace rules {

constexpr Pattern named(uint8_t name) {
  Pattern p;
  p.push({.kind = name >= kFirstConstantName ? PatternKind::Constant : PatternKind::Name,
          .name = name});
  return p;
}

// clang-format off
inline constexpr Pattern x = named(0), y = named(1), z = named(2);
inline constexpr Pattern w = named(3), u = named(4), v = named(5);
inline constexpr Pattern c0 = named(6), c1 = named(7), c2 = named(8), c3 = named(9);
// clang-format on

template <class... Sources>
constexpr Pattern node(Op op, const Sources&... sources) {
  Pattern p;
  PatternNode n{.kind = PatternKind::Op, .op = op};
  ((n.child[n.child_count++] = p.append(Pattern(sources))), ...);
  p.push(n);
  return p;
}
/// As node, but further sources may follow those given.
template <class... Sources>
constexpr Pattern open_node(Op op, const Sources&... sources) {
  Pattern p = node(op, sources...);
  p.root().open = true;
  return p;
}
/// A node of that op with any sources, bound to the name `n`.
constexpr Pattern any_of(const Pattern& n, Op op) {
  Pattern p;
  p.push({.kind = PatternKind::OpAny, .op = op, .name = n.root().name});
  return p;
}
/// A set of kernel ops as bits.
constexpr uint64_t set_of(std::initializer_list<Op> ops) {
  uint64_t bits = 0;
  for (Op op : ops) {
    if (static_cast<uint8_t>(op) >= 64) throw "a set holds kernel ops only";
    bits |= uint64_t{1} << static_cast<uint8_t>(op);
  }
  return bits;
}
constexpr bool is_in(uint64_t ops, Op op) {
  const auto number = static_cast<uint8_t>(op);
  return number < 64 && (ops >> number & 1) != 0;
}
/// A node of an op of the set with these sources in this order, or with any sources if none are
/// given.
template <class... Sources>
constexpr Pattern one_of(uint64_t ops, const Sources&... sources) {
  Pattern p = node(Op::Nop, sources...);
  p.root().kind = PatternKind::OneOf;
  p.root().literal = ops;
  return p;
}
/// `p`, bound to the name `n`.
constexpr Pattern as(const Pattern& n, Pattern p) {
  p.root().name = n.root().name;
  return p;
}
/// `p`, if its dtype is of one of these classes.
constexpr Pattern of_class(Pattern p, uint8_t classes) {
  p.root().classes = classes;
  return p;
}

constexpr Pattern typed(Op op, const Pattern& a, DType dtype) {
  Pattern p = node(op, a);
  p.root().typed = true;
  p.root().literal = static_cast<uint64_t>(dtype);
  return p;
}

// clang-format off
constexpr Pattern operator+(const Pattern& a, const Pattern& b) { return node(Op::Add, a, b); }
constexpr Pattern operator-(const Pattern& a, const Pattern& b) { return node(Op::Sub, a, b); }
constexpr Pattern operator*(const Pattern& a, const Pattern& b) { return node(Op::Mul, a, b); }
constexpr Pattern operator/(const Pattern& a, const Pattern& b) { return node(Op::FloorDiv, a, b); }
constexpr Pattern operator%(const Pattern& a, const Pattern& b) { return node(Op::FloorMod, a, b); }
constexpr Pattern operator&(const Pattern& a, const Pattern& b) { return node(Op::And, a, b); }
constexpr Pattern operator|(const Pattern& a, const Pattern& b) { return node(Op::Or, a, b); }
constexpr Pattern operator^(const Pattern& a, const Pattern& b) { return node(Op::Xor, a, b); }
constexpr Pattern operator<(const Pattern& a, const Pattern& b) { return node(Op::CmpLt, a, b); }
constexpr Pattern operator>(const Pattern& a, const Pattern& b) { return node(Op::CmpLt, b, a); }
constexpr Pattern operator==(const Pattern& a, const Pattern& b) { return node(Op::CmpEq, a, b); }
constexpr Pattern operator!=(const Pattern& a, const Pattern& b) { return node(Op::CmpNe, a, b); }
constexpr Pattern operator&&(const Pattern& a, const Pattern& b) { return node(Op::And, a, b); }
constexpr Pattern operator||(const Pattern& a, const Pattern& b) { return node(Op::Or, a, b); }
constexpr Pattern operator-(const Pattern& a) { return node(Op::Neg, a); }
constexpr Pattern idiv(const Pattern& a, const Pattern& b) { return node(Op::IDiv, a, b); }
constexpr Pattern imod(const Pattern& a, const Pattern& b) { return node(Op::Mod, a, b); }
constexpr Pattern max(const Pattern& a, const Pattern& b) { return node(Op::Max, a, b); }
constexpr Pattern fdiv(const Pattern& a, const Pattern& b) { return node(Op::FDiv, a, b); }
constexpr Pattern shl(const Pattern& a, const Pattern& b) { return node(Op::Shl, a, b); }
constexpr Pattern shr(const Pattern& a, const Pattern& b) { return node(Op::Shr, a, b); }
constexpr Pattern where(const Pattern& a, const Pattern& b, const Pattern& c) {
  return node(Op::Where, a, b, c);
}
constexpr Pattern fma(const Pattern& a, const Pattern& b, const Pattern& c) {
  return node(Op::Fma, a, b, c);
}
constexpr Pattern recip(const Pattern& a) { return node(Op::Recip, a); }
constexpr Pattern sqrt(const Pattern& a) { return node(Op::Sqrt, a); }
constexpr Pattern exp2(const Pattern& a) { return node(Op::Exp2, a); }
constexpr Pattern log2(const Pattern& a) { return node(Op::Log2, a); }
constexpr Pattern exp(const Pattern& a) { return node(Op::Exp, a); }
constexpr Pattern log(const Pattern& a) { return node(Op::Log, a); }
constexpr Pattern pow(const Pattern& a, const Pattern& b) { return node(Op::Pow, a, b); }
constexpr Pattern cos(const Pattern& a) { return node(Op::Cos, a); }
constexpr Pattern tan(const Pattern& a) { return node(Op::Tan, a); }
constexpr Pattern sin(const Pattern& a) { return node(Op::Sin, a); }
constexpr Pattern trunc(const Pattern& a) { return node(Op::Trunc, a); }
/// On a right side, the result has the dtype of the matched node.
constexpr Pattern cast(const Pattern& a) { return node(Op::Cast, a); }
constexpr Pattern bitcast(const Pattern& a) { return node(Op::Bitcast, a); }
/// To a given dtype; only on right sides.
constexpr Pattern cast_to(const Pattern& a, DType dtype) { return typed(Op::Cast, a, dtype); }
constexpr Pattern bitcast_to(const Pattern& a, DType dtype) { return typed(Op::Bitcast, a, dtype); }
// clang-format on

constexpr Pattern class_guard(const Pattern& a, uint8_t classes) {
  Pattern p;
  PatternNode n{.kind = PatternKind::ClassGuard, .child_count = 1, .classes = classes};
  n.child[0] = p.append(a);
  p.push(n);
  return p;
}
// Guards on the dtype of a named node.
constexpr Pattern is_int(const Pattern& a) {
  return class_guard(a, kIntegerClass);
}
constexpr Pattern is_index(const Pattern& a) {
  return class_guard(a, kIndexClass);
}
constexpr Pattern is_float(const Pattern& a) {
  return class_guard(a, kFloatClass);
}
constexpr Pattern is_bool(const Pattern& a) {
  return class_guard(a, kBoolClass);
}
constexpr Pattern is_int_or_bool(const Pattern& a) {
  return class_guard(a, kIntegerClass | kBoolClass);
}

}  // namespace rules
}  // namespace plugrad
