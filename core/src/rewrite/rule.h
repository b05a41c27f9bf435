// Rules as data: name, left pattern, right side, guard and source location.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "rewrite/pattern.h"

namespace plugrad {

struct Rule;

/// The context of rule functions: one object of a type chosen by the rewrite.
class RuleContext {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a context converts from its address.
  constexpr RuleContext(std::nullptr_t = nullptr) {}
  template <class T>
  constexpr RuleContext(T* object) : object_(object), type_(&kTag<std::remove_const_t<T>>) {}
  // NOLINTEND(google-explicit-constructor)

  /// Errors: Internal if the context has another type.
  template <class T>
  T& get() const {
    if (type_ != &kTag<std::remove_const_t<T>>) report_type();
    return *static_cast<T*>(const_cast<void*>(object_));
  }

 private:
  template <class T>
  static constexpr char kTag = 0;
  [[noreturn]] static void report_type();

  const void* object_ = nullptr;
  const char* type_ = nullptr;
};

/// The nodes bound to the names of a pattern.
struct Match {
  Id root;               // the matched node
  Id before;             // the same node before its sources were rewritten
  Id bound[kNameCount];  // by name; unspecified for names that the pattern lacks
  RuleContext user;
  const Rule* rule = nullptr;  // whose left side matched

  Id operator[](const Pattern& name) const { return bound[name.root().name]; }
  template <class T>
  T& context() const {
    return user.get<T>();
  }
};

/// A right side as code. Returns the node that replaces Match::root, with its dtype, or kNoMatch.
using RuleFunction = Id (*)(Graph&, const Match&);
/// A guard as code.
using RulePredicate = bool (*)(const Graph&, const Match&);
inline constexpr Id kNoMatch = kNoId;

/// A function with its name for documents: `code<f>` and `check<f>` in tables.
template <class F>
struct Named {
  F function = nullptr;
  std::string_view name;
};

struct RuleGuard {
  Pattern pattern;  // over names; constants as int64, true if not 0; count 0: none
  RulePredicate predicate = nullptr;
  std::string_view predicate_name = {};
};

struct Rule {
  const char* name = "";
  Pattern left;
  Pattern right;  // count 0 if `function` is the right side
  RuleFunction function = nullptr;
  RuleGuard guard;
  const char* file = "";
  int line = 0;
  std::string_view function_name = {};
};

namespace rules {

/// The name without namespaces.
template <auto f>
consteval std::string_view name_of_function() {
  std::string_view text = __PRETTY_FUNCTION__;  // "… [with auto f = space::name; …]"
  text.remove_prefix(text.find("f = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const std::string_view plain = text.substr(0, text.find('<'));
  if (const size_t at = plain.rfind("::"); at != plain.npos) text.remove_prefix(at + 2);
  return text;
}
/// A right side as code.
template <RuleFunction f>
inline constexpr Named<RuleFunction> code{f, name_of_function<f>()};
/// `f` of the node bound to x, or of those bound to x and y.
template <Id (*f)(Graph&, Id)>
inline constexpr Named<RuleFunction> code_of_x{[](Graph& g, const Match& m) { return f(g, m[x]); },
                                               name_of_function<f>()};
template <Id (*f)(Graph&, Id, Id)>
inline constexpr Named<RuleFunction> code_of_xy{
    [](Graph& g, const Match& m) { return f(g, m[x], m[y]); }, name_of_function<f>()};
/// A condition as code.
template <RulePredicate f>
inline constexpr Named<RulePredicate> check{f, name_of_function<f>()};

constexpr RuleGuard when(const Pattern& condition) {
  return {condition, nullptr};
}
constexpr RuleGuard when(RulePredicate predicate) {
  return {{}, predicate};
}
constexpr RuleGuard when(const Named<RulePredicate>& predicate) {
  return {{}, predicate.function, predicate.name};
}
constexpr RuleGuard when(const Pattern& condition, const Named<RulePredicate>& predicate) {
  return {condition, predicate.function, predicate.name};
}

// A thrown string ends constant evaluation: the compiler reports it at the rule's line.
constexpr void check_names(const Pattern& used, const Pattern& left, uint8_t given = kNoName) {
  for (int i = 0; i < used.count; ++i) {
    const uint8_t name = used.nodes[i].name;
    bool found = name == kNoName || name == given;
    for (int k = 0; k < left.count; ++k) found = found || left.nodes[k].name == name;
    if (!found) throw "rule uses a name that its left side does not bind";
  }
}
/// `given`: a name that the builder of the right side binds.
constexpr Rule checked(const Rule& r, uint8_t given = kNoName) {
  if (r.left.count == 0) throw "rule has no left side";
  const PatternKind kind = r.left.root().kind;
  if (kind != PatternKind::Op && kind != PatternKind::OpAny && kind != PatternKind::OneOf)
    throw "the left side of a rule starts with an op";
  if ((r.right.count == 0) == (r.function == nullptr)) throw "rule needs one right side";
  check_names(r.right, r.left, given);
  check_names(r.guard.pattern, r.left);
  return r;
}

consteval Rule rule(const char* name, const Pattern& left, const Pattern& right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return checked({name, left, right, nullptr, guard, file, line});
}
consteval Rule rule(const char* name, const Pattern& left, RuleFunction right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return checked({name, left, {}, right, guard, file, line});
}

consteval Rule rule(const char* name, const Pattern& left, const Named<RuleFunction>& right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return checked({name, left, {}, right.function, guard, file, line, right.name});
}

// A plain 0 would convert to a null function.
template <std::same_as<int> Number>
consteval Rule rule(const char* name, const Pattern& left, Number right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return checked({name, left, Pattern(right), nullptr, guard, file, line});
}

}  // namespace rules
}  // namespace plugrad
