// The driver: chooses tests, has each run in the worker, makes failures small, and reports.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "conformance/driver/replay.h"
#include "conformance/driver/session.h"
#include "conformance/driver/shrink.h"
#include "conformance/manifest.h"
#include "conformance/report/report.h"
#include "conformance/run_test.h"
#include "conformance/selection.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kShrinkTime = 20s;
// Of each candidate while a hang is made smaller.
constexpr auto kShrunkHangLimit = 2s;
// From then on the rest of a level is not run: a device that hangs would take hours.
constexpr uint32_t kMostTimeoutsInARow = 5;

std::string machine_name() {
  utsname names{};
  ::uname(&names);
  std::string cpu;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; cpu.empty() && std::getline(info, line);)
    if (line.starts_with("model name")) cpu = line.substr(line.find(':') + 2);
  return fmt::format("{} ({} threads), {}", cpu.empty() ? names.machine : cpu,
                     ::sysconf(_SC_NPROCESSORS_ONLN), names.sysname);
}

// "plugrad-conformance-worker" beside this program, or beside the library directory.
std::string find_worker(const std::string& given) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path :
       given.empty() ? std::vector<fs::path>{program / "plugrad-conformance-worker",
                                             program / "../bin/plugrad-conformance-worker"}
                     : std::vector<fs::path>{given})
    if (::access(path.c_str(), X_OK) == 0) return path.string();
  throw std::runtime_error(given.empty() ? "plugrad-conformance-worker is not installed beside " +
                                               program.string()
                                         : "there is no worker " + given);
}

// A word of a command as the shell takes it.
std::string quoted(const std::string& word) {
  constexpr const char* kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=:,";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_of(const Options& options) {
  std::string command =
      "plugrad conformance --plugin " + quoted(fs::canonical(options.plugin_path).string());
  if (options.device_index) command += fmt::format(" --index {}", options.device_index);
  for (const auto& [key, value] : options.device_options)
    command += " --option " + quoted(key + "=" + value);
  for (const auto& [key, value] : options.plugin_options)
    command += " --plugin-option " + quoted(key + "=" + value);
  return command;
}

