// Rules as text, for docs/rules.md and messages.
#pragma once

#include <string>

#include "rewrite/rule.h"

namespace plugrad {

/// A pattern as in the rule file: "(x + c0) + c1", "f32(cast(x))".
std::string to_string(const Pattern& pattern);
/// The right side, or the name of its function.
std::string right_side(const Rule& rule);
/// The guard; empty for none.
std::string condition(const Rule& rule);
/// The file relative to core/src: "symbolic/rules/casts.cpp".
std::string source_file(const Rule& rule);

}  // namespace plugrad
