// Rules as data: a name, a left pattern, a right side, a guard, and where they were written.
#pragma once

#include <concepts>
#include <span>

#include "rewrite/pattern.h"

namespace plugrad {

struct Rule;

/// What the names of a pattern stand for.
struct Match {
  Id root;                     // the node that matched
  Id bound[kNameCount];        // by name; kNoId where the pattern does not have it
  const void* user;            // RewriteOptions::context
  const Rule* rule = nullptr;  // whose left side matched

  Id operator[](const Pattern& name) const { return bound[name.root().name]; }
  template <class T>
  T& context() const {
    return *static_cast<T*>(const_cast<void*>(user));
  }
};

/// Right side as code. Returns the node that replaces Match::root (of its dtype), or kNoMatch.
using RuleFunction = Id (*)(Graph&, const Match&);
/// Guard as code.
using RulePredicate = bool (*)(const Graph&, const Match&);
inline constexpr Id kNoMatch = kNoId;

struct RuleGuard {
  Pattern pattern;  // over names; constants as int64, true when not 0; count 0: none
  RulePredicate predicate = nullptr;
};

struct Rule {
  const char* name = "";
  Pattern left;
  Pattern right;  // count 0 when `function` is the right side
  RuleFunction function = nullptr;
  RuleGuard guard;
  const char* file = "";
  int line = 0;
};

namespace rules {

constexpr RuleGuard when(const Pattern& condition) {
  return {condition, nullptr};
}
constexpr RuleGuard when(RulePredicate predicate) {
  return {{}, predicate};
}
constexpr RuleGuard when(const Pattern& condition, RulePredicate predicate) {
  return {condition, predicate};
}

// A thrown string ends constant evaluation: the compiler shows it at the rule's own line.
constexpr void check_names(const Pattern& used, const Pattern& left) {
  for (int i = 0; i < used.count; ++i) {
    const uint8_t name = used.nodes[i].name;
    bool found = name == kNoName;
    for (int k = 0; k < left.count; ++k) found = found || left.nodes[k].name == name;
    if (!found) throw "rule uses a name that its left side does not bind";
  }
}
constexpr Rule check(const Rule& r) {
  if (r.left.count == 0) throw "rule has no left side";
  if (r.left.root().kind != PatternKind::Op && r.left.root().kind != PatternKind::OpAny)
    throw "the left side of a rule starts with an op";
  if ((r.right.count == 0) == (r.function == nullptr)) throw "rule needs one right side";
  check_names(r.right, r.left);
  check_names(r.guard.pattern, r.left);
  return r;
}

consteval Rule rule(const char* name, const Pattern& left, const Pattern& right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return check({name, left, right, nullptr, guard, file, line});
}
consteval Rule rule(const char* name, const Pattern& left, RuleFunction right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return check({name, left, {}, right, guard, file, line});
}

// A plain 0 would convert to a null function.
template <std::same_as<int> Number>
consteval Rule rule(const char* name, const Pattern& left, Number right,
                    const RuleGuard& guard = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return check({name, left, Pattern(right), nullptr, guard, file, line});
}

}  // namespace rules
}  // namespace plugrad
