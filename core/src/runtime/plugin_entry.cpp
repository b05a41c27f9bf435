#include "runtime/plugin_entry.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace plugrad::runtime {

bool facts_match(const Device& device, const DeviceChoice& choice) {
  const DeviceInfo& info = device.info();
  if (!choice.name_glob.empty() && !matches_glob(info.name, choice.name_glob)) return false;
  return choice.uuid_glob.empty() || matches_glob(info.stable_id, choice.uuid_glob);
}

bool PluginEntry::start(const std::optional<Selection>& visible) {
  plugin_ = Plugin::open(record);
  if (!plugin_) return false;
  try {
    std::string missing;
    std::uint32_t count = plugin_->device_count(missing);
    record.stage = LoadStage::Devices;
    record.state = count ? LoadState::Loaded : LoadState::Absent;
    if (count == 0) record.reason = missing.empty() ? "it reports no device" : missing;
    if (count) choose_visible(visible, count);
  } catch (const Error& e) {
    record.state = LoadState::Refused;
    record.reason = e.what();
  }
  return record.state == LoadState::Loaded;
}

void PluginEntry::choose_visible(const std::optional<Selection>& visible, std::uint32_t count) {
  physical_ = filtered(visible.value_or(Selection{}), count);
  devices.resize(physical_.size());
  if (!physical_.empty()) return;
  record.state = LoadState::Absent;
  record.reason = "PLUGRAD_VISIBLE_DEVICES hides its devices";
}

// In the order of the list, each once, without what is excluded. An empty list shows all.
std::vector<std::uint32_t> PluginEntry::filtered(const Selection& visible,
                                                 std::uint32_t count) const {
  std::vector<std::uint32_t> out;
  auto take = [&](std::uint32_t i) {
    bool excluded = std::any_of(visible.exclude.begin(), visible.exclude.end(),
                                [&](const DeviceChoice& c) { return physical_matches(c, i); });
    if (!excluded && std::find(out.begin(), out.end(), i) == out.end()) out.push_back(i);
  };
  for (std::uint32_t i = 0; visible.prefer.empty() && i < count; ++i) take(i);
  for (const DeviceChoice& choice : visible.prefer)
    for (std::uint32_t i = 0; i < count; ++i)
      if (physical_matches(choice, i)) take(i);
  return out;
}

// A name or identity is only known of an opened device, which is closed again.
bool PluginEntry::physical_matches(const DeviceChoice& choice, std::uint32_t index) const {
  if (!choice.plugin.empty() && choice.plugin != record.manifest.device_name) return false;
  if (choice.index && *choice.index != index) return false;
  if (choice.name_glob.empty() && choice.uuid_glob.empty()) return true;
  return facts_match(*plugin_->open_device(index, index, options), choice);
}

Device& PluginEntry::device(std::uint32_t number) {
  std::unique_ptr<Device>& slot = devices[number];
  if (slot) return *slot;
  slot = plugin_->open_device(physical_[number], number, options, layers);
  const DeviceInfo& info = slot->info();
  log_line(LogLevel::Info, fmt::format("opened {}: {} ({}) by {}", slot->name(), info.name,
                                       info.arch, plugin_->path()));
  return *slot;
}

}  // namespace plugrad::runtime
