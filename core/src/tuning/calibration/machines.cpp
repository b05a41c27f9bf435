#include "tuning/calibration/machines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/storage/disk_cache.h"
#include "cost/calibration_text.h"

namespace plugrad::tuning {
namespace {

using Shared = std::shared_ptr<const cost::Machine>;

// Bytes; a larger file is not a calibration.
constexpr size_t kLargestFile = 64 << 10;

struct KnownMachine {
  std::string name, arch;  // another device may be allocated at the same address
  Shared table, measured;  // measured: null if not calibrated
};
struct AllKnown {
  std::mutex mutex;
  std::map<const runtime::Device*, KnownMachine> by_device;
};
AllKnown& all_known() {
  static auto* all = new AllKnown;  // used until exit
  return *all;
}

Shared read_calibration(const runtime::Device& device, const cost::Machine& table) {
  const std::string path = calibration_path(device);
  if (path.empty()) return nullptr;
  const auto bytes = read_file(path, kLargestFile);
  if (!bytes && errno != EFBIG) {
    if (errno != ENOENT && errno != ENOTDIR)
      log_warning("calibration {} is not used: {}", path, file_error_text(errno));
    return nullptr;
  }
  std::string problem = "it is damaged";
  std::optional<cost::Machine> read;
  if (bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    read = cost::parse_calibration(text, machine_identity(device), table, problem);
  }
  if (read) return std::make_shared<cost::Machine>(*read);
  log_warning("calibration {} is not used: {}; plugrad calibrate makes it anew", path, problem);
  return nullptr;
}

// Requires the lock.
const KnownMachine& known(AllKnown& all, const runtime::Device& device) {
  KnownMachine& entry = all.by_device[&device];
  if (entry.table && entry.name == device.name() && entry.arch == device.info().arch) return entry;
  KnownMachine made{device.name(), device.info().arch,
                    std::make_shared<cost::Machine>(table_machine_of(device)), nullptr};
  made.measured = read_calibration(device, *made.table);
  return entry = std::move(made);
}

void forget_known(const runtime::Device& device) {
  AllKnown& all = all_known();
  const std::lock_guard lock(all.mutex);
  all.by_device.erase(&device);
}

// Replaces line ends and other control characters, which a plugin's names may contain.
std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

}  // namespace

cost::Machine table_machine_of(const runtime::Device& device) {
  return cost::table_machine(device.info().arch, device.caps());
}

Shared machine_of(runtime::Device& device) {
  AllKnown& all = all_known();
  const std::lock_guard lock(all.mutex);
  const KnownMachine& entry = known(all, device);
  return entry.measured && !settings().deterministic ? entry.measured : entry.table;
}

bool is_calibrated(runtime::Device& device) {
  AllKnown& all = all_known();
  const std::lock_guard lock(all.mutex);
  return known(all, device).measured != nullptr && !settings().deterministic;
}

// Includes threads and lanes: measured bandwidths are those of all of them together.
std::string machine_identity(const runtime::Device& device) {
  const runtime::DeviceInfo& info = device.info();
  const pgr_device_caps& caps = device.caps();
  return on_one_line(fmt::format("{} {} {} {} threads {} lanes {}", device.plugin_name(), info.arch,
                                 info.stable_id, info.name, caps.threads,
                                 caps.vector_lanes[PGR_DTYPE_F32]));
}

std::string calibration_path(const runtime::Device& device) {
  const std::string directory = cache_directory();
  if (directory.empty()) return {};
  const std::string identity = machine_identity(device);
  return fmt::format("{}/machine-{:016x}.txt", directory, hash64(as_bytes(identity)));
}

int keep_calibration(const runtime::Device& device, const cost::Machine& machine) {
  const std::string path = calibration_path(device);
  if (path.empty()) return ENOENT;
  const std::string text = cost::to_text(machine, machine_identity(device));
  const std::span<const std::byte> parts[] = {as_bytes(text)};
  std::error_code ignored;  // replace_file reports the error
  std::filesystem::create_directories(cache_directory(), ignored);
  const int error = replace_file(path, parts);
  forget_known(device);
  return error;
}

bool forget_calibration(const runtime::Device& device) {
  const bool was_there = unlink(calibration_path(device).c_str()) == 0;
  forget_known(device);
  return was_there;
}

}  // namespace plugrad::tuning
