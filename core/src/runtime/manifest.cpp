#include "runtime/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace plugrad::runtime {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 32;
constexpr std::size_t kMostTextBytes = 4096;
constexpr std::size_t kMostItems = 256;

// Whether brackets outside of texts nest further than any manifest does: what walks JSON recurses.
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

// Texts reach terminals and messages.
bool is_plain(const std::string& text) {
  return text.size() <= kMostTextBytes &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Reads one key; a wrong type or a missing required key becomes the reason, the first one stays.
class Reader {
 public:
  explicit Reader(const json& object, std::string prefix = "") : object_(object), prefix_(prefix) {}

  void text(const char* key, std::string& out, bool required = false) {
    if (const json* v = find(key, required, &json::is_string, "text")) take(key, *v, out);
  }
  void flag(const char* key, bool& out) {
    if (const json* v = find(key, false, &json::is_boolean, "true or false")) out = v->get<bool>();
  }
  template <class T>
  void number(const char* key, T& out, bool required = false) {
    const json* v = find(key, required, &json::is_number_integer, "a whole number");
    if (!v) return;
    if (*v < 0 || *v > 1000000)
      refuse(key, fmt::format("is {}: not from 0 to 1000000", v->dump()));
    else
      out = v->get<T>();
  }
  void texts(const char* key, std::vector<std::string>& out) {
    const json* v = find(key, false, &json::is_array, "a list of texts");
    if (!v || too_long(key, *v)) return;
    for (const json& item : *v) {
      if (!item.is_string()) return refuse(key, "holds something that is no text");
      take(key, item, out.emplace_back());
    }
  }
  const json* object(const char* key, bool required) {
    const json* v = find(key, required, &json::is_object, "an object");
    return v && !too_long(key, *v) ? v : nullptr;
  }
  const std::string& reason() const { return reason_; }
  void refuse(std::string_view key, std::string_view what) {
    if (reason_.empty()) reason_ = fmt::format("\"{}{}\" {}", prefix_, key, what);
  }

 private:
  using Check = bool (json::*)() const noexcept;
  const json* find(const char* key, bool required, Check is, const char* what) {
    auto found = object_.find(key);
    if (!reason_.empty()) return nullptr;
    if (found == object_.end()) {
      if (required) refuse(key, "is missing");
      return nullptr;
    }
    if (((*found).*is)()) return &*found;
    refuse(key, fmt::format("is not {}", what));
    return nullptr;
  }
  void take(std::string_view key, const json& value, std::string& out) {
    std::string text = value.get<std::string>();
    if (is_plain(text))
      out = std::move(text);
    else
      refuse(key, fmt::format("holds control characters or more than {} bytes", kMostTextBytes));
  }
  bool too_long(std::string_view key, const json& list) {
    if (list.size() <= kMostItems) return false;
    refuse(key, fmt::format("has {} entries, more than {}", list.size(), kMostItems));
    return true;
  }

  const json& object_;
  std::string prefix_, reason_;
};

template <class Allowed>
bool consists_of(const std::string& text, const Allowed& allowed) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(),
                     [&](unsigned char c) { return allowed(c) || std::isdigit(c) || c == '_'; });
}

std::string read_abi(Reader& root, Manifest& out) {
  const json* abi = root.object("abi", true);
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
  const json* options = root.object("renderer_options", false);
  if (!options) return root.reason();
  if (out.renderer.empty()) root.refuse("renderer_options", "has no \"renderer\" to go to");
  Reader read(*options, "renderer_options.");
  for (auto it = options->begin(); it != options->end(); ++it)
    read.text(it.key().c_str(), out.renderer_options.emplace_back(it.key(), "").second, true);
  return root.reason().empty() ? read.reason() : root.reason();
}

// "key": "help", or "key": {"type": …, "default": …, "help": …}.
std::string read_options(Reader& root, Manifest& out) {
  const json* options = root.object("options", false);
  if (!options) return root.reason();
  for (auto it = options->begin(); it != options->end(); ++it) {
    ManifestOption& option = out.options.emplace_back();
    option.key = it.key();
    Reader all(*options, "options.");
    if (it->is_string()) {
      all.text(it.key().c_str(), option.help);
    } else if (const json* schema = all.object(it.key().c_str(), true)) {
      Reader one(*schema, fmt::format("options.{}.", it.key()));
      one.text("type", option.type);
      one.text("default", option.default_value);
      one.text("help", option.help);
      if (!one.reason().empty()) return one.reason();
    }
    if (!is_plain(it.key())) all.refuse("", "has a key with control characters");
    if (!all.reason().empty()) return all.reason();
  }
  return "";
}

std::string read_keys(const json& root, Manifest& out) {
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

// A value as a message shows it.
std::string shown(const json* value) {
  if (!value) return "missing";
  std::string text = value->dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string difference(const json& note, const json& file, const std::string& prefix) {
  json keys = note;
  keys.update(file);
  for (auto it = keys.begin(); it != keys.end(); ++it) {
    auto in_note = note.find(it.key()), in_file = file.find(it.key());
    const json* a = in_note == note.end() ? nullptr : &*in_note;
    const json* b = in_file == file.end() ? nullptr : &*in_file;
    if (a && b && *a == *b) continue;
    if (a && b && a->is_object() && b->is_object())
      return difference(*a, *b, prefix + it.key() + ".");
    return fmt::format("\"{}{}\" is {} in the note, {} in the file", prefix, it.key(), shown(a),
                       shown(b));
  }
  return "";
}

}  // namespace

std::string parse_manifest(std::string_view text, Manifest& out) {
  if (text.size() > kMostManifestBytes) return "the manifest is larger than 1 MiB";
  if (nests_too_deep(text))
    return fmt::format("the manifest nests more than {} levels deep", kMostDepth);
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return "the manifest is not valid JSON";
  if (!root.is_object()) return "the manifest is not a JSON object";
  std::string reason = read_keys(root, out);
  return reason.empty() ? "" : "the manifest's " + reason;
}

std::string manifest_difference(std::string_view note, std::string_view file) {
  if (note == file) return "";
  return difference(json::parse(note), json::parse(file), "");
}

}  // namespace plugrad::runtime
