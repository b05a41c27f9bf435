#include "runtime/registry_state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "runtime/discovery/plugin_discovery.h"

namespace plugrad::runtime {

void Registry::State::search() {
  require(!ended, "[device] plugrad was shut down, and no device can be used any more");
  if (searched) return;
  if (!options.visible_devices.empty())
    visible = parse_selection(options.visible_devices, "PLUGRAD_VISIBLE_DEVICES");
  layers = parse_layers(options.layers);
  if (options.validate) layers.push_back(validation_layer());
  for (LayerChoice& layer : layers)
    layer.open_beside = [this](const std::string& name) { return open_beside(name); };
  for (LoadRecord& record : discover_plugins(options.places)) add(std::move(record));
  for (const LayerChoice& layer : layers)
    if (const auto with = layer.values.find("with"); with != layer.values.end())
      require_known(parse_selection(with->second, "PLUGRAD_LAYERS"));
  searched = true;
}

PluginEntry& Registry::State::add(LoadRecord record) {
  entries.push_back(std::make_unique<PluginEntry>());
  entries.back()->record = std::move(record);
  entries.back()->options = options_of(entries.back()->record);
  entries.back()->layers = layers;
  entries.back()->trial_limit_ms = options.trial_limit_ms;
  return *entries.back();
}

std::vector<LoadRecord> Registry::State::records() const {
  std::vector<LoadRecord> out;
  for (const auto& entry : entries) out.push_back(entry->record);
  return out;
}

PluginOptions Registry::State::options_of(const LoadRecord& record) const {
  PluginOptions out;
  for (const auto* given : {&options.plugin_options, &options.default_options}) {
    auto found = given->find(record.manifest.device_name);
    if (found == given->end()) continue;
    for (const auto& option : found->second)
      if (std::ranges::none_of(out, [&](const auto& o) { return o.first == option.first; }))
        out.push_back(option);
  }
  return out;
}

PluginEntry* Registry::State::available(const std::string& name) {
  for (auto& entry : entries) {
    LoadState state = entry->record.state;
    bool usable = state == LoadState::Available || state == LoadState::Loaded;
    if (usable && entry->record.manifest.device_name == name) return entry.get();
  }
  return nullptr;
}

PluginEntry* Registry::State::usable_from(const std::string& path) {
  for (auto& entry : entries) {
    LoadState state = entry->record.state;
    bool usable =
        state == LoadState::Available || state == LoadState::Loaded || state == LoadState::Shadowed;
    if (usable && entry->record.path == path) return entry.get();
  }
  return nullptr;
}

void Registry::State::prefer(PluginEntry& preferred) {
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

std::vector<std::string> Registry::State::names_by_priority() {
  std::vector<const Manifest*> found;
  for (auto& entry : entries)
    if (available(entry->record.manifest.device_name) == entry.get())
      found.push_back(&entry->record.manifest);
  std::stable_sort(found.begin(), found.end(),
                   [](const Manifest* a, const Manifest* b) { return a->priority > b->priority; });
  std::vector<std::string> out;
  for (const Manifest* manifest : found) out.push_back(manifest->device_name);
  return out;
}

std::unique_ptr<Device> Registry::State::open_beside(const std::string& text) {
  const std::lock_guard lock(mutex);
  const Selection selection = parse_selection(text, "PLUGRAD_LAYERS");
  require_known(selection);
  require_numbers(selection);
  for (const DeviceChoice& choice : selection.prefer)
    if (PluginEntry* entry = open(choice.plugin))
      return entry->open_beside(choice.index.value_or(0));
  fail(ErrorKind::User, "[layers] no device {} in PLUGRAD_LAYERS", text);
}

PluginEntry* Registry::State::open(const std::string& name) {
  while (PluginEntry* entry = available(name)) {
    if (entry->record.state == LoadState::Loaded || entry->start(visible)) return entry;
    lift_shadow(name);
  }
  return nullptr;
}

LoadRecord* Registry::State::shadowed(const std::string& name) {
  for (auto& entry : entries)
    if (LoadRecord& r = entry->record;
        r.state == LoadState::Shadowed && r.manifest.device_name == name)
      return &r;
  return nullptr;
}

void Registry::State::lift_shadow(const std::string& name) {
  if (LoadRecord* const next = shadowed(name)) {
    next->state = LoadState::Available;
    next->reason.clear();
  }
}

}  // namespace plugrad::runtime
