// Runs one schedule search: a TimingHelper times and checks the beam's candidates; results are
// stored.
#include "tuning/kernel_schedule.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "base/binding.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/trace/trace.h"
#include "codegen/search/search.h"
#include "tuning/helper/check_plan.h"
#include "tuning/helper/timing_helper.h"
#include "tuning/schedule_overrides.h"

namespace plugrad::tuning {
namespace {

using codegen::KernelSchedule;

constexpr double kReferenceIterations =
    1 << 26;                             // of the unoptimised kernel: a few tenths of a second
constexpr double kFewIterations = 1024;  // fewer have nothing to gain
constexpr double kLongLaunch = 30;       // seconds; upper limit, once a launch was timed
constexpr uint32_t kMostLosses = 8;      // lost helpers in one search

/// The schedules that this process has measured, kept while there is a trace.
class Measured {
 public:
  static Measured& instance() {
    static auto* const one = new Measured;
    return *one;
  }
  void add(const KernelAst& ast, const runtime::Device& device, const KernelSchedule& list,
           double seconds) {
    if (!tracing() || !std::isfinite(seconds)) return;
    const std::lock_guard lock(mutex_);
    known_[key(ast, device)].push_back({list, seconds});
  }
  std::vector<MeasuredSchedule> of(const KernelAst& ast, const runtime::Device& device) {
    const std::lock_guard lock(mutex_);
    const auto at = known_.find(key(ast, device));
    return at == known_.end() ? std::vector<MeasuredSchedule>() : at->second;
  }

 private:
  using Key = std::tuple<uint64_t, uint64_t, std::string>;
  static Key key(const KernelAst& ast, const runtime::Device& device) {
    return {ast.hash[0], ast.hash[1], device.name()};
  }
  std::mutex mutex_;
  std::map<Key, std::vector<MeasuredSchedule>> known_;
};

double now_seconds() {
  return static_cast<double>(monotonic_ns()) * 1e-9;
}

std::string shown_time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6)
                        : fmt::format("{:.3f} ms", seconds * 1e3);
}

// A line that is redrawn until the search ends.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name)
      : name_(std::move(name)), shows_(isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shows_ && !text_.empty()) debug_write("\r\033[K");
  }
  void update(const codegen::BeamProgress& p) {
    text_ = fmt::format("BEAM {}: {} tried, best {}, {:.2f}x", as_shown(name_), p.tried,
                        shown_time(p.best_seconds), p.first_seconds / p.best_seconds);
    if (shows_) debug_write(fmt::format("\r\033[K{}, {:.0f} s left", text_, p.seconds_left));
  }
  void finish(const codegen::BeamResult& result) {
    if (shows_) debug_write("\r\033[K");
    shows_ = false;
    if (!debugging(1)) return;
    debug_write(fmt::format("BEAM {}: {} tried, {} -> {}, {:.2f}x: {}\n", as_shown(name_),
                            result.tried, shown_time(result.first_seconds),
                            shown_time(result.seconds), result.first_seconds / result.seconds,
                            codegen::to_string(result.list)));
  }

 private:
  std::string name_, text_;
  bool shows_;
};

class Search {
 public:
  Search(const KernelAst& ast, runtime::Device& device, const codegen::Options& options,
         ScheduleRecord key)
      : ast_(ast),
        device_(device),
        options_(options),
        key_(std::move(key)),
        seconds_(settings().beam_seconds),
        measurer_(device, {kLongLaunch, std::clamp(2 * seconds_, 3.0, 10.0)}),
        reference_(reference_of(ast, kReferenceIterations)),
        tolerance_(tolerance_of(ast) + (options.tf32 ? 0x1p-9 : 0)) {
    measurer_.set_params(params_of(ast));
    codegen::Options plain = options;
    plain.no_opt = true;
    reference_code_ = codegen::generate(reference_.graph, reference_.sink, device.caps(), plain);
    heuristic_code_ = codegen::generate(ast.graph, ast.sink, device.caps(), options);
  }

