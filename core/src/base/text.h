// Help with words that people typed.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plugrad {

/// The candidate that `name` most likely means, or empty: at most a third of its letters are wrong,
/// missing, too many or swapped. Letter case does not count.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace plugrad
