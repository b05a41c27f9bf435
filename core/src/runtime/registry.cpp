#include "runtime/registry.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/settings.h"
#include "runtime/discovery/plugin_discovery.h"
#include "runtime/queue/exit_wait.h"
#include "runtime/registry_state.h"

namespace plugrad::runtime {

RegistryOptions options_from_settings() {
  const Settings& s = settings();
  RegistryOptions options;
  options.places = search_places();
  options.selection = s.device;
  options.visible_devices = s.visible_devices;
  options.environment = environment_variable;
  options.layers = s.layers;
  options.validate = s.validate;
  if (!s.cpu_target.empty()) options.default_options["CPU"] = {{"isa", s.cpu_target}};
  return options;
}

Registry::Registry(RegistryOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Registry::~Registry() = default;

Registry& Registry::instance() {
  static Registry* instance =
      new Registry(options_from_settings());  // devices live until the process ends
  return *instance;
}

Device& Registry::default_device() {
  std::lock_guard lock(state_->mutex);
  State& s = *state_;
  if (s.fallback) return *s.fallback;
  s.search();
  std::string text = !s.chosen.empty() ? s.chosen : s.options.selection;
  std::string source = !s.chosen.empty() ? "the default device" : "DEV";
  if (text.empty()) {
    text = s.named_by_environment();
    source = text + "=1";
  }
  Device& found = text.empty() ? s.by_rule({}) : s.find(parse_selection(text, source));
  s.fallback = &found;
  return found;
}

void Registry::set_default_device(std::string_view selection) {
  std::lock_guard lock(state_->mutex);
  Device* found =
      selection.empty() ? nullptr : &state_->find(parse_selection(selection, "the default device"));
  state_->chosen = selection;
  state_->fallback = found;
}

void Registry::set_plugin_options(const std::string& device_name, PluginOptions options) {
  std::lock_guard lock(state_->mutex);
  State& s = *state_;
  s.options.plugin_options[device_name] = std::move(options);
  for (auto& entry : s.entries) entry->options = s.options_of(entry->record);
}

Device& Registry::find_device(std::string_view selection, std::string_view source) {
  std::lock_guard lock(state_->mutex);
  return state_->find(parse_selection(selection, source));
}

void Registry::require_numbers(std::string_view selection, std::string_view source) {
  std::lock_guard lock(state_->mutex);
  state_->require_numbers(parse_selection(selection, source));
}

std::vector<Device*> Registry::devices() {
  std::lock_guard lock(state_->mutex);
  std::vector<Device*> out;
  for (auto& entry : state_->entries)
    for (auto& device : entry->devices)
      if (device) out.push_back(device.get());
  return out;
}

std::vector<Device*> Registry::open_all() {
  std::lock_guard lock(state_->mutex);
  state_->search();
  for (const std::string& name : state_->names_by_priority()) {
    PluginEntry* entry = nullptr;
    do {
      entry = state_->open(name);
      for (std::uint32_t i = 0; entry && i < entry->devices.size(); ++i) {
        try {
          entry->device(i);
        } catch (const Error&) {  // kept in the plugin's load record
        }
      }
    } while (entry && state_->gives_way(*entry));
  }
  return devices();
}

std::vector<LoadRecord> Registry::records() {
  std::lock_guard lock(state_->mutex);
  state_->search();
  return state_->records();
}

std::string Registry::add_plugin(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  State& s = *state_;
  s.search();
  LoadRecord record = examine_plugin(path, "added by the program");
  const std::string name = record.manifest.device_name;
  if (record.state == LoadState::Available) {
    for (auto& entry : s.entries) {
      const LoadRecord& r = entry->record;
      bool in_the_way = r.state == LoadState::Loaded && r.manifest.device_name == name;
      require(
          !in_the_way || r.path == record.path,
          "[add_plugin] {}: {} is open already, from {}; add a plugin before its device is used",
          path, name, r.path);
    }
    if (PluginEntry* same = s.usable_from(record.path)) {
      s.prefer(*same);
      return name;
    }
  }
  PluginEntry& entry = s.add(std::move(record));
  s.prefer(entry);
  const LoadRecord& r = entry.record;
  require(r.state == LoadState::Available, "[add_plugin] {}: {}{}{}", path, r.reason,
          r.hint.empty() ? "" : "; ", r.hint);
  return name;
}

void Registry::shut_down() {
  run_before_devices_end();
  std::lock_guard lock(state_->mutex);
  state_->ended = true;
  for (auto& entry : state_->entries) entry->shut_down_devices();
  for (auto& entry : state_->entries) entry->shut_down_plugin();
}

}  // namespace plugrad::runtime
