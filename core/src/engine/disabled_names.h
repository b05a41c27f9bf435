// The names that PLUGRAD_DISABLE may have, beside those of autodiff::derivative_names().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plugrad::engine {

/// Names of the rules of all tables but that of the derivatives, sorted.
std::vector<std::string> rule_names();
/// Those that only simplify: what they rewrite computes the same without them. Sorted.
std::vector<std::string> simplifying_rules();
/// Names of the stages of both pipelines that may be left out.
std::vector<std::string> optional_stages();
/// Errors: User for a name that is neither, nor begins as those of derivatives; with the nearest
/// one.
void require_known_names(std::string_view disabled);

}  // namespace plugrad::engine
