#include "base/trace/json_line.h"

#include <iterator>

namespace plugrad::trace {
namespace {

bool is_continuation(unsigned char c) {
  return (c & 0xC0) == 0x80;
}

// Bytes of the UTF-8 character that `text` begins with; 0 if it is none (RFC 3629).
std::size_t length_of_character(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!is_continuation(at(i))) return 0;
  const bool is_overlong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xF0 && at(1) < 0x90);
  const bool is_surrogate = first == 0xED && at(1) > 0x9F;
  const bool is_beyond = first == 0xF4 && at(1) > 0x8F;
  return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    const std::size_t length = length_of_character(text);
    if (length == 0)
      out += "\\ufffd";
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace plugrad::trace
