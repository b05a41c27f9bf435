// Sanitises foreign text (names in files, plugins, environment) for terminals and JSON.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

/// Valid UTF-8 of the same size without control characters other than tab and newline: each byte of
/// an invalid or control character becomes '?'. Applied to every Error and every line of the log.
PLUGRAD_API std::string sanitise_text(std::string_view text);

}  // namespace plugrad
