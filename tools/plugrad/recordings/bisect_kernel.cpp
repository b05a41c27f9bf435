#include "recordings/bisect_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/settings.h"
#include "codegen/codegen.h"
#include "engine/disabled_names.h"
#include "engine/kernels/kernel_cache.h"
#include "plugrad/error.h"
#include "rewrite/trace.h"
#include "runtime/checks/compare/differences.h"
#include "runtime/checks/compare/judge.h"
#include "runtime/checks/compare/rounding.h"
#include "runtime/checks/compare/values.h"

namespace plugrad::tools {
namespace {

using runtime::HostMemory;
using runtime::KernelLines;
using runtime::LaunchData;

class Bisection {
 public:
  Bisection(const KernelCase& kernel, runtime::Device& device, runtime::Device& reference)
      : case_(kernel), device_(device), reference_(reference) {}

  std::optional<KernelVerdict> run() {
    find_truth();
    const HostMemory got = on_device(case_.recorded);
    const auto wrong = difference(got);
    if (!wrong) return std::nullopt;
    verdict_.name = case_.name;
    verdict_.difference = fmt::format("buffer {} [{}] is {}, right is {}", wrong->argument,
                                      wrong->index, runtime::value_text(wrong->dtype, wrong->got),
                                      runtime::value_text(wrong->dtype, wrong->expected));
    const HostMemory same_ir = run_on(reference_, case_.recorded, case_.data, false);
    verdict_.is_device =
        judge(case_.recorded, case_.data, device_.caps(), reference_, got, same_ir).has_value();
    verdict_.is_right_now = is_right(nullptr);
    if (!verdict_.is_right_now) {
      try_rules();
      try_stages();
      try_schedules();
    }
    return std::move(verdict_);
  }

 private:
  // The AST's IR for a device under the current settings.
  KernelLines generated(runtime::Device& device, bool no_opt,
                        const codegen::KernelSchedule* schedule) const {
    codegen::Options options =
        codegen_options({case_.ast, &device}, engine::KernelOptions::from_settings());
    options.no_opt = no_opt;
    options.schedule = schedule;
    const codegen::KernelCode code =
        codegen::generate(case_.ast->graph, case_.ast->sink, device.caps(), options);
    schedule_ = code.schedule;
    return runtime::read_kernel_lines(code.ir).value();
  }

  // The launch of another kernel of the same AST: the first of the same buffers.
  LaunchData data_of(const KernelLines& kernel) const {
    LaunchData data = case_.data;
    data.group_count = kernel.group_count;
    data.local_size = kernel.local_size;
    data.region_of.resize(LaunchData::buffer_params(kernel).size(), 0);
    return data;
  }

  HostMemory on_device(const KernelLines& kernel) const {
    const bool contract = (kernel.flags & PGR_IR_FLAG_CONTRACT) != 0;
    return run_on(device_, kernel, data_of(kernel), contract);
  }

  // The plainest kernel: no schedule, and none of the simplifying rules that it can do without.
  void find_truth() {
    std::string left_out;
    for (const std::string& rule : fired_rules(reference_, true)) {
      if (!std::ranges::binary_search(simplifying_, rule)) continue;
      const std::string more = left_out.empty() ? rule : left_out + "," + rule;
      const Without scope(more);
      try {
        plain_ = generated(reference_, true, nullptr);
        run_on(reference_, plain_, data_of(plain_), false);
        left_out = more;
      } catch (const Error&) {  // it needs the rule
      }
    }
    const Without scope(left_out);
    plain_ = generated(reference_, true, nullptr);
    const LaunchData data = data_of(plain_);
    truth_ = run_on(reference_, plain_, data, false);
    const std::vector<double> errors = runtime::errors_of_reordering(plain_);
    for (uint32_t i = 0; i < runtime::kRoundingVariants; ++i)
      variants_.push_back(run_on(reference_, with_errors(plain_, errors, i), data, false));
  }

  std::optional<runtime::Difference> difference(const HostMemory& got) const {
    const runtime::Tolerance tolerance{.any_zero = true, .is_rounded = true};
    return first_difference(plain_, data_of(plain_), got, truth_, variants_, tolerance);
  }

  // Whether the kernel made in this way is right; false also if it cannot be made.
  bool is_right(const codegen::KernelSchedule* schedule, bool no_opt = false) {
    ++verdict_.tried;
    try {
      return !difference(on_device(generated(device_, no_opt, schedule)));
    } catch (const Error&) {
      return false;
    }
  }

  // Adds names to PLUGRAD_DISABLE.
  struct Without {
    explicit Without(const std::string& names) : before(settings().disable) {
      if (!names.empty()) set(before.empty() ? names : before + "," + names);
    }
    ~Without() { set(before); }
    Without(const Without&) = delete;
    Without& operator=(const Without&) = delete;
    static void set(const std::string& names) {
      change_settings([&](Settings& s) { s.disable = names; });
    }
    const std::string before;
  };

  bool is_right_without(const std::string& name) {
    const Without scope(name);
    return is_right(nullptr);
  }

  std::set<std::string> fired_rules(runtime::Device& device, bool no_opt) const {
    RewriteTrace trace;
    {
      const TraceScope scope(trace);
      generated(device, no_opt, nullptr);
    }
    std::set<std::string> out;
    for (const TraceEvent& event : trace.events) out.insert(event.rule->name);
    return out;
  }

  void try_rules() {
    for (const std::string& rule : fired_rules(device_, false))
      if (is_right_without(rule))
        verdict_.menders.push_back({"rule", rule, "PLUGRAD_DISABLE=" + rule});
  }

  void try_stages() {
    for (const StageInfo& stage : codegen::stages())
      if (stage.is_optional && is_right_without(stage.name))
        verdict_.menders.push_back(
            {"stage", stage.name, fmt::format("PLUGRAD_DISABLE=\"{}\"", stage.name)});
  }

  void try_schedules() {
    generated(device_, false, nullptr);
    const codegen::KernelSchedule whole = schedule_;
    const std::string planned = codegen::describe(case_.ast->graph, case_.ast->sink).name;
    for (std::size_t i = whole.size(); i-- > 0;) {
      codegen::KernelSchedule without = whole;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_right(&without))
        verdict_.menders.push_back({"schedule step", codegen::to_string({whole[i]}),
                                    fmt::format("PLUGRAD_OPTIMISATIONS=\"{}: {}\"", planned,
                                                codegen::to_string(without))});
    }
    if (is_right(nullptr, true)) verdict_.menders.push_back({"schedule", "all of it", "NOOPT=1"});
  }

  const std::vector<std::string> simplifying_ = engine::simplifying_rules();
  const KernelCase& case_;
  runtime::Device &device_, &reference_;
  KernelLines plain_;
  HostMemory truth_;
  std::vector<HostMemory> variants_;
  KernelVerdict verdict_;
  mutable codegen::KernelSchedule schedule_;
};

}  // namespace

std::optional<KernelVerdict> bisect_kernel(const KernelCase& kernel, runtime::Device& device,
                                           runtime::Device& reference) {
  return Bisection(kernel, device, reference).run();
}

}  // namespace plugrad::tools
