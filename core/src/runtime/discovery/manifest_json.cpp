#include "runtime/discovery/manifest_json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace plugrad::runtime {
namespace {

// Receives the events of nlohmann's parser.
class Builder {
 public:
  bool null() { return add(JsonValue()); }
  bool boolean(bool value) { return add(JsonValue(value)); }
  bool number_integer(int64_t value) { return add(JsonValue(value)); }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return add(JsonValue(value));
    return add(JsonValue(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string&) { return add(JsonValue(value)); }
  bool string(std::string& value) { return add(JsonValue(std::move(value))); }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // JSON has none
  bool start_object(std::size_t) { return open(JsonValue(JsonValue::Object())); }
  bool start_array(std::size_t) { return open(JsonValue(JsonValue::Array())); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) {
    return false;
  }

  JsonValue take() { return std::move(root_); }

 private:
  JsonValue& place() {
    if (open_.empty()) return root_;
    if (auto* object = open_.back()->as<JsonValue::Object>()) return (*object)[key_];
    return open_.back()->as<JsonValue::Array>()->emplace_back();
  }
  bool add(JsonValue value) {
    place() = std::move(value);
    return true;
  }
  // Pointers to open arrays and objects stay valid: a parent grows only after its child is closed.
  bool open(JsonValue value) {
    JsonValue& own = place();
    own = std::move(value);
    open_.push_back(&own);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::string key_;
};

std::string json_quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct Writer {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::to_string(value); }
  std::string operator()(uint64_t value) const { return fmt::to_string(value); }
  std::string operator()(double value) const { return fmt::to_string(value); }
  std::string operator()(const std::string& value) const { return json_quoted(value); }
  std::string operator()(const JsonValue::Array& values) const {
    std::string out;
    for (const JsonValue& value : values) out += (out.empty() ? "" : ",") + value.text();
    return "[" + out + "]";
  }
  std::string operator()(const JsonValue::Object& values) const {
    std::string out;
    for (const auto& [key, value] : values)
      out += (out.empty() ? "" : ",") + json_quoted(key) + ":" + value.text();
    return "{" + out + "}";
  }
};

}  // namespace

std::string JsonValue::text() const {
  return std::visit(Writer(), content_);
}

std::optional<JsonValue> parse_json(std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  return builder.take();
}

}  // namespace plugrad::runtime
