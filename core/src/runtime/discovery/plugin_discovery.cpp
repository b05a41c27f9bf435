#include "runtime/discovery/plugin_discovery.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/settings.h"
#include "runtime/device/host_api.h"
#include "runtime/discovery/elf_manifest.h"
#include "runtime/discovery/file_permissions.h"
#include "runtime/discovery/manifest.h"
#include "runtime/discovery/regular_file.h"

namespace plugrad::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libplugrad_plugin_", kSuffix = ".so";

void refuse_file(LoadRecord& record, LoadStage stage, std::string reason) {
  record.stage = stage;
  record.state = LoadState::Refused;
  record.reason = std::move(reason);
}

std::string absolute(const std::string& path) {
  std::error_code error;
  fs::path out = fs::absolute(path, error);
  return error ? path : out.lexically_normal().string();
}

// `reason`: why the directory cannot be read; else empty.
std::vector<std::string> libraries_in(const std::string& directory, std::string& reason) {
  std::vector<std::string> out;
  if (is_bare_name(directory)) {
    reason = "it is a bare name, which is looked for nowhere: write ./NAME";
    return out;
  }
  const auto names = names_in_folder(directory);
  if (!names) reason = std::strerror(errno);
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix))
      out.push_back((fs::path(directory) / name).string());
  return out;
}

std::string manifest_path(const std::string& library) {
  return fs::path(library).replace_extension(".json").string();
}

// Refuses world-writable files: the link, its target, the manifest.
bool check_permissions(LoadRecord& record, const std::string& found_as) {
  record.stage = LoadStage::Permissions;
  if (is_trusted(found_as) || is_trusted(record.path)) return true;
  for (const std::string& path : {found_as, record.path, manifest_path(record.path)}) {
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    std::string unsafe = unsafe_permissions(path);
    if (unsafe.empty()) continue;
    refuse_file(record, LoadStage::Permissions, unsafe);
    record.hint = fmt::format(
        "take the right to write from others: chmod o-w; or trust it: PLUGRAD_TRUST_PLUGINS={}",
        found_as);
    return false;
  }
  return true;
}

// The manifest beside the library; nothing if there is none or, with a reason, on an error.
std::optional<std::string> manifest_file(const std::string& path, std::string& reason) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return std::nullopt;
  std::optional<RegularFile> file = RegularFile::open(path, reason);
  std::optional<std::string> text;
  if (file) text = file->text(kMostManifestBytes, reason);
  if (!text) reason = fmt::format("its manifest {} cannot be read: {}", path, reason);
  return text;
}

std::string read_manifest(LoadRecord& record, const std::optional<std::string>& note) {
  std::string path = manifest_path(record.path), reason;
  std::optional<std::string> file = manifest_file(path, reason);
  if (!reason.empty()) return reason;
  if (!note && !file) {
    record.hint =
        "install the JSON file that belongs to the library; plugrad_add_plugin (CMake) makes "
        "both";
    return fmt::format("it has no manifest: no note inside it, and no file {}", path);
  }
  reason = parse_manifest(note ? *note : *file, record.manifest);
  if (reason.empty() && note && file && *note != *file) {
    Manifest other;
    reason = parse_manifest(*file, other);
    if (reason.empty()) {
      reason = manifest_difference(*note, *file);
      if (!reason.empty()) {
        record.hint = "install library and JSON file of one build; the note alone is enough";
        reason = fmt::format("its manifest note and {} differ: {}", path, reason);
      }
    }
  }
  return reason.empty() ? manifest_refusal(record.manifest, record.hint) : reason;
}

// Relative paths start at the working directory. A bare name stays one and is refused: dlopen would
// search for it in places that the user did not name.
std::string as_named(const std::string& path) {
  return is_bare_name(path) ? path : absolute(path);
}

std::string user_data_directory() {
  if (getauxval(AT_SECURE)) return "";
  if (auto xdg = environment_variable("XDG_DATA_HOME"); xdg && xdg->starts_with('/')) return *xdg;
  auto home = environment_variable("HOME");
  return home && home->starts_with('/') ? *home + "/.local/share" : "";
}

/// The first paths of a long list and the number of others.
std::string shortened(const std::vector<std::string>& paths) {
  constexpr size_t kShown = 3;
  if (paths.size() <= kShown) return fmt::format("{}", fmt::join(paths, ", "));
  return fmt::format("{} and {} more paths", fmt::join(std::span(paths).first(kShown), ", "),
                     paths.size() - kShown);
}

}  // namespace

