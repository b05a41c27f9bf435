// What became of each plugin file that the search met: the facts behind `plugrad devices --why`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::runtime {

/// How far a candidate got; each includes those before it.
enum class LoadStage : std::uint8_t {
  Found,
  Permissions,
  Library,
  Manifest,
  Probes,
  Open,
  Entry,
  Table,
  Devices
};
const char* to_string(LoadStage stage);

enum class LoadState : std::uint8_t {
  Available,  ///< manifest read, probes pass; not opened because nobody selected it
  Absent,     ///< a probe fails, or it reports no device: hardware or driver are missing
  Loaded,     ///< opened, with at least one device
  Refused,    ///< broken, unsafe or incompatible: see reason
  Shadowed,   ///< a plugin of the same device name came earlier in the search order
};
const char* to_string(LoadState state);

/// One option that the plugin's devices take, for people.
struct ManifestOption {
  std::string key, type, default_value, help;
};

/// A plugin's manifest: the JSON of the note inside it and of the file beside it, read without
/// opening the library.
struct Manifest {
  std::string name;         ///< "cpu_clang"
  std::string device_name;  ///< "CPU"
  std::string version, vendor;
  std::uint32_t abi_major = 0, abi_minor_low = 0, abi_minor_high = 0;
  int priority = 0;       ///< of the default-device rule; 0 is never
  bool software = false;  ///< emulates a device: never the default
  std::string sanitizer;  ///< "" or "address", "thread": must be the host's
  std::vector<std::string>
      probes;  ///< absolute paths, wildcards allowed; one must exist; none: always passes
  std::vector<std::string> default_probes;  ///< paths, one of which must exist to be the default
  std::string probe_hint;  ///< what to do when none does: "install the NVIDIA driver"
  std::string renderer;    ///< dialect of the SDK's renderer, for a plugin that has none
  std::vector<std::pair<std::string, std::string>> renderer_options;
  std::vector<ManifestOption> options;
};

struct LoadRecord {
  std::string path;    ///< of the library
  std::string origin;  ///< which tier of the search found it: "PLUGRAD_PLUGIN_PATH", "relative to
                       ///< the library"
  LoadStage stage = LoadStage::Found;
  LoadState state = LoadState::Refused;
  std::string reason;  ///< why it is not Loaded; empty when it is
  std::string hint;    ///< what the user can do
  Manifest manifest;   ///< as far as it was read
};

}  // namespace plugrad::runtime