  KernelSchedule run() {
    ProgressLine line(codegen::describe(ast_.graph, ast_.sink).colored_name);
    codegen::BeamOptions beam;
    beam.width = static_cast<uint32_t>(settings().beam);
    beam.seconds = seconds_;
    beam.batch = std::max(8u, 2 * beam.width);
    beam.seeds = seeds();
    beam.now = now_seconds;
    beam.measure = [&](auto kernels) { return measure(kernels); };
    beam.accept = [&](const codegen::Timed& timed) { return accept(timed); };
    beam.report = [&](const codegen::BeamProgress& p) {
      first_seconds_ = p.first_seconds;
      tried_ = p.tried;
      measurer_.set_launch_limit(std::clamp(50 * p.best_seconds, 3.0, kLongLaunch));
      line.update(p);
    };
    device_.synchronize();
    const codegen::BeamResult result =
        codegen::beam_search(ast_.graph, ast_.sink, device_.caps(), options_, beam);
    line.finish(result);
    keep(result.list, result.seconds, result.first_seconds, beam.width);
    return result.list;
  }

 private:
  // Schedules found for similar shapes; the beam checks whether they are legal.
  std::vector<KernelSchedule> seeds() {
    std::vector<KernelSchedule> out;
    for (const ScheduleRecord& record : schedule_database().near(key_, 6)) {
      try {
        out.push_back(codegen::parse_schedule(record.list));
      } catch (const Error&) {  // written by a version with other schedule steps
      }
    }
    return out;
  }

  std::vector<double> measure(std::span<const codegen::KernelCode* const> kernels) {
    poll_interruption();
    TimeSpec spec;
    spec.contract = options_.contract;
    spec.seconds = std::min(1.0, std::max(0.05, seconds_ / 10));
    const auto timings = measurer_.time(kernels, spec);
    std::vector<double> seconds;
    for (size_t i = 0; i < timings.size(); ++i) {
      seconds.push_back(timings[i].seconds);
      Measured::instance().add(ast_, device_, kernels[i]->schedule, timings[i].seconds);
      if (!timings[i].problem.empty() && (timings[i].is_dangerous || debugging(2)))
        log_warning("[search] {} on {}: {} is not used: {}", kernels[i]->name, device_.name(),
                    codegen::to_string(kernels[i]->schedule), timings[i].problem);
    }
    if (measurer_.losses() > kMostLosses)
      fail(ErrorKind::Device, "{} of its kernels crashed or did not end", measurer_.losses());
    return seconds;
  }

  bool accept(const codegen::Timed& timed) {
    const CheckSpec spec{options_.contract, reference_.is_sample, tolerance_};
    const std::string problem = measurer_.check(timed.code, reference_code_, heuristic_code_, spec);
    if (problem.empty()) {
      keep(timed.list, timed.seconds, first_seconds_, 0);
      return true;
    }
    log_warning(
        "[search] {} on {}: {} gives other values than the kernel without optimisations and is not "
        "used: {}",
        timed.code.name, device_.name(), codegen::to_string(timed.list), problem);
    return false;
  }

  // Width 0 marks an unfinished search.
  void keep(const KernelSchedule& list, double seconds, double first_seconds, uint32_t width) {
    if (!std::isfinite(seconds) || !std::isfinite(first_seconds)) return;
    ScheduleRecord record = key_;
    record.list = codegen::to_string(list);
    record.seconds = seconds;
    record.first_seconds = first_seconds;
    record.width = width;
    record.tried = tried_;
    schedule_database().add(record);
  }

  const KernelAst& ast_;
  runtime::Device& device_;
  const codegen::Options options_;
  const ScheduleRecord key_;
  const double seconds_;
  TimingHelper measurer_;
  ReferenceAst reference_;
  double tolerance_;
  codegen::KernelCode reference_code_, heuristic_code_;
  double first_seconds_ = std::numeric_limits<double>::infinity();
  uint32_t tried_ = 0;
};

