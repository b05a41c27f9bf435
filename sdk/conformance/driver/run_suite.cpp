// The driver: selects tests, runs them in workers, and reports.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "conformance/driver/replay.h"
#include "conformance/driver/session.h"
#include "conformance/driver/side_by_side.h"
#include "conformance/driver/test_runner.h"
#include "conformance/plugin/manifest.h"
#include "conformance/report/report.h"
#include "conformance/run_test.h"
#include "conformance/selection.h"

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;
// More workers gave no speed-up in measurements, and each keeps the device open.
constexpr uint32_t kMostDefaultLanes = 8;
// The rest of a level is skipped after so many timeouts: a hanging device would take hours.
constexpr uint32_t kMostTimeoutsInARow = 5;

// Path of "plugrad-conformance-worker": next to this program or next to the library directory.
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

// Quotes a word for the shell.
std::string quoted(const std::string& word) {
  constexpr const char* kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=:,";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Relative to the current directory if the file is below it, so that reports contain no local
// paths.
std::string as_typed(const std::string& path) {
  const fs::path whole = fs::canonical(path);
  const fs::path below = whole.lexically_relative(fs::current_path());
  return (below.empty() || *below.begin() == ".." ? whole : below).string();
}

uint32_t default_lanes() {
  return std::clamp(std::thread::hardware_concurrency(), 1u, kMostDefaultLanes);
}

// A test of the suite or of the caller.
struct Job {
  const Test* test;
  const ExtraTest* extra;
  Level level() const { return test ? test->level : extra->described.level; }
  bool alone() const { return test && test->alone; }
  TestResult described() const {
    if (extra) return extra->described;
    TestResult result;
    result.id = test->id;
    result.level = test->level;
    result.op = test->op;
    result.dtype = test->dtype;
    return result;
  }
};

// One run against one plugin.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        target_(target_of(options)),
        lanes_(options.jobs ? options.jobs : default_lanes()),
        waivers_(options.waivers_path.empty() ? Waivers() : Waivers::read(options.waivers_path)) {
    report_.plugin_path = fs::canonical(options.plugin_path).string();
    report_.suite_version = suite_version();
    report_.machine = machine_name();
    report_.command = command_of(options);
    report_.seed = options.seed;
    report_.jobs = lanes_;
    report_.levels = options.levels;
    report_.full = options.full;
    report_.filter = options.filter;
    report_.replay = options.replay;
  }

  Report finish() {
    const auto start = std::chrono::steady_clock::now();
    name_plugin();
    if (options_.replay.empty())
      run_selected();
    else
      run_replay(decode_replay(options_.replay));
    report_.totals = count(report_.tests);
    report_.next = next_steps(report_.tests, all_tests());
    report_.notes = waivers_.notes();
    if (report_.interrupted)
      report_.notes.insert(report_.notes.begin(),
                           fmt::format("the run was interrupted: {} of {} tests ran",
                                       report_.tests.size(), jobs_.size()));
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  static WorkerTarget target_of(const Options& options) {
    std::error_code ignored;
    if (!fs::is_regular_file(options.plugin_path, ignored))
      throw std::runtime_error("there is no plugin " + options.plugin_path);
    return {find_worker(options.worker_path),
            fs::canonical(options.plugin_path).string(),
            options.device_index,
            options.device_options,
            options.plugin_options,
            options.interrupted};
  }

  void name_plugin() {
    std::string name = fs::path(report_.plugin_path).filename().string();
    try {
      const ManifestFacts manifest = read_manifest(report_.plugin_path);
      report_.plugin_version = manifest.version;
      name = manifest.device_name;
    } catch (const std::exception&) {
      // L0 reports the error.
    }
    const Trial trial = try_device(target_, options_.time_limit_factor);
    if (!trial.refusal.empty()) throw std::runtime_error(trial.refusal);
    report_.driver = trial.driver;
    report_.device = trial.device.empty() ? name : trial.device;
  }

  bool selected(Level level, bool quick, const std::string& id) const {
    return (options_.full || quick) &&
           selects(options_.levels, options_.filter, options_.full, level, id);
  }

  bool selected(const Test& test) const {
    if (!test.on_demand) return selected(test.level, test.quick, test.id);
    // Takes hours: runs only if the filter contains "l2.exhaustive" in full.
    return options_.filter.find(family_of(test.id)) != std::string::npos &&
           selected(test.level, true, test.id);
  }

  // A misspelt glob next to a valid one would silently select too few tests.
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

  // In report order: the parallel tests of a level, its exclusive tests, then the caller's tests.
  std::vector<Job> select_jobs() const {
    std::vector<Job> jobs;
    for (const Level level : kLevels) {
      for (const Test& test : all_tests())
        if (test.level == level && selected(test)) jobs.push_back({&test, nullptr});
      for (const ExtraTest& test : options_.extra)
        if (test.described.level == level && selected(level, test.quick, test.described.id))
          jobs.push_back({nullptr, &test});
    }
    return jobs;
  }

  void run_selected() {
    require_known_globs();
    jobs_ = select_jobs();
    if (jobs_.empty())
      throw std::runtime_error("no test is selected by " + (options_.filter.empty()
                                                                ? "these levels"
                                                                : "--filter " + options_.filter));
    for (size_t begin = 0; begin < jobs_.size() && !interrupted();) {
      size_t end = begin + 1;
      while (end < jobs_.size() && jobs_[end].level() == jobs_[begin].level() &&
             jobs_[end].alone() == jobs_[begin].alone())
        ++end;
      run_section(begin, end);
      begin = end;
    }
    report_.interrupted = report_.tests.size() < jobs_.size();
  }

  // Runs the tests of one level in their own workers.
  void run_section(size_t begin, size_t end) {
    if (begin == 0 || jobs_[begin - 1].level() != jobs_[begin].level()) timeouts_in_a_row_ = 0;
    const auto make_lane = [this, begin]() -> RunOne {
      const auto runner = std::make_shared<TestRunner>(target_, options_, hangs_);
      return [this, begin, runner](size_t number) { return run_job(*runner, begin + number); };
    };
    const auto take = [this](TestResult result) {
      timeouts_in_a_row_ = result.status == Status::Timeout ? timeouts_in_a_row_ + 1 : 0;
      add(std::move(result));
      return timeouts_in_a_row_ < kMostTimeoutsInARow;
    };
    if (timeouts_in_a_row_ < kMostTimeoutsInARow)
      run_side_by_side(end - begin, jobs_[begin].alone() ? 1 : lanes_, make_lane, take);
    if (timeouts_in_a_row_ < kMostTimeoutsInARow) return;
    for (size_t place = report_.tests.size(); place < end; ++place) add(not_run(jobs_[place]));
  }

  std::optional<TestResult> run_job(TestRunner& runner, size_t place) {
    const Job& job = jobs_[place];
    return job.test ? runner.run(*job.test, place) : run_extra(*job.extra);
  }

  void run_replay(const Replay& replay) {
    std::optional<TestResult> result;
    const auto extra = std::ranges::find_if(
        options_.extra, [&](const ExtraTest& test) { return test.described.id == replay.id; });
    const Test* test = find_test(replay.id);
    if (extra != options_.extra.end()) {
      jobs_.push_back({nullptr, &*extra});
      result = run_extra(*extra);
    } else if (test) {
      jobs_.push_back({test, nullptr});
      result = TestRunner(target_, options_, hangs_).replay(*test, replay);
    } else {
      throw std::runtime_error("the replay token names no test of this suite: " + replay.id);
    }
    report_.interrupted = !result;
    if (result) add(std::move(*result));
  }

  TestResult not_run(const Job& job) const {
    TestResult result = job.described();
    result.status = Status::Fail;
    result.message = fmt::format("not run: {} tests of {} in a row timed out", kMostTimeoutsInARow,
                                 to_string(job.level()));
    const uint64_t seed = job.test ? seed_of_test(options_.seed, result.id) : options_.seed;
    result.replay = encode_replay({result.id, seed, {}});
    return result;
  }

  std::optional<TestResult> run_extra(const ExtraTest& test) const {
    if (interrupted()) return std::nullopt;
    TestResult result = test.run();
    if (interrupted()) return std::nullopt;
    result.id = test.described.id;
    result.level = test.described.level;
    result.op = test.described.op;
    result.dtype = test.described.dtype;
    result.replay = encode_replay({result.id, options_.seed, {}});
    return result;
  }

  void add(TestResult result) {
    waivers_.apply(result);
    report_.tests.push_back(std::move(result));
    if (options_.progress)
      options_.progress(report_.tests.back(), report_.tests.size(), jobs_.size());
  }

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  const Options& options_;
  WorkerTarget target_;
  uint32_t lanes_;
  Hangs hangs_;
  Waivers waivers_;
  Report report_;
  std::vector<Job> jobs_;
  uint32_t timeouts_in_a_row_ = 0;
};

}  // namespace

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

std::string command_of(const Options& options) {
  std::string command = "plugrad conformance --plugin " + quoted(as_typed(options.plugin_path));
  if (options.device_index) command += fmt::format(" --index {}", options.device_index);
  for (const auto& [key, value] : options.device_options)
    command += " --option " + quoted(key + "=" + value);
  for (const auto& [key, value] : options.plugin_options)
    command += " --plugin-option " + quoted(key + "=" + value);
  return command;
}

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
