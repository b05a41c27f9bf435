// Turns environment variables into Settings by one table, and resolves the settings of a thread.
#include "base/settings.h"

#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"
#include "base/log.h"
#include "base/text.h"

namespace plugrad {
namespace {

[[noreturn]] void refuse_value(const char* name, std::string_view text, std::string_view expected) {
  fail(ErrorKind::User, "[settings] {}=\"{}\" is not valid: it takes {}", name, excerpt(text),
       expected);
}

template <class T>
bool parse_whole(std::string_view text, T& out) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc() && end == text.data() + text.size();
}

template <int Settings::* field, int low, int high>
void read_int(Settings& out, const char* name, std::string_view text) {
  int value = 0;
  if (!parse_whole(text, value) || value < low || value > high)
    refuse_value(name, text, fmt::format("a whole number from {} to {}", low, high));
  out.*field = value;
}

template <bool Settings::* field>
void read_bool(Settings& out, const char* name, std::string_view text) {
  if (text != "0" && text != "1") refuse_value(name, text, "0 or 1");
  out.*field = text == "1";
}

template <std::string Settings::* field>
void read_text(Settings& out, const char*, std::string_view text) {
  out.*field = text;
}

void read_beam_seconds(Settings& out, const char* name, std::string_view text) {
  double value = 0;
  if (!parse_whole(text, value) || !(value > 0) || !std::isfinite(value))
    refuse_value(name, text, "seconds above 0, such as 2.5; BEAM=0 switches the search off");
  out.beam_seconds = value;
}

void read_device_timeout(Settings& out, const char* name, std::string_view text) {
  constexpr double kMostSeconds = 1e8;  // fits 64 bits of nanoseconds
  double value = 0;
  if (!parse_whole(text, value) || !(value >= 0 && value <= kMostSeconds))
    refuse_value(name, text, "seconds from 0 to 1e8, such as 60; 0 is no limit");
  out.device_timeout = value;
}

void read_collective_seconds(Settings& out, const char* name, std::string_view text) {
  constexpr double kMostSeconds = 1e8;  // fits 64 bits of nanoseconds
  double value = 0;
  if (!parse_whole(text, value) || !(value > 0 && value <= kMostSeconds))
    refuse_value(name, text, "seconds above 0, at most 1e8, such as 60");
  out.collective_seconds = value;
}

void read_cpu_target(Settings& out, const char* name, std::string_view text) {
  constexpr std::string_view kTargets[] = {"native", "x86-64-v4", "x86-64-v3", "x86-64-v2",
                                           "x86-64"};
  if (std::ranges::find(kTargets, text) == std::end(kTargets))
    refuse_value(name, text, fmt::format("one of {}", fmt::join(kTargets, ", ")));
  out.cpu_target = text;
}

template <std::uint64_t Settings::* field>
void read_size(Settings& out, const char* name, std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const char* expected = "a size in bytes, with K, M, G or T for powers of 1024, such as 512M";
  std::string_view digits = text;
  unsigned shift = 0;
  if (!text.empty()) {
    std::size_t unit = kUnits.find(static_cast<char>(std::toupper(text.back())));
    if (unit != kUnits.npos) {
      shift = 10 * static_cast<unsigned>(unit + 1);
      digits.remove_suffix(1);
    }
  }
  std::uint64_t value = 0;
  if (!parse_whole(digits, value) || value > (UINT64_MAX >> shift))
    refuse_value(name, text, expected);
  out.*field = value << shift;
}

// NO_COLOR disables colour with any value, even an empty one: https://no-color.org.
void read_no_color(Settings& out, const char*, std::string_view) {
  out.color = false;
}

// If two rows set one field, the later wins.
// clang-format off
constexpr SettingRow kSettingRows[] = {
    {"DEVICE", "alias of DEV",
     read_text<&Settings::device>},
    {"DEV", "device to run on: CPU, CUDA:1, cuda,cpu, !vulkan",
     read_text<&Settings::device>},
    {"DEBUG", "1 counts and times, 2 each kernel, 3 source, 4 IR, 5 memory and disassembly; -1 no progress",
     read_int<&Settings::debug, -1, 9>},
    {"NOOPT", "1: kernels as scheduled, with no optimisation",
     read_bool<&Settings::noopt>},
    {"BEAM", "width of the search for optimisations; 0 is off",
     read_int<&Settings::beam, 0, 1024>},
    {"BEAM_SECONDS", "time that the search for one kernel may take; 10 unless told",
     read_beam_seconds},
    {"PLUGRAD_TUNE", "0: replays of jitted functions do not look for faster schedules",
     read_bool<&Settings::tune>},
    {"PLUGRAD_SEARCH_DB", "file of what searches found",
     read_text<&Settings::schedule_database>},
    {"PLUGRAD_OPTIMISATIONS", "optimisations of kernels: a list, or name: list; name: list …",
     read_text<&Settings::optimisations>},
    {"JIT", "0: a jitted function runs without recording; 2: it runs in each call, compared with what a replay would do",
     read_int<&Settings::jit, 0, 2>},
    {"PLUGRAD_LIFT", "0: kernels have numbers and sizes that change as constants, and are made for each value",
     read_bool<&Settings::lift>},
    {"VIZ", "1: the program's kernels, rewrites and times in a browser when it ends",
     read_bool<&Settings::viz>},
    {"PLUGRAD_THREADS", "threads of the process's pool; 0 is every core",
     read_int<&Settings::threads, 0, 256>},
    {"PLUGRAD_MEMORY_LIMIT", "device memory that may be in use at once",
     read_size<&Settings::memory_limit_bytes>},
    {"PLUGRAD_FAST_MATH", "1: rewrites that may change a float's last bits",
     read_bool<&Settings::fast_math>},
    {"PLUGRAD_CONTRACT", "0: a multiply and its add always round separately",
     read_bool<&Settings::contract>},
    {"PLUGRAD_DETERMINISTIC", "1: a kernel's schedule follows from the kernel alone: no search, no search database; no multiply-add rounds once",
     read_bool<&Settings::deterministic>},
    {"TF32", "1: tensor cores may round factors in f32 to 10 bits of fraction",
     read_bool<&Settings::tf32>},
    {"PLUGRAD_CHECK_INDICES", "1: indices that a device computes are range-checked; a read of what depends on one outside is an error",
     read_bool<&Settings::check_indices>},
    {"PLUGRAD_VERIFY", "1: check the IR after every stage",
     read_bool<&Settings::verify>},
    {"PLUGRAD_DISABLE", "rules and optional stages that are left out, separated by commas",
     read_text<&Settings::disable>},
    {"PLUGRAD_DUMP", "name of a stage whose IR is printed",
     read_text<&Settings::dump>},
    {"PLUGRAD_TRACE", "file that receives each launch, copy, wait, compilation and allocation",
     read_text<&Settings::trace_path>},
    {"PLUGRAD_TRACE_RULES", "1: the trace has every stage and rewrite too",
     read_bool<&Settings::trace_rules>},
    {"PLUGRAD_TRACE_LIMIT", "size of the trace's file, such as 1G; the oldest events go; 256M unless told",
     read_size<&Settings::trace_limit_bytes>},
    {"PLUGRAD_DATA", "directory that holds data sets, such as mnist/",
     read_text<&Settings::data_dir>},
    {"PLUGRAD_CACHE_DIR", "directory of compiled kernels and downloads",
     read_text<&Settings::cache_dir>},
    {"PLUGRAD_CACHE_LIMIT", "size of the cache on disk, such as 512M; what was not used for longest goes",
     read_size<&Settings::cache_limit_bytes>},
    {"PLUGRAD_PLUGIN_FILES", "plugin files, joined by ':'; no other is looked for",
     read_text<&Settings::plugin_files>},
    {"PLUGRAD_PLUGIN_PATH", "directories to look for plugins in first, joined by ':'",
     read_text<&Settings::plugin_path>},
    {"PLUGRAD_TRUST_PLUGINS", "plugin files or their directories that are opened although everybody can write them",
     read_text<&Settings::trust_plugins>},
    {"PLUGRAD_VISIBLE_DEVICES", "devices that exist for this process, renumbered",
     read_text<&Settings::visible_devices>},
    {"PLUGRAD_CPU_TARGET", "instruction set that CPU's kernels may use: native, x86-64-v4, x86-64-v3, x86-64-v2, x86-64",
     read_cpu_target},
    {"PLUGRAD_LAYERS", "checking layers around plugins",
     read_text<&Settings::layers>},
    {"PLUGRAD_VALIDATE", "1: compare a sample of kernels with REFERENCE, within 10% of the time",
     read_bool<&Settings::validate>},
    {"PLUGRAD_DEVICE_TIMEOUT", "seconds after which a call of a device is given up and the device lost; 0: never",
     read_device_timeout},
    {"PLUGRAD_MPI", "the MPI of a program of several processes: mpich, openmpi, abi, or the path of an MPI library",
     read_text<&Settings::mpi>},
    {"PLUGRAD_COLLECTIVE_SECONDS", "seconds after which a collective fails if a rank is not there; 60 unless told",
     read_collective_seconds},
    {"NO_COLOR", "present: no colour in output",
     read_no_color},
};
// clang-format on

// The process's settings. Each version is published whole and never freed: readers hold no lock.
struct Process {
  std::mutex mutex;
  std::deque<Settings> versions;
  std::atomic<const Settings*> current{nullptr};

