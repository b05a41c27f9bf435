// Reads the plans of a trace file that have their recorded graph, and the times of their kernels.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/log.h"
#include "scale/program.h"
#include "trace/trace.h"

namespace plugrad::tools::scale {
namespace {

using PlanJson = nlohmann::json;

struct Launch {
  int64_t start = 0, duration = 0, step = 0, kernel = 0;
};

template <class T>
double median(std::vector<T> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return static_cast<double>(*middle);
}

using Key = std::pair<double, double>;  // operations, bytes

/// The launches of one plan, in runs: steps ascend within a run.
Measured measured_of(std::vector<Launch> launches, const std::unordered_map<int64_t, Key>& kernels,
                     std::string device) {
  std::ranges::stable_sort(launches, {}, &Launch::start);
  std::map<Key, std::vector<int64_t>> durations;
  std::vector<int64_t> between;  // kernels of consecutive runs
  int64_t run_start = 0, busy = 0, last_step = INT64_MAX;
  for (const Launch& launch : launches) {
    if (launch.step <= last_step) {
      if (last_step != INT64_MAX) between.push_back(launch.start - run_start - busy);
      run_start = launch.start;
      busy = 0;
    }
    last_step = launch.step;
    busy += launch.duration;
    if (const auto kernel = kernels.find(launch.kernel); kernel != kernels.end())
      durations[kernel->second].push_back(launch.duration);
  }
  Measured measured{.device = std::move(device)};
  for (auto& [key, all] : durations) measured.kernel_seconds[key] = median(std::move(all)) * 1e-9;
  measured.host_seconds = std::max(0.0, median(std::move(between)) * 1e-9);
  return measured;
}

class Reader {
 public:
  void add(std::string_view text) {
    for (const std::string_view large : {R"({"t":"rule")", R"({"t":"stage")"})
      if (text.starts_with(large)) return;
    const PlanJson line = PlanJson::parse(text);
    const auto is = [&](std::string_view type) { return line.at("t") == type; };
    if (is("plan"))
      add_plan(line);
    else if (is("device"))
      hardware_[line.at("id")] = line.at("hardware");
    else if (is("kernel"))
      kernels_[line.at("id")] = {line.at("flops"), line.at("bytes")};
    else if (is("track"))
      device_of_track_[line.at("id")] = line.at("device");
    else if (is("events") && line.at("kind") == "launch")
      add_launches(line.at("columns"));
    has_end_ |= is("end");
  }

  bool has_end() const { return has_end_; }

  std::vector<TracedPlan> take() {
    for (TracedPlan& plan : plans_)
      if (const auto found = launches_.find(plan.id); found != launches_.end())
        plan.measured = measured_of(std::move(found->second), kernels_,
                                    hardware_[device_of_track_[tracks_[plan.id]]]);
    return std::move(plans_);
  }

 private:
  void add_plan(const PlanJson& line) {
    if (!line.contains("recorded")) return;
    plans_.push_back({line.at("id"), line.at("recorded"), line.at("replaces"), {}});
  }

  void add_launches(const PlanJson& columns) {
    const PlanJson& plans = columns.at("plan");
    int64_t start = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
      start += columns.at("start").at(i).get<int64_t>();
      const int64_t plan = plans[i], step = columns.at("step").at(i);
      if (plan == 0 || step < 0 || step > 1 << 24) continue;
      launches_[plan].push_back(
          {start, columns.at("duration").at(i), step, columns.at("kernel").at(i)});
      tracks_.emplace(plan, columns.at("track").at(i));
    }
  }

  std::vector<TracedPlan> plans_;
  std::unordered_map<int64_t, std::vector<Launch>> launches_;
  std::unordered_map<int64_t, Key> kernels_;
  std::unordered_map<int64_t, int64_t> tracks_, device_of_track_;
  std::unordered_map<int64_t, std::string> hardware_;
  bool has_end_ = false;
};

/// Why the lines of a trace, of this number, have no recorded graph.
std::string reason_for_none(const Reader& reader, trace::Ending ending, int64_t number) {
  if (ending == trace::Ending::Damaged) return fmt::format(": it is damaged after line {}", number);
  if (ending == trace::Ending::TooLarge)
    return fmt::format(": it is too large after line {}", number);
  if (ending == trace::Ending::CutOff) return fmt::format(": it is cut off after line {}", number);
  if (!reader.has_end()) return ": it has no end, since its program still runs or was stopped";
  return ": no plan was made while it was recorded, or an older version of plugrad recorded it";
}

}  // namespace

std::vector<TracedPlan> read_plans(const std::string& path) {
  const std::vector<std::byte> file = trace::read_trace_file(path);
  const trace::Limits limits;
  trace::LineReader lines(file, limits);
  Reader reader;
  int64_t number = 0;
  while (const auto line = lines.next()) {
    if (++number == 1) trace::parse_header(*line, path);
    try {
      require(trace::fits(*line, limits), "it has too many values");
      reader.add(*line);
    } catch (const std::exception& error) {
      fail(ErrorKind::User, "[plan-scale] line {} of {} is no line of a trace: {}", number, path,
           error.what());
    }
  }
  require(number > 0, "[trace] {} is not a trace, or was cut off before its first line", path);
  std::vector<TracedPlan> plans = reader.take();
  require(!plans.empty(),
          "[plan-scale] {} has no recorded graph{}; record one step of training, on one device: "
          "PLUGRAD_TRACE={} ./program",
          path, reason_for_none(reader, lines.ending(), number), path);
  if (const std::string why = describe(lines.ending(), static_cast<uint64_t>(number), path);
      !why.empty())
    log_warning("{}", why);
  return plans;
}

}  // namespace plugrad::tools::scale
