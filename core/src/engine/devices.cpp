#include "engine/devices.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sharding/spec.h"

namespace plugrad::engine {
namespace {

thread_local uint32_t default_of_thread = 0;

std::string short_name(const std::string& plugin, uint32_t index) {
  return index == 0 ? plugin : fmt::format("{}:{}", plugin, index);
}

bool is_available(const runtime::LoadRecord& record, const std::string& plugin) {
  using runtime::LoadState;
  return runtime::canonical_device_name(record.manifest.device_name) == plugin &&
         (record.state == LoadState::Available || record.state == LoadState::Loaded);
}

// The device's short name if the text names exactly one available plugin and index; otherwise
// empty.
std::string plain_name(std::string_view text) {
  const runtime::Selection selection = runtime::parse_selection(text, "device");
  if (selection.prefer.size() != 1 || !selection.exclude.empty()) return {};
  const runtime::DeviceChoice& choice = selection.prefer[0];
  if (choice.plugin.empty() || !choice.name_glob.empty() || !choice.uuid_glob.empty()) return {};
  const auto records = runtime::Registry::instance().records();
  const bool found =
      std::ranges::any_of(records, [&](const auto& r) { return is_available(r, choice.plugin); });
  if (!found) return {};
  // Only index 0 is sure to exist: report any other now rather than at its first use.
  if (choice.index.value_or(0) != 0) runtime::Registry::instance().require_numbers(text);
  return short_name(choice.plugin, choice.index.value_or(0));
}

}  // namespace

const DeviceTable::Entry& DeviceTable::entry(uint32_t number) const {
  ensure(number >= 1 && number <= entries_.size(), "device number {} is unknown", number);
  return entries_[number - 1];
}

uint32_t DeviceTable::number_of_name(const std::string& name) {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  if (found == entries_.end()) {
    entries_.push_back({name, nullptr});
    return static_cast<uint32_t>(entries_.size());
  }
  return static_cast<uint32_t>(found - entries_.begin()) + 1;
}

uint32_t DeviceTable::number(std::string_view selection) {
  if (selection.empty()) return default_number();
  if (const auto known = by_selection_.find(selection); known != by_selection_.end()) {
    return known->second;
  }
  const std::string name = plain_name(selection);
  const uint32_t result = name.empty()
                              ? number(runtime::Registry::instance().find_device(selection))
                              : number_of_name(name);
  by_selection_.emplace(selection, result);
  return result;
}

uint32_t DeviceTable::number(runtime::Device& device) {
  for (uint32_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].device == &device) return i + 1;
  const uint32_t number = number_of_name(
      short_name(runtime::canonical_device_name(device.plugin_name()), device.index()));
  set_device(number, device);
  return number;
}

uint32_t DeviceTable::number(sharding::Mesh mesh) {
  for (uint32_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].mesh && entries_[i].mesh->axes == mesh.axes &&
        entries_[i].mesh->sizes == mesh.sizes && entries_[i].mesh->places == mesh.places)
      return i + 1;
  const auto number = static_cast<uint32_t>(entries_.size() + 1);
  std::vector<std::string> devices;
  for (const auto& place : mesh.places)
    devices.push_back(place.rank == mesh.rank ? name(place.device)
                                              : fmt::format("rank {}", place.rank));
  const bool has_all = mesh.has_all_processes();
  const std::string text =
      fmt::format("mesh {} ({})", sharding::to_string(mesh), fmt::join(devices, ", "));
  mesh.device = number;
  Entry made{text, nullptr, std::make_shared<const sharding::Mesh>(std::move(mesh))};
  entries_.reserve(entries_.size() + 1);
  by_selection_.emplace(text, number);
  entries_.push_back(std::move(made));  // has room
  has_meshes_ = true;
  has_meshes_of_some_ |= !has_all;
  return number;
}

void DeviceTable::set_device(uint32_t number, runtime::Device& device) {
  if (on_open) on_open(device);
  entries_[number - 1].device = &device;
}

runtime::Device& DeviceTable::open(uint32_t number) {
  if (runtime::Device* device = entry(number).device) return *device;
  ensure(!entry(number).mesh, "{} is no device", entry(number).name);
  runtime::Device& device = runtime::Registry::instance().find_device(entry(number).name);
  set_device(number, device);
  return device;
}

uint32_t DeviceTable::set_default_of_thread(uint32_t number) {
  return std::exchange(default_of_thread, number);
}

uint32_t DeviceTable::default_number() {
  if (default_of_thread != 0) return default_of_thread;
  return number(runtime::Registry::instance().default_device());
}

std::vector<runtime::Device*> DeviceTable::opened() const {
  std::vector<runtime::Device*> devices;
  for (const Entry& e : entries_)
    if (e.device) devices.push_back(e.device);
  return devices;
}

}  // namespace plugrad::engine
