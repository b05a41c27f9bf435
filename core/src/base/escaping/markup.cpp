#include "base/escaping/markup.h"

#include <algorithm>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"

namespace plugrad {
namespace {

// U+FFFE and U+FFFF are UTF-8, but not XML.
bool is_no_character(std::string_view text, size_t at) {
  return text.substr(at, 3) == "\xEF\xBF\xBE" || text.substr(at, 3) == "\xEF\xBF\xBF";
}

}  // namespace

std::string escape_markup(std::string_view foreign) {
  const std::string text = sanitise_text(foreign);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (is_no_character(text, i)) {
      out += '?';
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

std::string fill_template(std::string_view text, TemplateValues values) {
  std::string out;
  for (size_t open; (open = text.find("{{")) != text.npos;) {
    out += text.substr(0, open);
    const bool is_raw = text.substr(open).starts_with("{{{");
    const std::string_view end = is_raw ? "}}}" : "}}";
    const size_t begin = open + end.size(), close = text.find(end, begin);
    ensure(close != text.npos, "a template has a tag without an end");
    const std::string_view name = text.substr(begin, close - begin);
    const auto found = std::ranges::find(values, name, [](const auto& v) { return v.first; });
    ensure(found != values.end(), "a template has no value of {}", name);
    if (is_raw)
      out += found->second;
    else
      out += escape_markup(found->second);
    text = text.substr(close + end.size());
  }
  out += text;
  return out;
}

}  // namespace plugrad
