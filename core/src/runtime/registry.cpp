#include "runtime/registry.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/settings.h"
#include "base/text.h"
#include "runtime/plugin_entry.h"
#include "runtime/search.h"

namespace plugrad::runtime {
namespace {

// Names that this project's own plugins have: asking for one that is not installed is no spelling
// mistake.
constexpr const char* kOwnNames[] = {"CPU", "REFERENCE", "OPENCL", "VULKAN", "CUDA"};

}  // namespace

struct Registry::State {
  explicit State(RegistryOptions o) : options(std::move(o)) {}

  RegistryOptions options;
  std::recursive_mutex mutex;
  bool searched = false;
  std::vector<std::unique_ptr<PluginEntry>> entries;
  std::optional<Selection> visible;
  LayerList layers;
  std::string chosen;          // by set_default_device
  Device* fallback = nullptr;  // what the default rule gave

  void search() {
    if (std::exchange(searched, true)) return;
    if (!options.visible_devices.empty())
      visible = parse_selection(options.visible_devices, "PLUGRAD_VISIBLE_DEVICES");
    layers = parse_layers(options.layers);
    for (LoadRecord& record : search_plugins(options.places)) add(std::move(record));
  }

  PluginEntry& add(LoadRecord record) {
    entries.push_back(std::make_unique<PluginEntry>());
    entries.back()->record = std::move(record);
    entries.back()->options = options_of(entries.back()->record);
    entries.back()->layers = layers;
    return *entries.back();
  }

  // The entry of a library that can be, or has been, opened.
  PluginEntry* usable_from(const std::string& path) {
    for (auto& entry : entries) {
      LoadState state = entry->record.state;
      bool usable = state == LoadState::Available || state == LoadState::Loaded ||
                    state == LoadState::Shadowed;
      if (usable && entry->record.path == path) return entry.get();
    }
    return nullptr;
  }

  // Puts an entry first; one that could be opened shadows others of its device name.
  void prefer(PluginEntry& preferred) {
    auto at = std::find_if(entries.begin(), entries.end(),
                           [&](const auto& entry) { return entry.get() == &preferred; });
    std::rotate(entries.begin(), at, at + 1);
    LoadRecord& first = preferred.record;
    if (first.state == LoadState::Shadowed) first.state = LoadState::Available;
    if (first.state != LoadState::Available) return;
    first.reason.clear();
    for (auto& entry : entries) {
      LoadRecord& r = entry->record;
      if (&r == &first || r.state != LoadState::Available ||
          r.manifest.device_name != first.manifest.device_name)
        continue;
      r.state = LoadState::Shadowed;
      r.reason = "the program added a plugin of the same device name";
    }
  }

  PluginOptions options_of(const LoadRecord& record) const {
    auto found = options.plugin_options.find(record.manifest.device_name);
    return found == options.plugin_options.end() ? PluginOptions{} : found->second;
  }

  std::vector<LoadRecord> records() const {
    std::vector<LoadRecord> out;
    for (const auto& entry : entries) out.push_back(entry->record);
    return out;
  }

  PluginEntry* available(const std::string& name) {
    for (auto& entry : entries) {
      LoadState state = entry->record.state;
      bool usable = state == LoadState::Available || state == LoadState::Loaded;
      if (usable && entry->record.manifest.device_name == name) return entry.get();
    }
    return nullptr;
  }

  // Device names of usable plugins, in the order in which an unnamed choice tries them.
  std::vector<std::string> names_by_priority() {
    std::vector<const Manifest*> found;
    for (auto& entry : entries)
      if (available(entry->record.manifest.device_name) == entry.get())
        found.push_back(&entry->record.manifest);
    std::stable_sort(found.begin(), found.end(), [](const Manifest* a, const Manifest* b) {
      return a->priority > b->priority;
    });
    std::vector<std::string> out;
    for (const Manifest* manifest : found) out.push_back(manifest->device_name);
    return out;
  }

  // The opened plugin of that device name with at least one visible device; null when there is
  // none. A plugin that is refused on the way gives its place to the next of the same name.
  PluginEntry* open(const std::string& name) {
    while (PluginEntry* entry = available(name)) {
      if (entry->record.state == LoadState::Loaded || entry->start(visible)) return entry;
      lift_shadow(name);
    }
    return nullptr;
  }

  void lift_shadow(const std::string& name) {
    for (auto& entry : entries) {
      LoadRecord& r = entry->record;
      if (r.state != LoadState::Shadowed || r.manifest.device_name != name) continue;
      r.state = LoadState::Available;
      r.reason.clear();
      return;
    }
  }

  bool is_excluded(const Selection& selection, const Device& device) {
    return std::any_of(selection.exclude.begin(), selection.exclude.end(),
                       [&](const DeviceChoice& c) {
                         return (c.plugin.empty() || c.plugin == device.plugin_name()) &&
                                (!c.index || *c.index == device.index()) && facts_match(device, c);
                       });
  }

