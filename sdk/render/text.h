// Expands patterns with $-letters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace plugrad::render {

using Fill = std::pair<char, std::string_view>;

// Replaces $X by the text given for X; unknown letters are kept.
inline std::string expand(std::string_view pattern, std::initializer_list<Fill> fills) {
  std::string out;
  out.reserve(pattern.size() + 64);
  for (size_t i = 0; i < pattern.size(); ++i) {
    const Fill* found = nullptr;
    if (pattern[i] == '$' && i + 1 < pattern.size())
      for (const Fill& fill : fills)
        if (fill.first == pattern[i + 1]) found = &fill;
    if (found) {
      out += found->second;
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

}  // namespace plugrad::render
