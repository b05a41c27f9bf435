#include "runtime/device/plugin.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "runtime/device/device_facts.h"
#include "runtime/device/device_state.h"
#include "runtime/device/host_api.h"
#include "runtime/discovery/manifest.h"
#include "runtime/discovery/probe_process.h"

namespace plugrad::runtime {
namespace {

bool refuse_plugin(LoadRecord& record, LoadStage stage, std::string reason, std::string hint = "") {
  record.stage = stage;
  record.state = LoadState::Refused;
  record.reason = std::move(reason);
  if (!hint.empty()) record.hint = std::move(hint);
  return false;
}

// Explains a missing entry, e.g. a library with the entry of another major.
void* entry_of(LoadRecord& record) {
  std::string reason;
  void* entry = open_library_symbol(record.path, PGR_PLUGIN_ENTRY_NAME, reason);
  if (entry) return entry;
  std::string ignored;
  for (std::uint32_t major = 0; major < 10 && reason.starts_with("it exports"); ++major) {
    if (!open_library_symbol(record.path, fmt::format("pgr_plugin_entry_v{}", major).c_str(),
                             ignored))
      continue;
    std::string hint, other = major_refusal(major, hint);
    refuse_plugin(record, LoadStage::Entry, other, hint);
    return nullptr;
  }
  refuse_plugin(record, reason.starts_with("it exports") ? LoadStage::Entry : LoadStage::Open,
                reason);
  return nullptr;
}

// Empty, or the mismatch in the plugin's half of the hello.
std::string hello_mismatch(const pgr_hello& hello) {
  if (hello.canary_hello_offset == 0)
    return "its entry did not answer the hello (PGR_HELLO_ANSWER)";
  if (hello.canary_hello_offset != offsetof(pgr_hello, plugin_minor))
    return "its headers lay out pgr_hello differently";
  // Minors only append fields.
  bool may_be_longer = hello.plugin_minor > PGR_API_MINOR,
       may_be_shorter = !may_be_longer && hello.plugin_minor != PGR_API_MINOR;
  bool longer = hello.canary_error_size > sizeof(pgr_error);
  bool shorter = hello.canary_error_size < sizeof(pgr_error);
  if ((longer && !may_be_longer) || (shorter && !may_be_shorter))
    return "its headers lay out pgr_error differently";
  return "";
}

std::string need_newer_host(const pgr_hello& hello) {
  return fmt::format("it needs a newer host: plugin ABI {}.{}; this host speaks {}.{}",
                     PGR_API_MAJOR, hello.need_host_minor, PGR_API_MAJOR, PGR_API_MINOR);
}

const char* missing_slot(const pgr_plugin_api& t) {
  if (!t.info) return "info";
  if (!t.device_count) return "device_count";
  if (!t.device_open) return "device_open";
  if (!t.device_close) return "device_close";
  if (!t.query_interface) return "query_interface";
  return nullptr;
}

}  // namespace

bool Plugin::start(const std::string& path, void* entry_address, LoadRecord& record) {
  path_ = path;
  manifest_ = record.manifest;
  pgr_hello hello;
  PGR_INIT(hello, HELLO);
  hello.host = host_api_for(path);
  hello.plugin_path = c_string(path_);
  const pgr_plugin_api* theirs = nullptr;
  CallError error;
  std::string escaped;
  auto entry = reinterpret_cast<pgr_plugin_entry_fn>(entry_address);
  pgr_status status =
      guarded(error, escaped, [&](pgr_error* e) { return entry(&hello, &theirs, e); });
  if (status == PGR_STATUS_NEED_NEWER_HOST || hello.need_host_minor > PGR_API_MINOR)
    return refuse_plugin(record, LoadStage::Entry, need_newer_host(hello),
                         "install a newer plugrad");
  if (status != PGR_STATUS_OK) {
    std::string said = escaped.empty() ? error.message() : escaped;
    return refuse_plugin(record, LoadStage::Entry,
                         fmt::format("its entry answered {}{}{}", status_name(status),
                                     said.empty() ? "" : ": ", said));
  }
  if (std::string wrong = hello_mismatch(hello); !wrong.empty())
    return refuse_plugin(record, LoadStage::Entry, wrong,
                         "build the plugin with the headers of its version");
  if (const char* wrong = copy_table(theirs, PGR_STRUCT_PLUGIN_API, api_))
    return refuse_plugin(record, LoadStage::Table, wrong);
  if (const char* slot = missing_slot(api_))
    return refuse_plugin(record, LoadStage::Table,
                         fmt::format("its table lacks the function {}", slot));
  fill_stubs(api_);
  return read_info(record);
}

bool Plugin::read_info(LoadRecord& record) {
  pgr_plugin_info info;
  PGR_INIT(info, PLUGIN_INFO);
  try {
    checked(record.manifest.device_name, "info",
            [&](pgr_error* e) { return api_.info(api_.plugin, &info, e); });
  } catch (const Error& e) {
    return refuse_plugin(record, LoadStage::Table, e.what());
  }
  device_name_ = copied(info.device_name);
  version_ = copied(info.version);
  if (device_name_ != record.manifest.device_name)
    return refuse_plugin(record, LoadStage::Table,
                         fmt::format("it says that its device name is \"{}\", its manifest \"{}\"",
                                     device_name_, record.manifest.device_name));
  return true;
}

// The child performs the same calls that follow in this process, and keeps no results. They are not
// watched there: the parent waits with a limit, and no thread may start after the fork.
bool Plugin::survives_trial(LoadRecord& record, std::uint32_t limit_ms) {
  std::string outcome = outcome_in_probe_process(
      record.path,
      [trial = record]() mutable {
        void* entry = entry_of(trial);
        Plugin plugin;
        std::string ignored;
        if (!entry || !plugin.start(trial.path, entry, trial)) return;
        const std::uint32_t count = plugin.device_count(ignored);
        for (std::uint32_t i = 0; i < count && count <= kMostDevices; ++i) plugin.open_and_close(i);
      },
      limit_ms);
  if (outcome.empty()) return true;
  return refuse_plugin(
      record, LoadStage::Open, fmt::format("opened on trial in a process of its own, {}", outcome),
      fmt::format("ask its maker; without a trial: PLUGRAD_TRUST_PLUGINS={}", record.path));
}

// Ignores statuses: only the survival of the process matters.
void Plugin::open_and_close(std::uint32_t index) const {
  CallError error;
  pgr_device* device = nullptr;
  const pgr_status opened =
      api_.device_open(api_.plugin, index, nullptr, 0, sizeof(pgr_option), &device, error.get());
  if (opened != PGR_STATUS_OK) return;
  pgr_device_api calls;
  try {
    if (device && interface("pgr.device", PGR_STRUCT_DEVICE_API, calls)) read_facts(calls, device);
  } catch (...) {  // the process survived; go on with the next device
  }
  api_.device_close(api_.plugin, device);
}

// Reads all facts as the host does, including texts and tables.
void Plugin::read_facts(const pgr_device_api& calls, pgr_device* device) const {
  CallError error;
  pgr_device_info info;
  PGR_INIT(info, DEVICE_INFO);
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  const bool has_info =
      offered(calls.info) && calls.info(device, &info, error.get()) == PGR_STATUS_OK;
  const bool has_caps =
      offered(calls.caps) && calls.caps(device, &caps, error.get()) == PGR_STATUS_OK;
  std::vector<pgr_tensor_core> cores;
  if (has_info) checked_info(device_name_, info);
  if (has_caps) check_caps(device_name_, caps, cores);
}

Plugin* Plugin::open(LoadRecord& record, std::uint32_t trial_limit_ms) {
  static std::mutex mutex;
  static auto* opened =
      new std::map<std::string, std::unique_ptr<Plugin>>;  // entry must run once a process
  std::error_code failed;
  std::string path = std::filesystem::canonical(record.path, failed).string();
  std::lock_guard lock(mutex);
  auto found = opened->find(path);
  if (found == opened->end()) {
    if (!survives_trial(record, trial_limit_ms)) return nullptr;
    const DeviceCalls calls(record.manifest.device_name);
    const WatchedCall watched(calls, "load");
    void* entry = entry_of(record);
    if (!entry) return nullptr;
    auto plugin = std::make_unique<Plugin>();
    if (!plugin->start(path, entry, record)) return nullptr;
    found = opened->emplace(path, std::move(plugin)).first;
  }
  record.stage = LoadStage::Table;
  return found->second.get();
}

std::uint32_t Plugin::device_count(std::string& reason) const {
  std::uint32_t count = 0;
  CallError error;
  std::string escaped;
  pgr_status status = guarded(
      error, escaped, [&](pgr_error* e) { return api_.device_count(api_.plugin, &count, e); });
  reason = escaped.empty() ? error.message() : escaped;
  if (status != PGR_STATUS_OK) throw_status(device_name_, "device_count", status, reason);
  return count;
}

void Plugin::shut_down() {
  if (std::exchange(is_shut_down_, true)) return;
  const DeviceCalls calls(device_name_);
  const WatchedCall watched(calls, "shutdown");
  try {
    api_.shutdown(api_.plugin);
  } catch (...) {
    log_line(LogLevel::Error, fmt::format("[shutdown] {}: {}", device_name_, describe_escaped()));
  }
}

std::unique_ptr<Device> Plugin::open_device(std::uint32_t index, std::uint32_t number,
                                            const PluginOptions& options,
                                            const LayerList& layers) const {
  return std::make_unique<Device>(make_device_state(*this, index, number, options, layers));
}

}  // namespace plugrad::runtime
