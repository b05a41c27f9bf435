// Sanitises foreign text (names in files, plugins, environment) for terminals and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

/// Valid UTF-8 of the same size without control characters other than tab and newline, and without
/// invisible ones: each byte of these and of invalid characters becomes '?'. Applied to every Error
/// and every line of the log.
PLUGRAD_API std::string sanitise_text(std::string_view text);

/// Printable ASCII: other characters, which may look like these, become <U+0421>, and invalid bytes
/// <0xFF>.
std::string escape_text(std::string_view text);

/// The start of a quoted text, escaped; of a text longer than `most` bytes with its size.
PLUGRAD_API std::string excerpt(std::string_view text, std::size_t most = 100);

/// The start and end of a text of many lines, and the number of lines between; of a long line
/// likewise. Applied to every Error, before sanitise_text.
std::string bound_text(std::string_view text);

}  // namespace plugrad
