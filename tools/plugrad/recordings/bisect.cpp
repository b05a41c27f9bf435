// plugrad bisect: finds the rule, stage or schedule step whose removal mends a wrong result, in the
// kernels of a recording, or by running a program again and again.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <set>

#include "autodiff/rules.h"
#include "base/check.h"
#include "base/child_process.h"
#include "base/hash.h"
#include "command.h"
#include "engine/disabled_names.h"
#include "explain/file.h"
#include "recordings/bisect_kernel.h"
#include "recordings/recording_player.h"
#include "runtime/registry.h"
#include "schedule/schedule.h"

namespace plugrad::tools {
namespace {

nlohmann::ordered_json document(const KernelVerdict& verdict) {
  auto menders = nlohmann::ordered_json::array();
  for (const Mender& mender : verdict.menders)
    menders.push_back({{"kind", mender.kind}, {"name", mender.name}, {"setting", mender.setting}});
  return {{"kernel", verdict.name},
          {"difference", verdict.difference},
          {"device_is_wrong", verdict.is_device},
          {"right_as_made_now", verdict.is_right_now},
          {"tried", verdict.tried},
          {"menders", menders}};
}

void print_text(const KernelVerdict& verdict, const std::string& device) {
  fmt::print("kernel {}: {}\n", verdict.name, verdict.difference);
  if (verdict.is_device)
    fmt::print(
        "  {} computes its kernel IR wrongly: PLUGRAD_LAYERS=compare, or plugrad replay "
        "--compare REFERENCE, names the operation\n",
        device);
  if (verdict.is_right_now)
    fmt::print("  made again by this build with these settings, it is right\n");
  for (const Mender& mender : verdict.menders)
    fmt::print("  right without {} {}: {}\n", mender.kind, mender.name, mender.setting);
  if (verdict.menders.empty() && !verdict.is_right_now)
    fmt::print("  no rule, stage or schedule step alone mends it ({} were tried)\n", verdict.tried);
}

// The wrong kernels of a recording, each program once.
class Search {
 public:
  Search(runtime::Device& device, runtime::Device& reference)
      : device_(device), reference_(reference) {}

  void check(const std::string& name, const std::string& ast, const runtime::KernelLines& lines,
             std::span<runtime::Buffer* const> buffers, const runtime::Launch& launch) {
    if (ast.empty()) {
      without_ast_.insert(name);
      return;
    }
    if (!seen_.insert(hash128(as_bytes(ast + lines.name)).hex()).second) return;
    KernelCase found{name, kernel_of_text(name, ast), lines, {}};
    std::vector<runtime::Buffer*> distinct;
    for (runtime::Buffer* buffer : buffers) {
      const auto at = std::ranges::find(distinct, buffer);
      found.data.region_of.push_back(static_cast<std::size_t>(at - distinct.begin()));
      if (at != distinct.end()) continue;
      distinct.push_back(buffer);
      found.data.regions.emplace_back(buffer->size_bytes());
      buffer->copy_out(found.data.regions.back().data(), buffer->size_bytes());
    }
    found.data.scalars.assign(launch.scalars.begin(), launch.scalars.end());
    found.data.group_count = launch.group_count;
    found.data.local_size = launch.local_size;
    ++checked_;
    if (auto verdict = bisect_kernel(found, device_, reference_))
      verdicts_.push_back(std::move(*verdict));
  }

  std::vector<KernelVerdict> verdicts_;
  std::set<std::string> without_ast_;
  uint64_t checked_ = 0;

