// Texts of plugins on their way to terminals, JSON and messages.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/plugin_api/status.h"

namespace plugrad::runtime {

/// Valid UTF-8 without control characters but tab and newline: every other byte becomes '?'.
std::string printable(std::string_view text);

/// The same of a plugin's string. One that is NULL or longer than any sane one is empty.
std::string printable(const pgr_string& text);

}  // namespace plugrad::runtime
