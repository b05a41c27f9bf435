// Resolves a selection to the first device that it allows, or to an error that shows the mistake,
// the available devices and the nearest name.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/discovery/manifest.h"
#include "runtime/discovery/plugin_discovery.h"
#include "runtime/registry_state.h"

namespace plugrad::runtime {
namespace {

// Names of this project's devices, of the manifests in plugins/: a request for one that is not
// installed is no spelling mistake.
constexpr const char* kOwnNames[] = {PLUGRAD_DEVICES};
constexpr std::size_t kMostListed = 16;

bool excludes_plugin(const Selection& selection, const std::string& name) {
  return std::any_of(
      selection.exclude.begin(), selection.exclude.end(), [&](const DeviceChoice& c) {
        return c.plugin == name && !c.index && c.name_glob.empty() && c.uuid_glob.empty();
      });
}

bool names_a_device(const DeviceChoice& choice) {
  return !choice.name_glob.empty() || !choice.uuid_glob.empty();
}

bool may_be_default(const Manifest& manifest) {
  return manifest.priority != 0 && !manifest.software && probes_pass(manifest.default_probes);
}

std::string without_stars(std::string text) {
  std::erase(text, '*');
  return text;
}

// E.g. "no device of HIGH has that name; there are: a, b; did you mean name=a?"
std::string nearest_fact(const PluginEntry& entry, const char* key, const std::string& glob,
                         std::string DeviceInfo::* fact) {
  std::vector<std::string> there;
  for (const auto& device : entry.devices)
    if (device) there.push_back(device->info().*fact);
  std::string nearest = nearest_name(without_stars(glob), there);
  std::string out =
      fmt::format("no device of {} has {} \"{}\"; there are: ", entry.record.manifest.device_name,
                  key, excerpt(glob));
  const std::size_t listed = std::min(there.size(), kMostListed);
  out += fmt::format(
      "{}{}; ", fmt::join(there.begin(), there.begin() + static_cast<long>(listed), ", "),
      there.size() > listed ? fmt::format(" and {} more", there.size() - listed) : "");
  return nearest.empty() ? out : out + fmt::format("did you mean {}={}? ", key, nearest);
}

}  // namespace

bool Registry::State::is_excluded(const Selection& selection, const Device& device) {
  return std::any_of(selection.exclude.begin(), selection.exclude.end(),
                     [&](const DeviceChoice& c) {
                       return (c.plugin.empty() || c.plugin == device.plugin_name()) &&
                              (!c.index || *c.index == device.index()) && facts_match(device, c);
                     });
}

// Opens a device; on failure records the error in its record and `failure`. Rethrows for devices
// with options: the user wants that device with those options and no substitute.
bool Registry::State::open_or_note(PluginEntry& entry, std::uint32_t number,
                                   std::exception_ptr& failure) {
  try {
    entry.device(number);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Device && e.kind() != ErrorKind::Unsupported) throw;
    if (!entry.options.empty()) throw;
    if (!failure) failure = std::current_exception();
    log_line(LogLevel::Info, fmt::format("passed over: {}", e.what()));
    return false;
  }
}

// The first device of a plugin that `choice` allows; null if there is none.
Device* Registry::State::match(const std::string& name, const DeviceChoice& choice,
                               const Selection& selection, bool emulated_too,
                               std::exception_ptr& failure) {
  if (excludes_plugin(selection, name)) return nullptr;
  PluginEntry* entry = open(name);
  if (!entry) return nullptr;
  for (std::uint32_t i = 0; i < entry->devices.size(); ++i) {
    if (choice.index && *choice.index != i) continue;
    if (!open_or_note(*entry, i, failure)) continue;
    Device& found = entry->device(i);
    if ((emulated_too || !found.info().is_software) && facts_match(found, choice) &&
        !is_excluded(selection, found))
      return &found;
  }
  return gives_way(*entry) ? match(name, choice, selection, emulated_too, failure) : nullptr;
}

// A plugin that the user gave options stays: open_or_note().
bool Registry::State::gives_way(PluginEntry& entry) {
  LoadRecord& r = entry.record;
  const LoadRecord* const next = shadowed(r.manifest.device_name);
  if (!next || !entry.options.empty()) return false;
  for (std::uint32_t i = 0; i < entry.devices.size(); ++i) try {
      entry.device(i);
      return false;
    } catch (const Error&) {  // kept in the record
    }
  log_line(LogLevel::Warning, fmt::format("{}: none of its devices opens, so that {} is used: {}",
                                          r.path, next->path, r.reason));
  r.state = LoadState::Refused;
  lift_shadow(r.manifest.device_name);
  return true;
}

// Without the name of a plugin or device, only what may be the default.
Device* Registry::State::match_any(const DeviceChoice& choice, const Selection& selection,
                                   std::exception_ptr& failure) {
  if (!choice.plugin.empty()) return match(choice.plugin, choice, selection, true, failure);
  const bool any = names_a_device(choice);
  for (const std::string& name : names_by_priority()) {
    const PluginEntry* const entry = available(name);
    if (!entry || (!any && !may_be_default(entry->record.manifest))) continue;
    if (Device* found = match(name, choice, selection, any, failure)) return found;
  }
  return nullptr;
}