 private:
  runtime::Device &device_, &reference_;
  std::set<std::string> seen_;
};

// The optional stages that had run before the first recorded call.
std::vector<std::string> scheduler_stages() {
  std::vector<std::string> names;
  for (const StageInfo& stage : schedule::stages())
    if (stage.is_optional) names.emplace_back(stage.name);
  return names;
}

int bisect_recording(const std::string& path, bool as_json) {
  runtime::RecordingReader reader(path);
  runtime::Device& device = runtime::Registry::instance().default_device();
  runtime::Device& reference = runtime::Registry::instance().find_device("REFERENCE");
  RecordingPlayer player(device);
  Search search(device, reference);
  player.observe([&](const auto&... arguments) { search.check(arguments...); });
  for (runtime::RecordedCall call; reader.next(call);) player.play(call);
  require(!reader.is_cut_off() || player.launches() > 0, "[replay] {} was cut off before a launch",
          path);
  if (as_json) {
    auto kernels = nlohmann::ordered_json::array();
    for (const KernelVerdict& verdict : search.verdicts_) kernels.push_back(document(verdict));
    print_json({{"file", path},
                {"device", device.name()},
                {"checked", search.checked_},
                {"without_ast", search.without_ast_},
                {"stages_not_checked", scheduler_stages()},
                {"wrong", kernels}});
  } else {
    for (const KernelVerdict& verdict : search.verdicts_) print_text(verdict, device.name());
    for (const std::string& name : search.without_ast_)
      fmt::print("kernel {}: no AST was recorded (a user's kernel): not bisected\n", name);
    fmt::print("{}: {} kernels checked, {} wrong\n", device.name(), search.checked_,
               search.verdicts_.size());
    fmt::print(
        "not checked, as a recording begins behind them: derivatives and the scheduler ({}); "
        "plugrad bisect -- PROGRAM leaves them out one by one\n",
        fmt::join(scheduler_stages(), ", "));
  }
  return search.verdicts_.empty() ? kSuccess : kFailure;
}

struct Trial {
  std::string kind, name, variable, value;
};

std::vector<Trial> trials() {
  std::vector<Trial> out = {{"setting", "JIT=0", "JIT", "0"},
                            {"setting", "PLUGRAD_TUNE=0", "PLUGRAD_TUNE", "0"},
                            {"setting", "PLUGRAD_CONTRACT=0", "PLUGRAD_CONTRACT", "0"},
                            {"schedule", "NOOPT=1", "NOOPT", "1"}};
  for (const std::string& stage : engine::optional_stages())
    out.push_back({"stage", stage, "PLUGRAD_DISABLE", stage});
  for (const std::string& rule : engine::rule_names())
    out.push_back({"rule", rule, "PLUGRAD_DISABLE", rule});
  for (const std::string& derivative : autodiff::derivative_names())
    out.push_back({"derivative", derivative, "PLUGRAD_DISABLE", derivative});
  return out;
}

// Whether the program ends with status 0.
bool succeeds(const Arguments& program, const Trial* trial) {
  std::string line;
  if (trial) line = fmt::format("{}='{}' ", trial->variable, trial->value);
  for (const std::string& word : program) {
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    line += quoted + "' ";
  }
  return std::system((line + ">/dev/null 2>&1").c_str()) == 0;
}

int bisect_program(const Arguments& program, bool as_json) {
  require(
      !succeeds(program, nullptr),
      "[bisect] the program ends with status 0; it must fail where its result is wrong, e.g. by "
      "comparing it with the expected one");
  auto menders = nlohmann::ordered_json::array();
  const std::vector<Trial> all = trials();
  for (const Trial& trial : all) {
    if (!succeeds(program, &trial)) continue;
    menders.push_back({{"kind", trial.kind}, {"name", trial.name}});
    if (!as_json)
      fmt::print("succeeds without {} {}: {}=\"{}\"\n", trial.kind, trial.name, trial.variable,
                 trial.value);
  }
  if (as_json)
    print_json({{"program", program}, {"tried", all.size()}, {"menders", menders}});
  else
    fmt::print("{} settings, stages and rules were tried one by one; {} mend the program\n",
               all.size(), menders.size());
  return menders.empty() ? kFailure : kSuccess;
}

}  // namespace

int run_bisect(const Arguments& arguments) {
  const Syntax syntax = bisect_syntax();
  const auto split = std::ranges::find(arguments, "--");
  const Parsed parsed = parse(Arguments(arguments.begin(), split), syntax);
  if (parsed.help) return kSuccess;
  const auto words = parsed.has("file") ? parsed.get<Arguments>("file") : Arguments();
  const Arguments program(split == arguments.end() ? split : split + 1, arguments.end());
  if (words.size() + !program.empty() != 1)
    throw UsageError("name one recording, or a program after --\nusage: " + syntax.usage);
  if (!program.empty()) return bisect_program(program, parsed.has("json"));
  choose_device(parsed.get<std::string>("device"));
  return bisect_recording(words[0], parsed.has("json"));
}

}  // namespace plugrad::tools
