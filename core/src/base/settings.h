// All settings of a user: one struct, read from the environment in one place and changed in code by
// scope.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/export.h"

namespace plugrad {

/// setting_rows() gives each field's environment variable.
struct Settings {
  std::string device;             // DEV, DEVICE; empty: the default rule
  int debug = 0;                  // DEBUG
  bool noopt = false;             // NOOPT
  int beam = 0;                   // BEAM: width of the schedule search; 0: off
  double beam_seconds = 10;       // BEAM_SECONDS: limit of the search for one kernel; above 0
  bool tune = true;               // PLUGRAD_TUNE: replays refine their kernels' schedules
  std::string schedule_database;  // PLUGRAD_SEARCH_DB: empty: search.db in the cache directory
  std::string optimisations;      // PLUGRAD_OPTIMISATIONS: schedule overrides
  int jit = 1;                    // JIT
  bool lift = true;               // PLUGRAD_LIFT: kernels take numbers and lengths that change
  int threads = 0;                // PLUGRAD_THREADS: 0: every core this process may use
  std::uint64_t memory_limit_bytes = 0;  // PLUGRAD_MEMORY_LIMIT, a device: 0 is no limit
  bool fast_math = false;                // PLUGRAD_FAST_MATH
  bool contract = true;                  // PLUGRAD_CONTRACT: a multiply and its add may round once
  bool deterministic = false;            // PLUGRAD_DETERMINISTIC: no search results, contract off
  bool tf32 = false;           // TF32: tensor cores may round f32 factors to 10 fraction bits
  bool check_indices = false;  // PLUGRAD_CHECK_INDICES: also indices computed on devices
  bool verify = false;         // PLUGRAD_VERIFY
  std::string disable;         // PLUGRAD_DISABLE: names of rules and stages
  std::string dump;            // PLUGRAD_DUMP: name of a stage
  std::string trace_path;      // PLUGRAD_TRACE
  bool trace_rules = false;    // PLUGRAD_TRACE_RULES: also stages and rewrites
  std::uint64_t trace_limit_bytes = std::uint64_t{256} << 20;  // PLUGRAD_TRACE_LIMIT
  bool viz = false;       // VIZ: traces with rules, and shows the trace at the end
  std::string data_dir;   // PLUGRAD_DATA: parent of mnist/
  std::string cache_dir;  // PLUGRAD_CACHE_DIR: empty is the user's cache directory
  std::uint64_t cache_limit_bytes = std::uint64_t{2} << 30;  // PLUGRAD_CACHE_LIMIT, approximate
  std::string plugin_files;                                  // PLUGRAD_PLUGIN_FILES: only these
  std::string plugin_path;                                   // PLUGRAD_PLUGIN_PATH: additional
  std::string trust_plugins;    // PLUGRAD_TRUST_PLUGINS: even if world-writable
  std::string visible_devices;  // PLUGRAD_VISIBLE_DEVICES
  std::string layers;           // PLUGRAD_LAYERS
  bool validate = false;        // PLUGRAD_VALIDATE
  std::string cpu_target;       // PLUGRAD_CPU_TARGET: option isa of the CPU's plugin; empty: native
  double device_timeout = 0;    // PLUGRAD_DEVICE_TIMEOUT: seconds of one call; 0 is no limit
  std::string mpi;              // PLUGRAD_MPI: empty: the launcher's
  double collective_seconds = 60;  // PLUGRAD_COLLECTIVE_SECONDS: deadline of a collective; above 0
  bool color = true;               // NO_COLOR present: false
};

/// One variable: its name, its meaning, and its parser.
struct SettingRow {
  const char* name;
  const char* meaning;
  void (*parse)(Settings& out, const char* name, std::string_view text);
};
std::span<const SettingRow> setting_rows();

/// Text of a variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The process's environment; empty if the program runs with elevated privileges.
std::optional<std::string> environment_variable(const char* name);

/// A warning for each "NAME=text" of `environment` that looks like a setting but is none, with the
/// nearest setting.
std::vector<std::string> unknown_settings(const char* const* environment);

/// Errors: User, naming the variable, its text and the allowed values.
Settings read_settings(const Environment& environment);

/// The settings of this thread: those of the innermost SettingScope, else the process's, which the
/// first call reads from the environment. Valid until the scope ends; process-wide, forever.
PLUGRAD_API const Settings& settings();

/// Changes the process's settings. Threads inside a SettingScope keep theirs.
PLUGRAD_API void change_settings(const std::function<void(Settings&)>& change);

/// settings().threads with 0 resolved; at least 1.
PLUGRAD_API int thread_count();

/// Changes the settings of this thread, and of pool work that it starts, during its lifetime:
///   SettingScope scope([](Settings& s) { s.noopt = true; });
class PLUGRAD_API SettingScope {
 public:
  explicit SettingScope(const std::function<void(Settings&)>& change);
  ~SettingScope();
  SettingScope(const SettingScope&) = delete;
  SettingScope& operator=(const SettingScope&) = delete;

 private:
  std::unique_ptr<const Settings> mine_;
  const Settings* outer_;
};

/// Gives a pool thread the caller's scope while it works for that caller; null: the process's
/// settings.
const Settings* scoped_settings();
void lend_scoped_settings(const Settings* of_caller);

}  // namespace plugrad
