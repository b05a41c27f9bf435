// Builds the lines of definitions.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace plugrad::trace {

/// Appends `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// A JSON object as text: {"t":"kernel","id":3,"name":"r_8"}
class JsonLine {
 public:
  JsonLine() = default;
  explicit JsonLine(std::string_view type) { add("t", type); }

  JsonLine& add(std::string_view key, std::string_view text) {
    begin(key);
    append_json_string(line_, text);
    return *this;
  }
  JsonLine& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }
  JsonLine& add(std::string_view key, bool value) { return add_raw(key, value ? "true" : "false"); }
  template <std::integral Number>
  JsonLine& add(std::string_view key, Number number) {
    begin(key);
    fmt::format_to(std::back_inserter(line_), "{}", number);
    return *this;
  }
  /// `json` is the value as it is.
  JsonLine& add_raw(std::string_view key, std::string_view json) {
    begin(key);
    line_ += json;
    return *this;
  }
  /// A list of numbers.
  template <class Range>
  JsonLine& add_list(std::string_view key, const Range& numbers) {
    return add_raw(key, fmt::format("[{}]", fmt::join(numbers, ",")));
  }
  std::string str() const { return line_.empty() ? "{}" : line_ + "}"; }

 private:
  void begin(std::string_view key) {
    line_ += line_.empty() ? "{\"" : ",\"";
    line_ += key;
    line_ += "\":";
  }
  std::string line_;
};

}  // namespace plugrad::trace