  const Settings& publish(Settings next) {
    const Settings& stored = versions.emplace_back(std::move(next));
    current.store(&stored, std::memory_order_release);
    return stored;
  }
};

Process& process() {
  static Process* instance = new Process;  // threads may still read it at exit
  return *instance;
}

thread_local const Settings* scope_of_thread = nullptr;

const Settings& process_settings() {
  Process& p = process();
  if (const Settings* current = p.current.load(std::memory_order_acquire)) return *current;
  std::lock_guard lock(p.mutex);
  if (const Settings* current = p.current.load(std::memory_order_acquire)) return *current;
  const Settings& first = p.publish(read_settings(environment_variable));
  for (const std::string& warning : unknown_settings(environ)) log_line(LogLevel::Warning, warning);
  return first;
}

int usable_cores() {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp(count, 1, 256);
}

}  // namespace

std::span<const SettingRow> setting_rows() {
  return kSettingRows;
}

std::optional<std::string> environment_variable(const char* name) {
  const char* text = secure_getenv(name);
  return text ? std::optional<std::string>(text) : std::nullopt;
}

std::vector<std::string> unknown_settings(const char* const* environment) {
  constexpr std::string_view kPrefix = "PLUGRAD_";
  std::vector<std::string> known, out;  // without the prefix, which would distort similarity
  for (const SettingRow& row : kSettingRows)
    if (std::string_view name = row.name; name.starts_with(kPrefix))
      known.emplace_back(name.substr(kPrefix.size()));
  for (; environment && *environment; ++environment) {
    std::string_view entry = *environment, name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    // Used by the test programs, and by `plugrad bench` to find its peers.
    if (name.starts_with("TEST_") || name.starts_with("PEER_")) continue;
    if (std::count(known.begin(), known.end(), name)) continue;
    std::string nearest = nearest_name(name, known);
    if (!nearest.empty()) nearest = fmt::format("; did you mean {}{}?", kPrefix, nearest);
    out.push_back(fmt::format("{}{} is no setting of plugrad{}", kPrefix, name, nearest));
  }
  return out;
}

