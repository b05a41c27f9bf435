// Sanitises texts of plugins for terminals, JSON and messages.
#pragma once

#include "base/escaping/sanitise_text.h"
#include "runtime/status.h"

namespace plugrad::runtime {

using plugrad::sanitise_text;

/// The same for a plugin's string; empty if it is NULL or too long.
inline std::string sanitise_text(const pgr_string& text) {
  constexpr std::uint64_t kLongestFact = 4096;
  return text.data && text.size <= kLongestFact ? sanitise_text(view(text)) : "";
}

}  // namespace plugrad::runtime
