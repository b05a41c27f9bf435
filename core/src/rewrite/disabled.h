// Rules and stages that PLUGRAD_DISABLE switches off by name, to find the one at fault.
#pragma once

#include <string_view>
#include <vector>

#include "base/settings.h"

namespace plugrad {

/// The names of rules of derivatives begin with this. autodiff/ checks such names, engine/ all
/// others.
inline constexpr std::string_view kDerivativePrefix = "d-";

/// The names of a comma-separated list.
std::vector<std::string_view> names_of(std::string_view list);
/// Whether the list has the name.
bool is_listed(std::string_view list, std::string_view name);

inline bool is_disabled(const char* name) {
  const Settings& now = settings();
  return !now.disable.empty() && is_listed(now.disable, name);
}

}  // namespace plugrad
