#include "runtime/manifest.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::runtime {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxManifestBytes = 1 << 20;

// Reads one key; a wrong type or a missing required key becomes the reason.
class Reader {
 public:
  explicit Reader(const json& object, std::string prefix = "") : object_(object), prefix_(prefix) {}

  void text(const char* key, std::string& out, bool required = false) {
    if (const json* v = find(key, required, &json::is_string, "text")) out = v->get<std::string>();
  }
  void flag(const char* key, bool& out) {
    if (const json* v = find(key, false, &json::is_boolean, "true or false")) out = v->get<bool>();
  }
  template <class T>
  void number(const char* key, T& out, bool required = false) {
    const json* v = find(key, required, &json::is_number_integer, "a whole number");
    if (!v) return;
    auto value = v->get<std::int64_t>();
    if (value < 0 || value > 1000000) {
      reason_ = fmt::format("\"{}{}\" is {}: not from 0 to 1000000", prefix_, key, value);
      return;
    }
    out = static_cast<T>(value);
  }
  void texts(const char* key, std::vector<std::string>& out) {
    const json* v = find(key, false, &json::is_array, "a list of texts");
    if (!v) return;
    for (const json& item : *v) {
      if (item.is_string())
        out.push_back(item.get<std::string>());
      else
        reason_ = fmt::format("\"{}{}\" holds something that is no text", prefix_, key);
    }
  }
  const json* object(const char* key) { return find(key, true, &json::is_object, "an object"); }
  const std::string& reason() const { return reason_; }

 private:
  using Check = bool (json::*)() const noexcept;
  const json* find(const char* key, bool required, Check is, const char* what) {
    auto found = object_.find(key);
    if (!reason_.empty()) return nullptr;
    if (found == object_.end()) {
      if (required) reason_ = fmt::format("\"{}{}\" is missing", prefix_, key);
      return nullptr;
    }
    if (((*found).*is)()) return &*found;
    reason_ = fmt::format("\"{}{}\" is not {}", prefix_, key, what);
    return nullptr;
  }

  const json& object_;
  std::string prefix_, reason_;
};

template <class Allowed>
bool consists_of(const std::string& text, const Allowed& allowed) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return allowed(c) || std::isdigit(c) || c == '_';
  });
}

std::string host_sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return "address";
#elif defined(__SANITIZE_THREAD__)
  return "thread";
#else
  return "";
#endif
}

}  // namespace

std::string parse_manifest(std::string_view text, Manifest& out) {
  if (text.size() > kMaxManifestBytes) return "the manifest is larger than 1 MiB";
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return "the manifest is not valid JSON";
  if (!root.is_object()) return "the manifest is not a JSON object";
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
  const json* abi = read.object("abi");
  if (!read.reason().empty()) return "the manifest's " + read.reason();
  Reader abi_read(*abi, "abi.");
  abi_read.number("major", out.abi_major, true);
  abi_read.number("minor_low", out.abi_minor_low, true);
  abi_read.number("minor_high", out.abi_minor_high, true);
  if (!abi_read.reason().empty()) return "the manifest's " + abi_read.reason();
  if (!consists_of(out.name, [](unsigned char c) { return std::islower(c); }))
    return fmt::format("the manifest's name \"{}\" is not lower case, digits and _", out.name);
  if (!consists_of(out.device_name, [](unsigned char c) { return std::isupper(c); }))
    return fmt::format("the manifest's device_name \"{}\" is not upper case, digits and _",
                       out.device_name);
  return "";
}

std::string manifest_refusal(const Manifest& m, std::string& hint) {
  if (m.abi_major != PGR_API_MAJOR) {
    hint = "install a plugin that was built for this version of plugrad";
    return fmt::format("it is built for plugin ABI {}.x; this host speaks {}.{}", m.abi_major,
                       PGR_API_MAJOR, PGR_API_MINOR);
  }
  if (m.abi_minor_low > PGR_API_MINOR) {
    hint = fmt::format("install a plugrad that speaks plugin ABI {}.{} or later", m.abi_major,
                       m.abi_minor_low);
    return fmt::format("it needs a newer host: plugin ABI {}.{}; this host speaks {}.{}",
                       m.abi_major, m.abi_minor_low, PGR_API_MAJOR, PGR_API_MINOR);
  }
  // A library with a sanitizer in it ends a host without the same one inside dlopen.
  for (const char* kind : {"address", "thread", "memory"}) {
    bool plugin_has = m.sanitizer.find(kind) != std::string::npos;
    if (plugin_has && host_sanitizer() != kind) {
      hint = "build plugin and host with the same sanitizers";
      return fmt::format("it is built with the sanitizer \"{}\", this host with \"{}\"",
                         m.sanitizer, host_sanitizer());
    }
  }
  return "";
}

bool probes_pass(const Manifest& manifest) {
  if (manifest.probes.empty()) return true;
  return std::any_of(
      manifest.probes.begin(), manifest.probes.end(), [](const std::string& pattern) {
        glob_t found{};
        bool exists =
            pattern.starts_with('/') && glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
        globfree(&found);
        return exists;
      });
}

}  // namespace plugrad::runtime
