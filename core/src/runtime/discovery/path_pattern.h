// Matches paths against the wildcards of unchecked manifests, in bounded time for any pattern.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plugrad::runtime {

/// Whether a name matches a pattern of `*`, `?`, `[a-z]` and `[!a-z]`. `*` does not match a leading
/// dot. Time: at most the product of both lengths.
bool matches_name(std::string_view name, std::string_view pattern);

/// Whether a text matches a pattern with stars. takes(): whether the pattern's part at `at`, which is
/// no star, matches `c`; then moves `at` behind it.
bool matches_stars(std::string_view text, std::string_view pattern,
                   bool (*takes)(std::string_view pattern, std::size_t& at, char c));

/// Whether a file matches the absolute path. Examines at most 10,000 folder entries; a pattern
/// without a match by then does not match.
bool path_pattern_exists(const std::string& pattern);

}  // namespace plugrad::runtime
