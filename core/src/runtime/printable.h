// Texts of plugins on their way to terminals, JSON and messages.
#pragma once

#include "base/printable.h"
#include "runtime/status.h"

namespace plugrad::runtime {

using plugrad::printable;

/// The same of a plugin's string. One that is NULL or longer than any sane one is empty.
inline std::string printable(const pgr_string& text) {
  constexpr std::uint64_t kLongestFact = 4096;
  return text.data && text.size <= kLongestFact ? printable(view(text)) : "";
}

}  // namespace plugrad::runtime
