// Corrections of misspelled words; parts of texts.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plugrad {

/// The candidate nearest to `name`; empty if more than a third of its letters are wrong, missing,
/// superfluous or swapped. Case-insensitive.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// Without the spaces at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace plugrad
