// Sanitises text from plugins, which may contain any bytes, for reports.
#pragma once

#include <string>
#include <string_view>

namespace plugrad::markup {

// Converts to valid UTF-8 without control characters other than tab and line feed.
std::string clean_text(std::string_view text);
// The same, with markup characters of XML and HTML escaped.
std::string escape_markup(std::string_view text);

}  // namespace plugrad::markup