Settings read_settings(const Environment& environment) {
  Settings out;
  for (const SettingRow& row : kSettingRows) {
    std::optional<std::string> text = environment(row.name);
    // An empty value counts as unset, since shells easily leave one behind.
    bool counts = text && (!text->empty() || std::string_view(row.name) == "NO_COLOR");
    if (counts) row.parse(out, row.name, *text);
  }
  return out;
}

const Settings& settings() {
  return scope_of_thread ? *scope_of_thread : process_settings();
}

void change_settings(const std::function<void(Settings&)>& change) {
  Settings next = process_settings();
  Process& p = process();
  std::lock_guard lock(p.mutex);
  next = *p.current.load(std::memory_order_acquire);
  change(next);
  p.publish(std::move(next));
}

int thread_count() {
  static const int cores = usable_cores();
  int wanted = settings().threads;
  return wanted > 0 ? wanted : cores;
}

SettingScope::SettingScope(const std::function<void(Settings&)>& change) : outer_(scope_of_thread) {
  auto next = std::make_unique<Settings>(settings());
  change(*next);
  mine_ = std::move(next);
  scope_of_thread = mine_.get();
}

SettingScope::~SettingScope() {
  scope_of_thread = outer_;
}

const Settings* scoped_settings() {
  return scope_of_thread;
}
void lend_scoped_settings(const Settings* of_caller) {
  scope_of_thread = of_caller;
}

}  // namespace plugrad
