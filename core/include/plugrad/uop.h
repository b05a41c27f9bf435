/// Builds, inspects, matches and rewrites nodes of the graph of tensors. Equal nodes are one node.
/// Errors are of kind User and show the node. All functions are thread-safe.
///   using namespace plugrad::ir;
///   UOp four = UOp::constant(2, DType::I32) + UOp::constant(2, DType::I32);
///   PatternMatcher fold{{Pattern::constant("a") + Pattern::constant("b"), [](const Match& m) {
///     return UOp::constant(m["a"].integer() + m["b"].integer(), m.root().dtype());
///   }}};
///   fold.rewrite(four);  // const i32 4
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::ir {

/// A node: op, dtype, sources, argument. Copies are cheap and keep the node and its sources alive.
/// docs/custom-ops.md documents the printed text.
class PLUGRAD_API UOp {
 public:
  UOp() = default;  ///< no node
  /// As constant(value).
  template <class T>
    requires std::is_arithmetic_v<T>
  UOp(T value) : UOp(constant(value)) {}  // NOLINT(google-explicit-constructor): as in algebra
  bool defined() const { return state_ != nullptr; }

  // ---- Building. A number next to a node takes the node's dtype ----
  /// Without a dtype it is weak: index, weakfloat or bool, like a number next to a tensor. Errors:
  /// User for void, or a DType value that does not exist.
  template <class T>
    requires std::is_arithmetic_v<T>
  static UOp constant(T value, std::optional<DType> dtype = {}) {
    if (std::is_same_v<T, bool> && !dtype) dtype = DType::Bool;
    if constexpr (std::is_floating_point_v<T>)
      return make_constant(static_cast<double>(value), dtype);
    else
      return make_constant(static_cast<int64_t>(value), dtype);
  }
  /// Any op by its printed name ("add", "where", "exp2", "reshape", …). `dtype` is needed if it
  /// does not follow from the sources; `arg` is the op's number or list. Errors: User for a node
  /// that the IR does not allow, and for void where the op has a value.
  static UOp make(std::string_view op, const std::vector<UOp>& sources,
                  std::optional<DType> dtype = {}, const std::vector<int64_t>& arg = {});
  UOp cast(DType dtype) const;
  UOp where(const UOp& yes, const UOp& no) const;  ///< this is the condition
  /// Parses printed text; returns one node for each `return`.
  static std::vector<UOp> parse(std::string_view text);

  // ---- Building a kernel (user_kernel.h), with loops and memory ----
  /// A loop variable in [0, size). `axis`: unique in the kernel, smaller is further out.
  static UOp range(int64_t size, uint32_t axis, bool reduces = false);
  /// Buffer number `slot`: the outputs first, then the inputs.
  static UOp param(uint32_t slot, DType dtype, int64_t elem_count, bool written);
  UOp load(const UOp& index) const;
  UOp store(const UOp& index, const UOp& value) const;
  static UOp sink(const std::vector<UOp>& stores);
  /// "add", "mul" or "max" over ranges that reduce.
  UOp reduce(std::string_view op, const std::vector<UOp>& ranges) const;

  // ---- Looking ----
  std::string op() const;  ///< "add"
  DType dtype() const;
  std::vector<UOp> sources() const;
  std::vector<int64_t> arg() const;  ///< the op's number or list; of a constant, see integer()
  Shape shape() const;               ///< like a tensor's; () for scalars and in kernels
  bool is_constant() const;
  int64_t integer() const;  ///< of a constant. Errors: User when it is none
  double number() const;
  /// The number of distinct nodes in the graph of this node, itself included.
  size_t size() const;
  /// Textual IR: one node a line, sources first.
  std::string to_string() const;
  /// Whether both are the same node.
  friend PLUGRAD_API bool operator==(const UOp& a, const UOp& b);

  // ---- Changing ----
  /// Applies plugrad's own algebra, which keeps every IEEE result; with `fast` that of
  /// PLUGRAD_FAST_MATH.
  UOp simplify(bool fast = false) const;
  /// The tensor of this node. Errors: User if its graph contains kernel ops.
  Tensor tensor() const;

 private:
  friend struct detail::HandleAccess;
  explicit UOp(std::shared_ptr<detail::TensorState> state) : state_(std::move(state)) {}
  static UOp make_constant(int64_t value, std::optional<DType> dtype);
  static UOp make_constant(double value, std::optional<DType> dtype);
  std::shared_ptr<detail::TensorState> state_;
};

PLUGRAD_API UOp operator+(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator-(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator*(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator/(const UOp& a, const UOp& b);  ///< fdiv of floats, floordiv of integers
PLUGRAD_API UOp operator%(const UOp& a, const UOp& b);  ///< floormod
PLUGRAD_API UOp operator&(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator|(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator^(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator<(const UOp& a, const UOp& b);
PLUGRAD_API UOp operator-(const UOp& a);
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const UOp& node);

/// The left side of a rule. A repeated name must match the same node.
class PLUGRAD_API Pattern {
 public:
  static Pattern any(std::string name);       ///< any node
  static Pattern constant(std::string name);  ///< any constant
  /// A node of that op with exactly these sources, optionally named. Operands of commutative ops
  /// match in either order.
  static Pattern op(std::string_view op, std::vector<Pattern> sources, std::string name = {});
  /// A constant of that value; an integer also matches a float constant.
  template <class T>
    requires std::is_arithmetic_v<T>
  Pattern(T value)  // NOLINT(google-explicit-constructor): numbers stand as they do in algebra
      : Pattern(std::is_floating_point_v<T> ? literal(static_cast<double>(value))
                                            : literal(static_cast<int64_t>(value))) {}

  struct Tree;
  const Tree& tree() const { return *tree_; }

 private:
  explicit Pattern(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  static Pattern literal(double value);
  static Pattern literal(int64_t value);
  std::shared_ptr<const Tree> tree_;
};

PLUGRAD_API Pattern operator+(const Pattern& a, const Pattern& b);
PLUGRAD_API Pattern operator-(const Pattern& a, const Pattern& b);
PLUGRAD_API Pattern operator*(const Pattern& a, const Pattern& b);
PLUGRAD_API Pattern operator/(const Pattern& a, const Pattern& b);  ///< floordiv
PLUGRAD_API Pattern operator%(const Pattern& a, const Pattern& b);
PLUGRAD_API Pattern operator<(const Pattern& a, const Pattern& b);
PLUGRAD_API Pattern operator-(const Pattern& a);

/// The nodes bound to a pattern's names.
class PLUGRAD_API Match {
 public:
  /// Errors: User when the pattern has no such name.
  const UOp& operator[](std::string_view name) const;
  const UOp& root() const { return root_; }  ///< the node that the whole pattern matched

 private:
  friend class PatternMatcher;
  UOp root_;
  std::vector<std::pair<std::string, UOp>> bound_;
};

/// Rewrites left to right: right is a function (an undefined UOp means no match) or a pattern over
/// left's names, whose constants are folded. Both keep the dtype.
struct PLUGRAD_API Rule {
  template <std::invocable<const Match&> Right>
  Rule(Pattern left_side, Right right_side, std::string rule_name = "rule")
      : left(std::move(left_side)), function(std::move(right_side)), name(std::move(rule_name)) {}
  Rule(Pattern left_side, const Pattern& right_side, std::string rule_name = "rule")
      : left(std::move(left_side)), right({right_side}), name(std::move(rule_name)) {}

  Pattern left;
  std::vector<Pattern> right;  // one pattern; none if there is a function
  std::function<UOp(const Match&)> function;
  std::string name;  ///< in messages
};

/// Rules, tried in order. A pattern has at most 14 nodes and 10 names.
class PLUGRAD_API PatternMatcher {
 public:
  PatternMatcher(std::initializer_list<Rule> rules);
  explicit PatternMatcher(std::vector<Rule> rules);
  /// The result of the first rule that matches the node itself; undefined when none does.
  UOp apply(const UOp& node) const;
  /// Applies the rules to the node and everything below it, sources first, until none applies.
  /// Errors: User for rules that undo each other or do not terminate; exceptions of rule functions.
  UOp rewrite(const UOp& node) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace plugrad::ir