  static bool excludes_plugin(const Selection& selection, const std::string& name) {
    return std::any_of(
        selection.exclude.begin(), selection.exclude.end(), [&](const DeviceChoice& c) {
          return c.plugin == name && !c.index && c.name_glob.empty() && c.uuid_glob.empty();
        });
  }

  // The first device of one plugin that `choice` allows; null when none.
  Device* match(const std::string& name, const DeviceChoice& choice, const Selection& selection) {
    if (excludes_plugin(selection, name)) return nullptr;
    PluginEntry* entry = open(name);
    if (!entry) return nullptr;
    for (std::uint32_t i = 0; i < entry->devices.size(); ++i) {
      if (choice.index && *choice.index != i) continue;
      Device& found = entry->device(i);
      if (facts_match(found, choice) && !is_excluded(selection, found)) return &found;
    }
    return nullptr;
  }

  void require_known(const Selection& selection, const DeviceChoice& choice) {
    std::vector<std::string> known(std::begin(kOwnNames), std::end(kOwnNames));
    for (auto& entry : entries) known.push_back(entry->record.manifest.device_name);
    if (choice.plugin.empty() || std::count(known.begin(), known.end(), choice.plugin)) return;
    std::string nearest = nearest_name(choice.plugin, known);
    std::string advice = nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest);
    std::string_view typed = std::string_view(selection.text).substr(choice.offset, choice.length);
    refuse_selection(selection.text, choice.offset, choice.length,
                     fmt::format("unknown device \"{}\" in {}", typed, selection.source),
                     advice + describe_records(records()));
  }

  Device* match_any(const DeviceChoice& choice, const Selection& selection) {
    if (!choice.plugin.empty()) return match(choice.plugin, choice, selection);
    for (const std::string& name : names_by_priority())
      if (Device* found = match(name, choice, selection)) return found;
    return nullptr;
  }

  Device& find(const Selection& selection) {
    search();
    for (const DeviceChoice& choice : selection.prefer) require_known(selection, choice);
    for (const DeviceChoice& choice : selection.exclude) require_known(selection, choice);
    if (selection.prefer.empty()) return by_rule(selection);
    for (const DeviceChoice& choice : selection.prefer)
      if (Device* found = match_any(choice, selection)) return *found;
    const DeviceChoice& first = selection.prefer.front();
    refuse_selection(
        selection.text, first.offset, first.length,
        fmt::format("no device is available for \"{}\" in {}", selection.text, selection.source),
        describe_devices() + describe_records(records()));
  }

  // "CPU has 1 device": says why an index that is too large found nothing.
  std::string describe_devices() const {
    std::string out;
    for (const auto& entry : entries)
      if (entry->record.state == LoadState::Loaded)
        out += fmt::format("{} has {} device{}; ", entry->record.manifest.device_name,
                           entry->devices.size(), entry->devices.size() == 1 ? "" : "s");
    return out;
  }

  // Highest priority first; never software, never priority 0.
  Device& by_rule(const Selection& selection) {
    search();
    for (const std::string& name : names_by_priority()) {
      const Manifest& manifest = available(name)->record.manifest;
      if (manifest.priority == 0 || manifest.software || excludes_plugin(selection, name)) continue;
      PluginEntry* entry = open(name);
      for (std::uint32_t i = 0; entry && i < entry->devices.size(); ++i) {
        Device& found = entry->device(i);
        if (!found.info().is_software && !is_excluded(selection, found)) return found;
      }
    }
    fail(ErrorKind::User, "no device can be the default: DEV=NAME chooses one. {}",
         describe_records(records()));
  }

  // CUDA=1 and the like: one at most.
  std::string named_by_environment() {
    std::string found;
    if (!options.environment) return found;
    std::vector<std::string> names = {"CLANG", "GPU"};
    for (auto& entry : entries) names.push_back(entry->record.manifest.device_name);
    for (const char* name : kOwnNames) names.push_back(name);
    for (const std::string& name : names) {
      auto value = name.empty() ? std::nullopt : options.environment(name.c_str());
      std::string device = canonical_device_name(name);
      if (!value || *value != "1" || device == found) continue;
      require(found.empty(), "{}=1 and {}=1 both choose a device: set one, or DEV={},{}", found,
              device, found, device);
      found = device;
    }
    return found;
  }
};

RegistryOptions options_from_settings() {
  const Settings& s = settings();
  return {search_places(), s.device, s.visible_devices, {}, environment_variable, s.layers};
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
    PluginEntry* entry = state_->open(name);
    try {
      for (std::uint32_t i = 0; entry && i < entry->devices.size(); ++i) entry->device(i);
    } catch (const Error& e) {
      entry->record.reason = e.what();  // devices that opened stay
    }
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

}  // namespace plugrad::runtime