const char* to_string(LoadStage stage) {
  constexpr const char* kNames[] = {"found", "permissions", "library", "manifest", "probes",
                                    "open",  "entry",       "table",   "devices"};
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
  if (is_bare_name(library_path)) {
    refuse_file(record, LoadStage::Found, "it is a bare name, which is looked for nowhere");
    record.hint = fmt::format("write a path: ./{}", library_path);
    return record;
  }
  std::string reason;
  std::error_code error;
  std::optional<RegularFile> file = RegularFile::open(library_path, reason);
  if (!file) {
    if (fs::is_symlink(library_path, error) && reason == std::strerror(ENOENT))
      reason = fmt::format("it is a link to a file that is not there: {}",
                           fs::read_symlink(library_path, error).string());
    refuse_file(record, LoadStage::Found, reason);
    return record;
  }
  record.path = fs::canonical(library_path, error).string();
  if (!check_permissions(record, absolute(library_path))) return record;
  LibraryFile library = inspect_library(file->bytes());
  if (!library.refusal.empty()) {
    refuse_file(record, LoadStage::Library, library.refusal);
    return record;
  }
  if (std::string wrong = read_manifest(record, library.manifest); !wrong.empty()) {
    refuse_file(record, LoadStage::Manifest, wrong);
    return record;
  }
  record.stage = LoadStage::Probes;
  record.state = LoadState::Available;
  if (!probes_pass(record.manifest.probes)) {
    record.state = LoadState::Absent;
    record.reason = fmt::format("its hardware or driver is not there: none of {} exists",
                                shortened(record.manifest.probes));
    record.hint = record.manifest.probe_hint;
  }
  return record;
}

namespace {

LoadRecord unread_place(const SearchPlace& place, const std::string& why) {
  LoadRecord record;
  record.path = place.path;
  record.origin = place.origin;
  refuse_file(record, LoadStage::Found, why);
  std::error_code error;
  record.hint = fmt::format(
      "{} takes paths of directories, joined by ':'{}", place.origin,
      fs::is_regular_file(place.path, error) ? "; PLUGRAD_PLUGIN_FILES takes plugin files" : "");
  return record;
}

}  // namespace

std::vector<LoadRecord> discover_plugins(const std::vector<SearchPlace>& places) {
  std::vector<LoadRecord> records;
  std::set<std::string> seen, names;
  for (const SearchPlace& place : places) {
    std::string unread;
    std::vector<std::string> found =
        place.is_file ? std::vector{place.path} : libraries_in(place.path, unread);
    if (place.named && !unread.empty()) records.push_back(unread_place(place, unread));
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
      out.push_back({as_named(file), "PLUGRAD_PLUGIN_FILES", true});
    return out;
  }
  for (const std::string& directory : split_paths(s.plugin_path))
    out.push_back({as_named(directory), "PLUGRAD_PLUGIN_PATH", false, true});
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

namespace {

// The hint suffices for a plugin whose hardware or driver is missing.
std::string why_not(const LoadRecord& r) {
  const bool says_enough = r.state == LoadState::Absent && !r.hint.empty();
  std::string out =
      fmt::format("{}: {}", r.manifest.device_name.empty() ? r.path : r.manifest.device_name,
                  to_string(r.state));
  if (!r.reason.empty() && !says_enough) out += ": " + r.reason;
  if (!r.hint.empty()) out += "; " + r.hint;
  return out;
}

}  // namespace

std::string describe_records(const std::vector<LoadRecord>& records) {
  if (records.empty())
    return "no plugin was found; PLUGRAD_PLUGIN_PATH names directories to look in";
  std::string works, others;
  for (const LoadRecord& r : records) {
    if (r.state == LoadState::Shadowed) continue;  // another file has its name
    const std::string name = r.manifest.device_name;
    const bool is_usable = r.state == LoadState::Loaded || r.state == LoadState::Available;
    if (is_usable && r.reason.empty())  // a failure to open a device has a reason
      works += (works.empty() ? " " : ", ") + name;
    else
      others += "\n  " + why_not(r);
  }
  const std::string out = "plugins found:" + (works.empty() ? " none that works" : works) + others;
  return out;
}

}  // namespace plugrad::runtime
