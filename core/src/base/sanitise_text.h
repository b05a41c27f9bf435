// Texts of others (names in files, plugins, environment) on their way to terminals and JSON.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

/// Valid UTF-8 of the same size without control characters but tab and newline: each byte of other
/// ones becomes '?'. Each Error and each line of the log has passed it.
PLUGRAD_API std::string sanitise_text(std::string_view text);

}  // namespace plugrad
