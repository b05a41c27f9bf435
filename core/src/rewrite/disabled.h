// Rules and stages that PLUGRAD_DISABLE switches off by name, to find the one at fault.
#pragma once

#include <string_view>

#include "base/settings.h"

namespace plugrad {

/// Whether the comma-separated list has the name.
bool is_listed(std::string_view list, std::string_view name);

inline bool is_disabled(const char* name) {
  const Settings& now = settings();
  return !now.disable.empty() && is_listed(now.disable, name);
}

}  // namespace plugrad
