// The JSON of a manifest as a tree. nlohmann::json's own tree allocates in its destructor, which
// ends the process when memory is exhausted; its parser does not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plugrad::runtime {

class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::map<std::string, JsonValue>;
  // Whole numbers are int64_t, above its range uint64_t, above 64 bits double like all others.
  using Content =
      std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  JsonValue() = default;
  explicit JsonValue(Content content) : content_(std::move(content)) {}
  template <class T>
  const T* as() const {
    return std::get_if<T>(&content_);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&content_);
  }
  bool operator==(const JsonValue&) const = default;
  /// Prints JSON without spaces.
  std::string text() const;

 private:
  Content content_ = nullptr;
};

/// Nothing if the text is not valid JSON. The last of duplicate keys wins.
std::optional<JsonValue> parse_json(std::string_view text);

}  // namespace plugrad::runtime
