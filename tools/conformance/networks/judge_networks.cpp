#include "networks/judge_networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>

#include "child_process.h"
#include "conformance/selection.h"
#include "interruption.h"
#include "models/find_models.h"
#include "networks/kernel_sources.h"
#include "temporary_folder.h"

namespace plugrad::tools {
namespace {

using conformance::Level;
using conformance::Status;
using conformance::TestResult;
using Json = nlohmann::json;
using End = ChildOutcome::End;

// A stage that compares writes a line at least this often, times the factor.
constexpr double kSilentSeconds = 600;
// A model whose kernels end the process more often is left there.
constexpr size_t kMostRestarts = 8;

struct StageOutcome {
  std::vector<Json> lines;
  Status status = Status::Pass;  // of the process
  std::string message, stack;

  /// The last line with this key; null if there is none.
  Json last(const char* key) const {
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (line->contains(key)) return *line;
    return nullptr;
  }
};

void set_end(const ChildOutcome& child, StageOutcome& outcome) {
  const bool is_alarm = child.end == End::Signalled && child.code == SIGALRM;
  if (child.end == End::TimedOut || is_alarm) {
    outcome.status = Status::Timeout;
    outcome.message = "the device did not answer within the time limit";
  } else if (child.end == End::Signalled || child.code != 0) {
    outcome.status = Status::Crash;
    outcome.message =
        child.end == End::Signalled
            ? fmt::format("the process ended by signal {} ({})", child.code, strsignal(child.code))
            : fmt::format("the process ended with code {}", child.code);
    outcome.stack = child.errors;
  } else if (const Json error = outcome.last("error"); !error.is_null()) {
    outcome.status = error["unsupported"].get<bool>() ? Status::Unsupported : Status::Fail;
    outcome.message = error["error"].get<std::string>();
  }
}

StageOutcome run_stage_of(const char* stage, const NetworkTarget& target,
                          const std::vector<std::string>& more_environment) {
  std::vector<std::string> environment = clean_environment(target.folder + "/cache");
  environment.insert(environment.end(), more_environment.begin(), more_environment.end());
  const ChildOutcome child = run_child(stage_arguments(stage, target), environment,
                                       kSilentSeconds * target.device.time_limit_factor);
  StageOutcome outcome;
  for (size_t at = 0; at < child.output.size();) {
    const size_t end = std::min(child.output.find('\n', at), child.output.size());
    Json line = Json::parse(child.output.begin() + static_cast<ptrdiff_t>(at),
                            child.output.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    if (line.is_object()) outcome.lines.push_back(std::move(line));
    at = end + 1;
  }
  set_end(child, outcome);
  return outcome;
}

struct KernelResult {
  std::string name, nodes, other;
  TestResult test;
  uint64_t compared = 0;
};

double worst_number(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) return 0;
  return found->is_number() ? found->get<double>() : INFINITY;  // JSON has no infinity
}

class NetworkJudge {
 public:
  NetworkJudge(const NetworkOptions& options, std::string id, std::string path)
      : target_(options.target), id_(std::move(id)), folder_("conformance") {
    target_.model = std::move(path);
    target_.folder = folder_.path();
  }

  TestResult run(const std::function<void(TestResult)>& take) {
    const auto start = std::chrono::steady_clock::now();
    TestResult whole;
    whole.id = id_;
    whole.level = Level::L2;
    const bool is_recording = target_.model.ends_with(".rec");
    StageOutcome recorded;
    if (!is_recording) recorded = record();
    judge_kernels();
    for (auto& [number, kernel] : kernels_) take(kernel.test);
    if (!is_recording) conclude(recorded, whole);
    whole.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return whole;
  }

