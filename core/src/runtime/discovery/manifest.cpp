#include "runtime/discovery/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/check.h"
#include "runtime/discovery/manifest_json.h"

namespace plugrad::runtime {
namespace {

using Object = JsonValue::Object;
using Array = JsonValue::Array;

constexpr int kMostDepth = 32;
constexpr std::size_t kMostTextBytes = 4096;
constexpr std::size_t kMostItems = 256;

// Whether brackets outside of texts nest deeper than in any manifest: destroying and comparing
// trees is recursive.
bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '[' || text[i] == '{') && ++depth > kMostDepth)
      return true;
    else if (!quoted && (text[i] == ']' || text[i] == '}'))
      --depth;
  }
  return false;
}

// Whether a text is safe to print in messages on a terminal.
bool is_plain(const std::string& text) {
  return text.size() <= kMostTextBytes &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Reads keys; the first wrong type or missing required key becomes the reason.
class Reader {
 public:
  explicit Reader(const Object& object, std::string prefix = "")
      : object_(object), prefix_(prefix) {}

  void text(const std::string& key, std::string& out, bool required = false) {
    if (const auto* v = find<std::string>(key, required, "text")) take(key, *v, out);
  }
  void flag(const std::string& key, bool& out) {
    if (const bool* v = find<bool>(key, false, "true or false")) out = *v;
  }
  template <class T>
  void number(const std::string& key, T& out, bool required = false) {
    constexpr int64_t kMost = 1'000'000;
    const auto found = object_.find(key);
    const bool is_huge = found != object_.end() && found->second.template as<uint64_t>();
    const int64_t* v = is_huge ? nullptr : find<int64_t>(key, required, "a whole number");
    if (is_huge || (v && (*v < 0 || *v > kMost)))
      refuse(key, fmt::format("is {}: not from 0 to {}", found->second.text(), kMost));
    else if (v)
      out = static_cast<T>(*v);
  }
  void texts(const std::string& key, std::vector<std::string>& out) {
    const Array* v = find<Array>(key, false, "a list of texts");
    if (!v || too_long(key, v->size())) return;
    for (const JsonValue& item : *v) {
      const auto* text = item.as<std::string>();
      if (!text) return refuse(key, "holds something that is no text");
      take(key, *text, out.emplace_back());
    }
  }
  const Object* object(const std::string& key, bool required) {
    const Object* v = find<Object>(key, required, "an object");
    return v && !too_long(key, v->size()) ? v : nullptr;
  }
  const std::string& reason() const { return reason_; }
  void refuse(std::string_view key, std::string_view what) {
    if (reason_.empty()) reason_ = fmt::format("\"{}{}\" {}", prefix_, key, what);
  }

 private:
  template <class T>
  const T* find(const std::string& key, bool required, const char* what) {
    auto found = object_.find(key);
    if (!reason_.empty()) return nullptr;
    if (found == object_.end()) {
      if (required) refuse(key, "is missing");
      return nullptr;
    }
    const T* value = found->second.template as<T>();
    if (!value) refuse(key, fmt::format("is not {}", what));
    return value;
  }
  void take(std::string_view key, const std::string& text, std::string& out) {
    if (is_plain(text))
      out = text;
    else
      refuse(key, fmt::format("holds control characters or more than {} bytes", kMostTextBytes));
  }
  bool too_long(std::string_view key, std::size_t size) {
    if (size <= kMostItems) return false;
    refuse(key, fmt::format("has {} entries, more than {}", size, kMostItems));
    return true;
  }

  const Object& object_;
  std::string prefix_, reason_;
};

template <class Allowed>
bool consists_of(const std::string& text, const Allowed& allowed) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(),
                     [&](unsigned char c) { return allowed(c) || std::isdigit(c) || c == '_'; });
}

std::string read_abi(Reader& root, Manifest& out) {
  const Object* abi = root.object("abi", true);
  if (!abi) return root.reason();
  Reader read(*abi, "abi.");
  read.number("major", out.abi_major, true);
  read.number("minor_low", out.abi_minor_low, true);
  read.number("minor_high", out.abi_minor_high, true);
  if (out.abi_minor_low > out.abi_minor_high)
    read.refuse("minor_low", fmt::format("is {}, above \"abi.minor_high\", which is {}",
                                         out.abi_minor_low, out.abi_minor_high));
  return read.reason();
}

