// The state of each plugin file that discovery found: the facts of `plugrad devices --why`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::runtime {

/// How far loading a candidate got; each value includes the previous ones.
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
  Available,  ///< manifest read, probes pass; not selected, so not opened
  Absent,     ///< a probe fails or there is no device: hardware or driver missing
  Loaded,     ///< opened, with at least one device
  Refused,    ///< broken, unsafe or incompatible: see reason
  Shadowed,   ///< a plugin of the same device name came earlier in search order
};
const char* to_string(LoadState state);

/// One option of the plugin's devices, for users.
struct ManifestOption {
  std::string key, type, default_value, help;
};

/// A plugin's manifest: the JSON in its note and in the file beside it, read without opening the
/// library.
struct Manifest {
  std::string name;         ///< "cpu_clang"
  std::string device_name;  ///< "CPU"
  std::string version, vendor;
  std::uint32_t abi_major = 0, abi_minor_low = 0, abi_minor_high = 0;
  int priority = 0;       ///< in the default-device rule; 0: never
  bool software = false;  ///< emulates a device: never the default
  std::string sanitizer;  ///< "" or "address", "thread": must be the host's
  std::vector<std::string>
      probes;  ///< absolute paths with wildcards, of which one must exist; none: always passes
  std::vector<std::string> default_probes;  ///< for the default device: one must exist
  std::string probe_hint;                   ///< advice if none exists: "install the NVIDIA driver"
  std::string renderer;  ///< dialect of the SDK's renderer, for a plugin without its own
  std::vector<std::pair<std::string, std::string>> renderer_options;
  std::vector<ManifestOption> options;
};

struct LoadRecord {
  std::string path;    ///< of the library
  std::string origin;  ///< the search place: "PLUGRAD_PLUGIN_PATH", "relative to the library"
  LoadStage stage = LoadStage::Found;
  LoadState state = LoadState::Refused;
  std::string reason;  ///< why it is not Loaded; else empty
  std::string hint;    ///< advice for the user
  Manifest manifest;   ///< as far as it was read
};

}  // namespace plugrad::runtime