// Reports once that a device which the choice does not name itself is emulated.
void Registry::State::report_emulated(const Selection& selection, const DeviceChoice& choice,
                                      const Device& found) {
  if (!found.info().is_software || names_a_device(choice) ||
      available(found.plugin_name())->record.manifest.software ||
      !reported.insert(found.name()).second)
    return;
  log_warning("\"{}\" in {} is {} ({}), which is emulated on the CPU; \"CPU\" is the CPU itself",
              excerpt(selection.text), selection.source, found.name(), found.info().name);
}

void Registry::State::require_known(const Selection& selection, const DeviceChoice& choice) {
  std::vector<std::string> known(std::begin(kOwnNames), std::end(kOwnNames));
  for (auto& entry : entries) known.push_back(entry->record.manifest.device_name);
  if (choice.plugin.empty() || std::count(known.begin(), known.end(), choice.plugin)) return;
  std::string nearest = nearest_name(choice.plugin, known);
  std::string advice = nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest);
  std::string_view typed = std::string_view(selection.text).substr(choice.offset, choice.length);
  refuse_selection(selection.text, choice.offset, choice.length,
                   fmt::format("unknown device \"{}\" in {}", excerpt(typed), selection.source),
                   advice + describe_records(records()));
}

void Registry::State::require_known(const Selection& selection) {
  for (const DeviceChoice& choice : selection.prefer) require_known(selection, choice);
  for (const DeviceChoice& choice : selection.exclude) require_known(selection, choice);
}

void Registry::State::require_numbers(const Selection& selection) {
  search();
  require_known(selection);
  for (const DeviceChoice& c : selection.prefer) {
    PluginEntry* entry = c.plugin.empty() || !c.index ? nullptr : open(c.plugin);
    if (!entry || *c.index < entry->devices.size()) continue;
    refuse_selection(selection.text, c.which_offset, c.which_length,
                     fmt::format("no device {}:{} in {}", c.plugin, *c.index, selection.source),
                     fmt::format("{} has {}", c.plugin, device_numbers(entry->devices.size())));
  }
}

Device& Registry::State::find(const Selection& selection) {
  search();
  if (visible) require_known(*visible);
  require_known(selection);
  if (selection.prefer.empty()) return by_rule(selection);
  std::exception_ptr failure;
  for (const DeviceChoice& choice : selection.prefer)
    if (Device* found = match_any(choice, selection, failure)) {
      report_emulated(selection, choice, *found);
      return *found;
    }
  if (failure && selection.prefer.size() == 1) std::rethrow_exception(failure);
  const DeviceChoice& first = selection.prefer.front();
  const bool there = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry->record.state == LoadState::Loaded &&
           entry->record.manifest.device_name == first.plugin;
  });
  std::string why;
  std::vector<LoadRecord> unsaid = records();
  for (const DeviceChoice& choice : selection.prefer) why += why_nothing(choice, unsaid);
  if (!unsaid.empty() || why.empty()) why += describe_records(unsaid);
  refuse_selection(selection.text, there ? first.which_offset : first.offset,
                   there ? first.which_length : first.length,
                   fmt::format("no device is available for \"{}\" in {}", excerpt(selection.text),
                               selection.source),
                   why);
}

// Lists what the opened plugins have in place of the choice, and why the named plugin has nothing.
std::string Registry::State::why_nothing(const DeviceChoice& choice,
                                         std::vector<LoadRecord>& unsaid) {
  std::string out;
  std::erase_if(unsaid, [&](const LoadRecord& r) {
    if (r.state != LoadState::Absent || r.manifest.device_name != choice.plugin) return false;
    out += fmt::format("{}: {}{}{}; ", choice.plugin, r.reason, r.hint.empty() ? "" : ": ", r.hint);
    return true;
  });
  for (const auto& entry : entries) {
    const std::string& name = entry->record.manifest.device_name;
    bool meant = choice.plugin.empty() || choice.plugin == name;
    if (entry->record.state != LoadState::Loaded || !meant) continue;
    if (choice.index)
      out += fmt::format("{} has {}; ", name, device_numbers(entry->devices.size()));
    if (!choice.name_glob.empty())
      out += nearest_fact(*entry, "name", choice.name_glob, &DeviceInfo::name);
    if (!choice.uuid_glob.empty())
      out += nearest_fact(*entry, "uuid", choice.uuid_glob, &DeviceInfo::stable_id);
  }
  return out;
}

Device& Registry::State::by_rule(const Selection& selection) {
  search();
  if (visible) require_known(*visible);
  std::exception_ptr failure;
  if (Device* found = match_any({}, selection, failure)) return *found;
  if (failure) std::rethrow_exception(failure);
  fail(ErrorKind::User, "no device can be the default: DEV=NAME chooses one. {}",
       describe_records(records()));
}

std::string Registry::State::named_by_environment() {
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

}  // namespace plugrad::runtime
