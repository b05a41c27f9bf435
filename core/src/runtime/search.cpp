#include "runtime/search.h"

#include <sys/auxv.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/settings.h"
#include "runtime/host_api.h"
#include "runtime/manifest.h"

namespace plugrad::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libplugrad_plugin_", kSuffix = ".so";

void refuse(LoadRecord& record, LoadStage stage, std::string reason) {
  record.stage = stage;
  record.state = LoadState::Refused;
  record.reason = std::move(reason);
}

std::vector<std::string> split_paths(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t colon = std::min(text.find(':', begin), text.size());
    if (colon > begin) out.push_back(text.substr(begin, colon - begin));
    begin = colon + 1;
  }
  return out;
}

// What the user named is taken from where the program was started; nothing is found there unnamed.
std::string absolute(const std::string& path) {
  std::error_code error;
  fs::path out = fs::absolute(path, error);
  return error ? path : out.lexically_normal().string();
}

std::vector<std::string> libraries_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) out.push_back(it->path().string());
  }
  std::sort(out.begin(), out.end());  // the order of a directory is chance
  return out;
}

std::string manifest_path(const std::string& library) {
  return fs::path(library).replace_extension(".json").string();
}

bool read_manifest(LoadRecord& record) {
  std::string path = manifest_path(record.path);
  auto bytes = read_file(path);
  if (!bytes) {
    refuse(record, LoadStage::Manifest, fmt::format("it has no manifest {}", path));
    record.hint = "install the JSON file that belongs to the library";
    return false;
  }
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::string reason = parse_manifest(text, record.manifest);
  if (reason.empty()) reason = manifest_refusal(record.manifest, record.hint);
  if (!reason.empty()) refuse(record, LoadStage::Manifest, reason);
  return reason.empty();
}

std::string user_data_directory() {
  if (getauxval(AT_SECURE)) return "";
  if (auto xdg = environment_variable("XDG_DATA_HOME"); xdg && !xdg->empty()) return *xdg;
  auto home = environment_variable("HOME");
  return home && !home->empty() ? *home + "/.local/share" : "";
}

}  // namespace

const char* to_string(LoadStage stage) {
  constexpr const char* kNames[] = {"found", "permissions", "manifest", "probes",
                                    "open",  "entry",       "table",    "devices"};
  return kNames[static_cast<int>(stage)];
}

const char* to_string(LoadState state) {
  constexpr const char* kNames[] = {"available", "absent", "loaded", "refused", "shadowed"};
  return kNames[static_cast<int>(state)];
}

LoadRecord examine_plugin(const std::string& library_path, const std::string& origin) {
  LoadRecord record;
  record.path = library_path;
  record.origin = origin;
  std::error_code error;
  if (!fs::is_regular_file(library_path, error)) {
    refuse(record, LoadStage::Found, error ? error.message() : "it is not a file");
    return record;
  }
  record.path = fs::canonical(library_path, error).string();
  record.stage = LoadStage::Permissions;
  for (const std::string& path : {record.path, manifest_path(record.path)}) {
    if (!fs::exists(path, error)) continue;
    if (std::string unsafe = unsafe_permissions(path); !unsafe.empty()) {
      refuse(record, LoadStage::Permissions, unsafe);
      record.hint = "take the right to write from others: chmod o-w";
      return record;
    }
  }
  if (!read_manifest(record)) return record;
  record.stage = LoadStage::Probes;
  record.state = LoadState::Available;
  if (!probes_pass(record.manifest)) {
    record.state = LoadState::Absent;
    record.reason = fmt::format("its hardware or driver is not there: none of {} exists",
                                fmt::join(record.manifest.probes, ", "));
    record.hint = record.manifest.probe_hint;
  }
  return record;
}

std::vector<LoadRecord> search_plugins(const std::vector<SearchPlace>& places) {
  std::vector<LoadRecord> records;
  std::set<std::string> seen, names;
  for (const SearchPlace& place : places) {
    std::vector<std::string> found =
        place.is_file ? std::vector{place.path} : libraries_in(place.path);
    for (const std::string& path : found) {
      LoadRecord record = examine_plugin(path, place.origin);
      if (!seen.insert(record.path).second) continue;
      bool first =
          record.state != LoadState::Available || names.insert(record.manifest.device_name).second;
      if (!first) {
        record.state = LoadState::Shadowed;
        record.reason = "a plugin of the same device name was found before it";
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<SearchPlace> search_places() {
  std::vector<SearchPlace> out;
  const Settings& s = settings();
  if (!s.plugin_files.empty()) {
    for (const std::string& file : split_paths(s.plugin_files))
      // A bare name would be looked up in places that nobody named.
      out.push_back(
          {file.find('/') == file.npos ? file : absolute(file), "PLUGRAD_PLUGIN_FILES", true});
    return out;
  }
  for (const std::string& directory : split_paths(s.plugin_path))
    out.push_back({absolute(directory), "PLUGRAD_PLUGIN_PATH"});
  if (std::string data = user_data_directory(); !data.empty())
    out.push_back({data + "/plugrad/plugins", "the user's data directory"});
  if (std::string own = own_directory(); !own.empty()) {
    out.push_back({own + "/plugrad/plugins", "relative to the library"});
    out.push_back({own + "/../lib/plugrad/plugins", "relative to the library"});
  }
  for (const char* directory : {"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib"})
    out.push_back({std::string(directory) + "/plugrad/plugins", "system directory"});
  return out;
}

std::string describe_records(const std::vector<LoadRecord>& records) {
  if (records.empty())
    return "no plugin was found; PLUGRAD_PLUGIN_PATH names directories to look in";
  std::string out = "plugins found:";
  for (const LoadRecord& r : records) {
    std::string name = r.manifest.device_name.empty() ? fs::path(r.path).filename().string()
                                                      : r.manifest.device_name;
    out += fmt::format("\n  {} ({}): {}", name, r.path, to_string(r.state));
    if (!r.reason.empty()) out += ": " + r.reason;
    if (!r.hint.empty()) out += "; " + r.hint;
  }
  return out;
}

}  // namespace plugrad::runtime