std::string read_renderer(Reader& root, Manifest& out) {
  root.text("renderer", out.renderer);
  if (!out.renderer.empty() &&
      !consists_of(out.renderer, [](unsigned char c) { return std::islower(c); }))
    root.refuse("renderer", fmt::format("is \"{}\": not lower case, digits and _", out.renderer));
  const Object* options = root.object("renderer_options", false);
  if (!options) return root.reason();
  if (out.renderer.empty()) root.refuse("renderer_options", "has no \"renderer\" to go to");
  Reader read(*options, "renderer_options.");
  for (const auto& [key, value] : *options)
    read.text(key, out.renderer_options.emplace_back(key, "").second, true);
  return root.reason().empty() ? read.reason() : root.reason();
}

// Parses "key": "help", or "key": {"type": …, "default": …, "help": …}.
std::string read_options(Reader& root, Manifest& out) {
  const Object* options = root.object("options", false);
  if (!options) return root.reason();
  for (const auto& [key, value] : *options) {
    ManifestOption& option = out.options.emplace_back();
    option.key = key;
    Reader all(*options, "options.");
    if (value.as<std::string>()) {
      all.text(key, option.help);
    } else if (const Object* schema = all.object(key, true)) {
      Reader one(*schema, fmt::format("options.{}.", key));
      one.text("type", option.type);
      one.text("default", option.default_value);
      one.text("help", option.help);
      if (!one.reason().empty()) return one.reason();
    }
    if (!is_plain(key)) all.refuse("", "has a key with control characters");
    if (!all.reason().empty()) return all.reason();
  }
  return "";
}

std::string read_keys(const Object& root, Manifest& out) {
  Reader read(root);
  read.text("name", out.name, true);
  read.text("device_name", out.device_name, true);
  read.text("version", out.version);
  read.text("vendor", out.vendor);
  read.number("priority", out.priority);
  read.flag("software", out.software);
  read.text("sanitizer", out.sanitizer);
  read.texts("probes", out.probes);
  read.text("probe_hint", out.probe_hint);
  read.texts("default_probes", out.default_probes);
  std::string reason = read.reason();
  if (reason.empty()) reason = read_abi(read, out);
  if (reason.empty()) reason = read_renderer(read, out);
  if (reason.empty()) reason = read_options(read, out);
  if (!reason.empty()) return reason;
  if (!consists_of(out.name, [](unsigned char c) { return std::islower(c); }))
    return fmt::format("name \"{}\" is not lower case, digits and _, 64 at most", out.name);
  if (!consists_of(out.device_name, [](unsigned char c) { return std::isupper(c); }))
    return fmt::format("device_name \"{}\" is not upper case, digits and _, 64 at most",
                       out.device_name);
  return "";
}

// A value shortened for a message.
std::string shown(const JsonValue* value) {
  if (!value) return "missing";
  std::string text = value->text();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string difference(const Object& note, const Object& file, const std::string& prefix) {
  std::set<std::string> keys;
  for (const auto& [key, value] : note) keys.insert(key);
  for (const auto& [key, value] : file) keys.insert(key);
  for (const std::string& key : keys) {
    const auto in_note = note.find(key), in_file = file.find(key);
    const JsonValue* a = in_note == note.end() ? nullptr : &in_note->second;
    const JsonValue* b = in_file == file.end() ? nullptr : &in_file->second;
    if (a && b && *a == *b) continue;
    const Object* inner = a ? a->as<Object>() : nullptr;
    const Object* other = b ? b->as<Object>() : nullptr;
    if (inner && other) return difference(*inner, *other, prefix + key + ".");
    return fmt::format("\"{}{}\" is {} in the note, {} in the file", prefix, key, shown(a),
                       shown(b));
  }
  return "";
}

}  // namespace

std::string parse_manifest(std::string_view text, Manifest& out) {
  if (text.size() > kMostManifestBytes) return "the manifest is larger than 1 MiB";
  if (nests_too_deep(text))
    return fmt::format("the manifest nests more than {} levels deep", kMostDepth);
  const auto root = parse_json(text);
  if (!root) return "the manifest is not valid JSON";
  const Object* keys = root->as<Object>();
  if (!keys) return "the manifest is not a JSON object";
  std::string reason = read_keys(*keys, out);
  return reason.empty() ? "" : "the manifest's " + reason;
}

std::string manifest_difference(std::string_view note, std::string_view file) {
  if (note == file) return "";
  const auto a = parse_json(note), b = parse_json(file);
  ensure(a && b && a->as<Object>() && b->as<Object>());  // both were parsed before
  return difference(*a->as<Object>(), *b->as<Object>(), "");
}

}  // namespace plugrad::runtime
