// plugrad devices: lists the plugins found, their devices, and the default.
#include <fmt/format.h>

#include <optional>

#include "base/escaping/sanitise_text.h"
#include "base/settings.h"
#include "command.h"
#include "plugrad/error.h"
#include "runtime/runtime.h"

namespace plugrad::tools {
namespace {

using runtime::Registry;
using Json = nlohmann::ordered_json;

struct Found {
  std::vector<runtime::Device*> devices;
  std::vector<runtime::LoadRecord> records;
  std::optional<std::string> default_name;
};

Found find() {
  Found found;
  found.devices = Registry::instance().open_all();
  found.records = Registry::instance().records();
  try {
    found.default_name = Registry::instance().default_device().name();
  } catch (const Error&) {
    // Without devices, or with only devices that are never the default, the list is sufficient; a
    // selection without a match is an error.
    if (!found.devices.empty() && !settings().device.empty()) throw;
  }
  return found;
}

std::string abi_range(const runtime::Manifest& manifest) {
  return fmt::format("{}.{}-{}.{}", manifest.abi_major, manifest.abi_minor_low, manifest.abi_major,
                     manifest.abi_minor_high);
}

Json options_of(const runtime::Manifest& manifest) {
  Json options = Json::array();
  for (const runtime::ManifestOption& o : manifest.options)
    options.push_back(
        {{"key", o.key}, {"type", o.type}, {"default", o.default_value}, {"help", o.help}});
  return options;
}

Json to_json(const Found& found) {
  Json document = {{"default", nullptr}, {"plugins", Json::array()}, {"devices", Json::array()}};
  if (found.default_name) document["default"] = *found.default_name;
  for (const runtime::LoadRecord& record : found.records)
    document["plugins"].push_back({{"name", record.manifest.device_name},
                                   {"path", record.path},
                                   {"version", record.manifest.version},
                                   {"abi", abi_range(record.manifest)},
                                   {"state", to_string(record.state)},
                                   {"stage", to_string(record.stage)},
                                   {"origin", record.origin},
                                   {"reason", record.reason},
                                   {"hint", record.hint},
                                   {"renderer", record.manifest.renderer},
                                   {"options", options_of(record.manifest)}});
  for (const runtime::Device* device : found.devices)
    document["devices"].push_back({{"name", device->name()},
                                   {"plugin", device->plugin_name()},
                                   {"model", device->info().name},
                                   {"uuid", device->info().stable_id},
                                   {"driver", device->info().driver},
                                   {"software", device->info().is_software},
                                   {"arch", device->info().arch},
                                   {"memory_bytes", device->info().memory_bytes},
                                   {"claims", device->claims()}});
  return document;
}

// Paths and manifests may contain any bytes.
template <class... Args>
void show(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}", sanitise_text(fmt::format(format, std::forward<Args>(args)...)));
}

void print_options(const runtime::Manifest& manifest) {
  if (!manifest.renderer.empty())
    show("{:<25}renders by the SDK's dialect {}\n", "", manifest.renderer);
  for (const runtime::ManifestOption& option : manifest.options) {
    std::string type = option.type.empty() ? "" : fmt::format(" ({})", option.type);
    std::string usual =
        option.default_value.empty() ? "" : fmt::format("; default {}", option.default_value);
    show("{:<25}option {}{}: {}{}\n", "", option.key, type, option.help, usual);
  }
}

std::string in_gib(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1u << 30));
}

void print_text(const Found& found, bool why) {
  show("default device: {}\n\n", found.default_name.value_or("none"));
  show("{:<14}{:<34}{:<22}{:>10}\n", "DEVICE", "NAME", "ARCHITECTURE", "MEMORY");
  for (const runtime::Device* device : found.devices) {
    const runtime::DeviceInfo& info = device->info();
    show("{:<14}{:<34}{:<22}{:>10}\n", device->name(), info.name, info.arch,
         in_gib(info.memory_bytes));
    if (why) show("{:<14}{}\n", "", fmt::join(device->claims(), " "));
  }
  if (const std::string& visible = settings().visible_devices;
      found.devices.empty() && !visible.empty())
    show("no device fits PLUGRAD_VISIBLE_DEVICES={}\n", visible);
  show("\n{:<14}{:<11}{}\n", "PLUGIN", "STATE", "FROM");
  for (const runtime::LoadRecord& record : found.records) {
    std::string name = record.manifest.device_name.empty() ? "?" : record.manifest.device_name;
    show("{:<14}{:<11}{} ({})\n", name, to_string(record.state), record.path, record.origin);
    if (!why && record.state != runtime::LoadState::Refused) continue;
    if (!record.reason.empty())
      show("{:<25}{} (at: {})\n", "", record.reason, to_string(record.stage));
    if (!record.hint.empty()) show("{:<25}{}\n", "", record.hint);
    if (why) print_options(record.manifest);
  }
}

}  // namespace

Syntax devices_syntax() {
  Syntax syntax{.usage = "plugrad devices [--why] [--json]"};
  syntax.options.add_options()("why",
                               "also say what each device offers, and why a plugin is not used");
  syntax.options.add_options()("json", "one JSON document");
  return syntax;
}

int run_devices(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, devices_syntax());
  if (parsed.help) return kSuccess;
  Found found = find();
  if (parsed.has("json"))
    print_json(to_json(found));
  else
    print_text(found, parsed.has("why"));
  return kSuccess;
}

}  // namespace plugrad::tools
