// Texts of plugins on their way to terminals, JSON and messages.
#pragma once

#include "base/sanitise_text.h"
#include "runtime/status.h"

namespace plugrad::runtime {

using plugrad::sanitise_text;

/// The same of a plugin's string. One that is NULL or longer than any sane one is empty.
inline std::string sanitise_text(const pgr_string& text) {
  constexpr std::uint64_t kLongestFact = 4096;
  return text.data && text.size <= kLongestFact ? sanitise_text(view(text)) : "";
}

}  // namespace plugrad::runtime
