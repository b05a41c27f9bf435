// Rules as text, for docs/rules.md and messages.
#pragma once

#include <string>

#include "rewrite/rule.h"

namespace plugrad {

/// As the rule file has it: "(x + c0) + c1", "f32(cast(x))".
std::string to_string(const Pattern& pattern);
/// The right side; the name of a function.
std::string right_side(const Rule& rule);
/// The guard; empty for none.
std::string condition(const Rule& rule);
/// The file from core/src on, and the line: "symbolic/rules/casts.cpp".
std::string source_file(const Rule& rule);

}  // namespace plugrad