// The record's schedule if it is legal for the kernel; otherwise one warning for the process.
std::optional<KernelSchedule> usable(const ScheduleRecord& record, const KernelAst& ast,
                                     runtime::Device& device, const codegen::Options& options) {
  static std::atomic<bool> was_warned{false};
  try {
    KernelSchedule list = codegen::parse_schedule(record.list);
    codegen::SearchSpace(ast.graph, ast.sink, device.caps(), options).require_legal(list);
    return list;
  } catch (const Error& e) {
    if (!was_warned.exchange(true))
      log_warning(
          "search database {}: the list \"{}\" is not used, it is not legal for the kernel: {}",
          schedule_database().path(), record.list, e.what());
    return std::nullopt;
  }
}

void require_budget() {
  const Settings& now = settings();
  require(now.beam_seconds > 0 && std::isfinite(now.beam_seconds),
          "[search] beam_seconds is {}: the search for a kernel takes a time above 0; beam = 0 "
          "switches it off",
          now.beam_seconds);
  require(now.beam <= 1024, "[search] beam is {}: at most 1024", now.beam);
}

}  // namespace

std::string device_facts_key(const pgr_device_caps& caps) {
  return fmt::format(
      "threads {} lanes {} registers {} subgroup {} local {} of {}{} items {} private {} caches {} "
      "copies {}",
      caps.threads, caps.vector_lanes[PGR_DTYPE_F32], caps.vector_registers, caps.subgroup_size,
      caps.local_bytes, caps.core_local_bytes, caps.local_in_cache ? " in cache" : "",
      caps.max_local_total, caps.private_bytes, fmt::join(caps.cache_bytes, "/"),
      caps.async_copy_bytes);
}

ScheduleRecord schedule_key(const KernelAst& ast, runtime::Device& device,
                            const codegen::Options& options) {
  ScheduleRecord key;
  key.version = codegen::kSearchVersion;
  key.device = fmt::format("{} {} {}", device.plugin_name(), device.info().arch,
                           device_facts_key(device.caps()));
  key.compiler = hash128(as_bytes(device.compiler_identity())).hex();
  key.kernel = fmt::format("{:016x}{:016x}{}{}{}", ast.hash[0], ast.hash[1],
                           options.fast_math ? "-fast" : "", options.contract ? "" : "-strict",
                           options.tf32 ? "-tf32" : "");
  key.family = family_of(ast);
  key.sizes = loop_sizes(ast);
  return key;
}

std::optional<KernelSchedule> tuned_schedule(const KernelAst& ast, runtime::Device& device,
                                             const codegen::Options& options) {
  if (auto given = schedule_override(ast, device, options)) return given;
  if (options.no_opt || settings().deterministic) return std::nullopt;
  const bool searches = settings().beam > 0;
  if (searches)
    require_budget();
  else if (schedule_database().is_empty())
    return std::nullopt;
  const trace::Scope span(trace::Category::Search, "search");
  ScheduleRecord key = schedule_key(ast, device, options);
  const auto known = schedule_database().find(key);
  if (known && (!searches || known->width >= static_cast<uint32_t>(settings().beam)))
    if (auto list = usable(*known, ast, device, options)) {
      Measured::instance().add(ast, device, *list, known->seconds);
      return list;
    }
  if (!searches || iterations_of(ast) < kFewIterations) return std::nullopt;
  try {
    return Search(ast, device, options, std::move(key)).run();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Device) throw;
    static std::atomic<bool> was_warned{false};
    if (!was_warned.exchange(true))
      log_warning("the search for {} was given up, the heuristic's kernel is used: {}",
                  codegen::describe(ast.graph, ast.sink).name, e.what());
    const auto found = schedule_database().find(schedule_key(ast, device, options));
    return found ? usable(*found, ast, device, options) : std::nullopt;
  }
}

void note_measured(const KernelAst& ast, const runtime::Device& device, const KernelSchedule& list,
                   double seconds) {
  Measured::instance().add(ast, device, list, seconds);
}

std::vector<MeasuredSchedule> measured_schedules(const KernelAst& ast,
                                                 const runtime::Device& device) {
  return Measured::instance().of(ast, device);
}

}  // namespace plugrad::tuning
