#include "markup/clean_text.h"

namespace plugrad::markup {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the code point at the start of `text`; 0 if invalid: overlong forms, surrogates, and
// code points above U+10FFFF.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

// XML cannot represent U+FFFE and U+FFFF.
bool is_noncharacter(std::string_view code_point) {
  return code_point == "\xEF\xBF\xBE" || code_point == "\xEF\xBF\xBF";
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view code_point = text.substr(0, length);
    const bool control =
        length == 1 && ((text[0] < ' ' && text[0] != '\n' && text[0] != '\t') || text[0] == 0x7F);
    if (length == 0 || control || is_noncharacter(code_point))
      out += kReplacement;
    else
      out += code_point;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace plugrad::markup
