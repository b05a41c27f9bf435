#include "runtime/discovery/plugin_entry.h"

#include <string.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/log.h"
#include "runtime/device/device_calls.h"
#include "runtime/device/device_state.h"
#include "runtime/queue/call_watch.h"

namespace plugrad::runtime {
namespace {

// Sorted by bytes, or by numbers within the text.
bool is_sorted(const std::string& low, const std::string& high) {
  return low < high || strverscmp(low.c_str(), high.c_str()) < 0;
}

}  // namespace

bool facts_match(const Device& device, const DeviceChoice& choice) {
  const DeviceInfo& info = device.info();
  if (!choice.name_glob.empty() && !matches_glob(info.name, choice.name_glob)) return false;
  return choice.uuid_glob.empty() || matches_glob(info.stable_id, choice.uuid_glob);
}

bool PluginEntry::start(const std::optional<Selection>& visible) {
  plugin_ = Plugin::open(record, trial_limit_ms);
  if (!plugin_) return false;
  record.stage = LoadStage::Devices;
  try {
    count_devices(visible);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::User) throw;
    record.state = LoadState::Refused;
    record.reason = e.what();
  }
  return record.state == LoadState::Loaded;
}

void PluginEntry::count_devices(const std::optional<Selection>& visible) {
  std::string missing;
  const std::uint32_t count = [&] {
    const DeviceCalls calls(plugin_->device_name());
    const WatchedCall watched(calls, "device_count");
    return plugin_->device_count(missing);
  }();
  if (count > kMostDevices) {
    record.state = LoadState::Refused;
    record.reason = fmt::format("it says that it has {} devices; at most {} can be numbered", count,
                                kMostDevices);
  } else if (count == 0) {
    record.state = LoadState::Absent;
    record.reason = missing.empty() ? "it reports no device" : missing;
  } else {
    choose_visible(visible, count);
  }
}

void PluginEntry::choose_visible(const std::optional<Selection>& visible, std::uint32_t count) {
  const Selection all;
  const Selection& selection = visible ? *visible : all;
  for (const auto* list : {&selection.prefer, &selection.exclude})
    for (const DeviceChoice& c : *list)
      if (c.plugin == record.manifest.device_name && c.index && *c.index >= count)
        refuse_selection(selection.text, c.which_offset, c.which_length,
                         fmt::format("no device {}:{} in {}", c.plugin, *c.index, selection.source),
                         fmt::format("{} has {}", c.plugin, device_numbers(count)));
  physical_ = filtered(selection, count);
  devices.resize(physical_.size());
  record.state = physical_.empty() ? LoadState::Absent : LoadState::Loaded;
  if (physical_.empty()) record.reason = "PLUGRAD_VISIBLE_DEVICES hides its devices";
}

// Visible devices in the order of the list, without duplicates and excluded ones. An empty list
// shows all.
std::vector<std::uint32_t> PluginEntry::filtered(const Selection& visible,
                                                 std::uint32_t count) const {
  std::vector<std::uint32_t> out;
  std::vector<bool> taken(count);
  auto take = [&](std::uint32_t i) {
    bool excluded = std::any_of(visible.exclude.begin(), visible.exclude.end(),
                                [&](const DeviceChoice& c) { return physical_matches(c, i); });
    if (excluded || taken[i]) return;
    taken[i] = true;
    out.push_back(i);
  };
  for (std::uint32_t i = 0; visible.prefer.empty() && i < count; ++i) take(i);
  for (const DeviceChoice& choice : visible.prefer)
    for (std::uint32_t i = 0; i < count; ++i)
      if (physical_matches(choice, i)) take(i);
  return out;
}

// Name and identity are known only of an open device, which is closed again.
bool PluginEntry::physical_matches(const DeviceChoice& choice, std::uint32_t index) const {
  if (!choice.plugin.empty() && choice.plugin != record.manifest.device_name) return false;
  if (choice.index && *choice.index != index) return false;
  if (choice.name_glob.empty() && choice.uuid_glob.empty()) return true;
  return facts_match(*plugin_->open_device(index, index, options), choice);
}

Device& PluginEntry::device(std::uint32_t number) {
  std::unique_ptr<Device>& slot = devices[number];
  if (!slot) open(number);
  const DeviceCalls& calls = slot->state().calls;
  if (!calls.is_reachable()) calls.require_usable("select");
  return *slot;
}

void PluginEntry::open(std::uint32_t number) {
  std::unique_ptr<Device>& slot = devices[number];
  try {
    slot = plugin_->open_device(physical_[number], number, options, layers);
    check_identity(number);
  } catch (const Error& e) {
    slot.reset();
    record.reason = e.what();
    throw;
  }
  const DeviceInfo& info = slot->info();
  log_line(LogLevel::Info, fmt::format("opened {}: {} ({}) by {}", slot->name(), info.name,
                                       info.arch, plugin_->path()));
}

// Warns if the plugin does not sort devices by identity, as numbers are then meaningless. The host
// cannot sort: identities are known only of open devices, and it does not open all to use one.
void PluginEntry::check_identity(std::uint32_t number) {
  const std::string& id = devices[number]->info().stable_id;
  auto [same, is_new] = number_of_.emplace(id, number);
  if (!is_new && same->second != number)
    throw_status(devices[number]->name(), "device_open", PGR_STATUS_INCOMPATIBLE,
                 fmt::format("its stable id \"{}\" is that of {}:{} too", id,
                             record.manifest.device_name, same->second));
  auto at = id_of_.insert_or_assign(physical_[number], id).first;
  auto warn = [&](auto low, auto high) {
    record.reason = fmt::format(
        "its devices are not sorted by stable id (\"{}\" before \"{}\"), so that their numbers may "
        "change",
        low->second, high->second);
    log_line(LogLevel::Warning, fmt::format("{}: {}", record.path, record.reason));
  };
  if (at != id_of_.begin() && !is_sorted(std::prev(at)->second, id)) return warn(std::prev(at), at);
  if (auto next = std::next(at); next != id_of_.end() && !is_sorted(id, next->second))
    warn(at, next);
}

std::unique_ptr<Device> PluginEntry::open_beside(std::uint32_t number) const {
  auto device = plugin_->open_device(physical_.at(number), number, options);
  device->state().trace.set_name(device->name() + " (checks)");
  return device;
}

void PluginEntry::shut_down_devices() {
  for (auto& opened : devices)
    if (opened) opened->shut_down();
}

void PluginEntry::shut_down_plugin() {
  const bool is_hung = std::ranges::any_of(
      devices, [](const auto& opened) { return opened && opened->state().is_hung(); });
  if (plugin_ && !is_hung) plugin_->shut_down();
}

}  // namespace plugrad::runtime