 private:
  StageOutcome record();
  void judge_kernels();
  void take_line(const Json& line);
  void blame(const StageOutcome& outcome);
  void conclude(const StageOutcome& recorded, TestResult& whole);
  void compare_whole_outputs(const StageOutcome& recorded, TestResult& whole);
  KernelResult& kernel_of(const Json& line, const char* key);
  // In the order of first launches, which is that of every run; kernels without a launch come last.
  uint64_t place_of(uint64_t number) const {
    const auto launched = launched_.find(number);
    return launched == launched_.end() ? launched_.size() + number : launched->second.place;
  }
  std::string recording() const {
    return target_.model.ends_with(".rec") ? target_.model : target_.folder + "/calls.rec";
  }

  NetworkTarget target_;
  const std::string id_;
  const TemporaryFolder folder_;
  std::map<uint64_t, LaunchedKernel> launched_;
  std::map<uint64_t, KernelResult> kernels_;  // by place_of()
};

// A process that crashes leaves its calls, but no trace. The trace is that of a second run, in which
// the launch that crashed fails instead.
StageOutcome NetworkJudge::record() {
  const std::string calls = recording(), trace = target_.folder + "/trace";
  const StageOutcome outcome = run_stage_of(
      "record", target_, {"PLUGRAD_TRACE=" + trace, "PLUGRAD_LAYERS=record:file=" + calls});
  if (outcome.status == Status::Crash || outcome.status == Status::Timeout)
    run_stage_of("record", target_,
                 {"PLUGRAD_TRACE=" + trace,
                  fmt::format("PLUGRAD_LAYERS=faults:launch={}", launches_in(calls))});
  return outcome;
}

KernelResult& NetworkJudge::kernel_of(const Json& line, const char* key) {
  const auto number = line[key].get<uint64_t>();
  const auto launched = launched_.find(number);
  const uint64_t place = place_of(number);
  KernelResult& kernel = kernels_[place];
  if (kernel.test.id.empty()) {
    kernel.name = line.value("name", "");
    kernel.nodes = launched == launched_.end() ? "" : launched->second.nodes;
    kernel.test.id = fmt::format("{}.{:03}_{}", id_, place, kernel.name);
    kernel.test.level = Level::L2;
    kernel.test.metric = "ulp";
  }
  return kernel;
}

void NetworkJudge::take_line(const Json& line) {
  if (const auto timed = line.find("timed"); timed != line.end()) {
    if (const auto known = kernels_.find(place_of(timed->get<uint64_t>())); known != kernels_.end())
      known->second.test.milliseconds = line["ms"].get<double>();
    return;
  }
  if (!line.contains("kernel")) return;
  KernelResult& kernel = kernel_of(line, "kernel");
  if (line.contains("smallest")) {
    kernel.test.ir = line["smallest"].get<std::string>();
    return;
  }
  const std::string status = line["status"].get<std::string>();
  ++kernel.compared;
  kernel.other = line.value("other", kernel.other);
  if (const double ulps = worst_number(line, "ulp"); ulps > kernel.test.worst) {
    kernel.test.worst = ulps;
    kernel.test.worst_input = line.value("where", "");
  }
  if (status == "pass") return;
  kernel.test.status = status == "fail" ? Status::Fail : Status::Unsupported;
  kernel.test.message = line.value("message", "");
  kernel.test.replay = line.value("replay", "");
}

// The kernel in which the process ended fails, and is left out from now on.
void NetworkJudge::blame(const StageOutcome& outcome) {
  for (auto line = outcome.lines.rbegin(); line != outcome.lines.rend(); ++line) {
    for (const char* key : {"compiling", "launching", "shrinking"}) {
      if (!line->contains(key)) continue;
      KernelResult& kernel = kernel_of(*line, key);
      target_.left_out.insert((*line)[key].get<uint64_t>());
      if (kernel.test.status == Status::Fail) return;
      kernel.test.status = outcome.status;
      kernel.test.message = fmt::format("{} kernel {}: {}", key, kernel.name, outcome.message);
      kernel.test.stack = outcome.stack;
      return;
    }
  }
}

void NetworkJudge::judge_kernels() {
  std::error_code ignored;
  if (!std::filesystem::exists(recording(), ignored)) return;
  launched_ = launched_kernels(target_.folder + "/trace", recording());
  for (size_t restarts = 0; restarts <= kMostRestarts && !is_interrupted(); ++restarts) {
    const StageOutcome outcome = run_stage_of("launches", target_, {});
    for (const Json& line : outcome.lines) take_line(line);
    const size_t left_out = target_.left_out.size();
    if (outcome.status == Status::Crash || outcome.status == Status::Timeout) blame(outcome);
    if (left_out == target_.left_out.size()) break;
  }
  for (auto& [number, kernel] : kernels_) {
    const std::string of = kernel.nodes.empty() ? "" : "computes " + kernel.nodes;
    if (kernel.test.status == Status::Pass)
      kernel.test.message = fmt::format("{}{}{} launches equal to {}", of, of.empty() ? "" : "; ",
                                        kernel.compared, kernel.other);
    else if (!of.empty())
      kernel.test.message += "\n" + of;
  }
}

void NetworkJudge::compare_whole_outputs(const StageOutcome& recorded, TestResult& whole) {
  const std::string device = recorded.last("device").value("device", "");
  NetworkTarget target = target_;
  if (target.expected.empty()) target.expected = "CPU";
  if (device.starts_with(target.expected + ":")) {
    whole.message +=
        fmt::format("; outputs not compared as a whole: {} is the device itself", target.expected);
    return;
  }
  const StageOutcome outcome = run_stage_of("outputs", target, {});
  const Json line = outcome.last("different");
  if (line.is_null()) {
    whole.message +=
        fmt::format("; outputs not compared: {}: {}", target.expected, outcome.message);
    return;
  }
  whole.metric = "relative";
  whole.worst = worst_number(line, "worst");
  const std::string different = line["different"].get<std::string>();
  if (different.empty()) {
    whole.message += fmt::format("; outputs agree with {}", target.expected);
    return;
  }
  whole.status = Status::Fail;
  whole.message += fmt::format("; outputs differ from {}: {}", target.expected, different);
}

void NetworkJudge::conclude(const StageOutcome& recorded, TestResult& whole) {
  whole.status = recorded.status;
  whole.stack = recorded.stack;
  size_t failed = 0, compared = 0;
  const KernelResult* first = nullptr;
  for (const auto& [number, kernel] : kernels_) {
    const bool is_bad =
        kernel.test.status != Status::Pass && kernel.test.status != Status::Unsupported;
    failed += is_bad;
    compared += kernel.test.status != Status::Unsupported;
    if (is_bad && !first) first = &kernel;
  }
  whole.message = recorded.message.empty() ? "" : recorded.message + "\n";
  whole.message +=
      fmt::format("{} of {} kernels compared, {} wrong", compared, kernels_.size(), failed);
  if (first) {
    if (whole.status == Status::Pass) whole.status = Status::Fail;
    whole.replay = first->test.replay;
    whole.message +=
        fmt::format("; the first is {}{}", first->name,
                    first->nodes.empty() ? "" : fmt::format(", which computes {}", first->nodes));
  }
  if (whole.status == Status::Pass && compared == 0) whole.status = Status::Unsupported;
  if (recorded.status == Status::Pass) compare_whole_outputs(recorded, whole);
}

}  // namespace

void judge_networks(const NetworkOptions& options, const std::function<void(TestResult)>& take) {
  const auto take_selected = [&](TestResult test) {
    if (options.filter.empty() || conformance::matches(options.filter, test.id))
      take(std::move(test));
  };
  if (!options.replay.empty()) {
    NetworkJudge(options, "l2.networks.replay", options.replay).run(take_selected);
    return;
  }
  const TemporaryFolder scratch("conformance");
  for (const FoundModel& model : find_models(options.models, scratch.path())) {
    const std::string id = "l2.networks." + model.id;
    if (is_interrupted()) return;
    take_selected(NetworkJudge(options, id, model.path).run(take_selected));
  }
}

}  // namespace plugrad::tools