// The run of one plugin.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        session_(target_of(options), options.time_limit_factor),
        waivers_(options.waivers_path.empty() ? Waivers() : Waivers::read(options.waivers_path)) {
    report_.plugin_path = fs::canonical(options.plugin_path).string();
    report_.suite_version = suite_version();
    report_.machine = machine_name();
    report_.command = command_of(options);
    report_.seed = options.seed;
    report_.levels = options.levels;
    report_.full = options.full;
    report_.filter = options.filter;
    report_.replay = options.replay;
  }

  Report finish() {
    name_plugin();
    if (options_.replay.empty())
      run_selected();
    else
      run_replay(decode_replay(options_.replay));
    report_.totals = count(report_.tests);
    report_.next = next_steps(report_.tests, all_tests());
    report_.notes = waivers_.notes();
    return std::move(report_);
  }

 private:
  static WorkerTarget target_of(const Options& options) {
    if (!fs::is_regular_file(options.plugin_path))
      throw std::runtime_error("there is no plugin " + options.plugin_path);
    return {find_worker(options.worker_path), fs::canonical(options.plugin_path).string(),
            options.device_index, options.device_options, options.plugin_options};
  }

  void name_plugin() {
    std::string name = fs::path(report_.plugin_path).filename().string();
    try {
      const ManifestFacts manifest = read_manifest(report_.plugin_path);
      report_.plugin_version = manifest.version;
      name = manifest.device_name;
    } catch (const std::exception&) {
      // L0 says what is wrong with it.
    }
    report_.device = session_.describe_device();
    if (report_.device.empty()) report_.device = name;
  }

  bool selected(Level level, bool quick, const std::string& id) const {
    return (options_.full || quick) && selects(options_.levels, options_.filter, options_.full, level, id);
  }

  bool selected(const Test& test) const {
    if (!test.on_demand) return selected(test.level, test.quick, test.id);
    // Hours: only where the filter says "l2.exhaustive" in full.
    const std::string family = test.id.substr(0, test.id.find('.', test.id.find('.') + 1));
    return options_.filter.find(family) != std::string::npos && selected(test.level, true, test.id);
  }

  // A misspelt glob beside a good one would select less than was asked for in silence.
  void require_known_globs() const {
    for (std::string_view rest = options_.filter; !rest.empty();) {
      const std::string_view glob = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(glob.size() + 1, rest.size()));
      const bool known =
          glob.empty() ||
          std::ranges::any_of(all_tests(), [&](const Test& t) { return matches(glob, t.id); }) ||
          std::ranges::any_of(options_.extra,
                              [&](const ExtraTest& t) { return matches(glob, t.described.id); });
      if (!known) throw std::runtime_error(fmt::format("--filter: no test fits {}", glob));
    }
  }

  void run_selected() {
    require_known_globs();
    std::vector<const Test*> tests;
    for (const Test& test : all_tests())
      if (selected(test)) tests.push_back(&test);
    std::vector<const ExtraTest*> extra;
    for (const ExtraTest& test : options_.extra)
      if (selected(test.described.level, test.quick, test.described.id)) extra.push_back(&test);
    total_ = tests.size() + extra.size();
    if (total_ == 0)
      throw std::runtime_error("no test is selected by " + (options_.filter.empty()
                                                                ? "these levels"
                                                                : "--filter " + options_.filter));
    // Behind the suite's tests of their level.
    for (const Level level : kLevels) {
      for (const Test* test : tests)
        if (test->level == level) run_one(*test);
      for (const ExtraTest* test : extra)
        if (test->described.level == level) run_extra(*test);
    }
  }

  void run_replay(const Replay& replay) {
    const Test* test = find_test(replay.id);
    total_ = 1;
    for (const ExtraTest& extra : options_.extra)
      if (extra.described.id == replay.id) return run_extra(extra);
    if (!test)
      throw std::runtime_error("the replay token names no test of this suite: " + replay.id);
    TestResult result = session_.run(*test, replay.seed, replay.payload);
    if (is_failure(result.status)) show_kernel(result, session_.kernel());
    result.replay = options_.replay;
    add(std::move(result));
  }

  void run_one(const Test& test) {
    if (report_.tests.empty() || report_.tests.back().level != test.level) {
      session_.end_worker();
      timeouts_in_a_row_ = 0;
    }
    const uint64_t seed = seed_of_test(options_.seed, test.id);
    TestResult result =
        timeouts_in_a_row_ < kMostTimeoutsInARow ? session_.run(test, seed) : not_run(test);
    timeouts_in_a_row_ = result.status == Status::Timeout           ? timeouts_in_a_row_ + 1
                         : timeouts_in_a_row_ < kMostTimeoutsInARow ? 0
                                                                    : timeouts_in_a_row_;
    Replay replay{test.id, seed, {}};
    if (is_failure(result.status)) {
      std::vector<std::byte> kernel = session_.kernel();
      if (test.shrinks && !kernel.empty())
        replay.payload = kernel = shrunk(test, seed, result, kernel);
      show_kernel(result, kernel);
    }
    result.replay = encode_replay(replay);
    add(std::move(result));
  }

  static TestResult not_run(const Test& test) {
    TestResult result;
    result.id = test.id;
    result.level = test.level;
    result.op = test.op;
    result.dtype = test.dtype;
    result.status = Status::Fail;
    result.message = fmt::format("not run: {} tests of {} in a row timed out", kMostTimeoutsInARow,
                                 to_string(test.level));
    return result;
  }

  void run_extra(const ExtraTest& test) {
    TestResult result = test.run();
    result.id = test.described.id;
    result.level = test.described.level;
    result.op = test.described.op;
    result.dtype = test.described.dtype;
    result.replay = encode_replay({result.id, options_.seed, {}});
    add(std::move(result));
  }

  // The kernel of the failure, as small as it still fails in the same way.
  std::vector<std::byte> shrunk(const Test& test, uint64_t seed, TestResult& result,
                                const std::vector<std::byte>& kernel) {
    const std::chrono::nanoseconds limit = result.status == Status::Timeout
                                               ? std::chrono::nanoseconds(kShrunkHangLimit)
                                               : std::chrono::seconds(test.limit_seconds);
    const auto fails = [&](std::span<const std::byte> candidate) {
      const TestResult again = session_.run_within(limit, test, seed, candidate);
      if (again.status != result.status) return false;
      result.message = again.message;  // of the smaller kernel, with its values
      result.stack = again.stack;
      return true;
    };
    // A test that does not fail on the kernel it named itself cannot be made smaller.
    if (!fails(kernel)) return {};
    return shrink_kernel(kernel, fails, std::chrono::steady_clock::now() + kShrinkTime);
  }

  static void show_kernel(TestResult& result, std::span<const std::byte> kernel) {
    if (kernel.empty()) return;
    try {
      result.ir = sdk::print_ir(sdk::decode_ir(kernel));
    } catch (const std::exception& error) {
      result.ir =
          fmt::format("a block of {} bytes that does not decode: {}", kernel.size(), error.what());
    }
  }

  void add(TestResult result) {
    waivers_.apply(result);
    report_.tests.push_back(std::move(result));
    if (options_.progress) options_.progress(report_.tests.back(), report_.tests.size(), total_);
  }

  const Options& options_;
  Session session_;
  Waivers waivers_;
  Report report_;
  size_t total_ = 0;
  uint32_t timeouts_in_a_row_ = 0;
};

}  // namespace

Report run_suite(const Options& options) {
  return Run(options).finish();
}

std::string nothing_ran(const Report& report) {
  const auto executed = [&](auto&& belongs) {
    return std::any_of(report.tests.begin(), report.tests.end(), [&](const TestResult& test) {
      return belongs(test) && test.status != Status::Unsupported;
    });
  };
  for (const Level level : report.levels)
    if (!executed([&](const TestResult& test) { return test.level == level; }))
      return fmt::format(
          "no test of {} ran: all that are selected need what the plugin does not offer",
          to_string(level));
  if (!executed([](const TestResult&) { return true; }))
    return "no test ran: all that are selected need what the plugin does not offer";
  return "";
}

}  // namespace plugrad::conformance
