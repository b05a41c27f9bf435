#include "trace/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace plugrad::tools::trace {
namespace {

constexpr size_t kOperationsShown = 4;

bool is_index(int32_t index, size_t size) {
  return index >= 0 && static_cast<size_t>(index) < size;
}

int32_t device_of(const Trace& trace, int32_t track) {
  return is_index(track, trace.tracks.size()) ? trace.tracks[static_cast<size_t>(track)].device
                                              : kNone;
}

int32_t device_of_launch(const Trace& trace, size_t i) {
  const int32_t device = device_of(trace, trace.launches.track[i]);
  const int32_t kernel = trace.launches.kernel[i];
  if (device != kNone || !is_index(kernel, trace.kernels.size())) return device;
  return trace.kernels[static_cast<size_t>(kernel)].device;
}

Interval interval(const Events& events, size_t i) {
  return {events.start[i], events.start[i] + events.duration[i]};
}

void add_all(Intervals& to, const Intervals& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// The first start and the last end of all events; the recording's own where they are known.
void find_window(const Trace& trace, Summary& summary) {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const Events* events :
       {static_cast<const Events*>(&trace.launches), static_cast<const Events*>(&trace.copies),
        static_cast<const Events*>(&trace.waits), static_cast<const Events*>(&trace.collectives),
        static_cast<const Events*>(&trace.spans)})
    for (size_t i = 0; i < events->size(); ++i) {
      begin = std::min(begin, events->start[i]);
      end = std::max(end, events->start[i] + events->duration[i]);
    }
  if (begin > end) begin = end = 0;
  const bool all_kept = trace.end && trace.end->dropped == 0;
  if (all_kept) begin = std::min<int64_t>(begin, 0);
  if (trace.end && trace.end->time_ns) end = std::max(end, *trace.end->time_ns);
  summary.begin_ns = begin;
  summary.end_ns = end;
}

// Busy times of each device, of launches and copies.
struct Busy {
  std::vector<Intervals> launches, copies;
};

Busy find_busy(const Trace& trace, Summary& summary) {
  Busy busy{std::vector<Intervals>(trace.devices.size()),
            std::vector<Intervals>(trace.devices.size())};
  for (size_t i = 0; i < trace.launches.size(); ++i) {
    const int32_t device = device_of_launch(trace, i);
    if (!is_index(device, trace.devices.size())) continue;
    const auto d = static_cast<size_t>(device);
    busy.launches[d].push_back(interval(trace.launches, i));
    summary.devices[d].launches += 1;
    summary.devices[d].launch_ns += trace.launches.duration[i];
    summary.devices[d].queued_ns += std::max<int64_t>(trace.launches.submit[i], 0);
  }
  for (size_t i = 0; i < trace.copies.size(); ++i) {
    const int32_t device = device_of(trace, trace.copies.track[i]);
    if (!is_index(device, trace.devices.size())) continue;
    const auto d = static_cast<size_t>(device);
    busy.copies[d].push_back(interval(trace.copies, i));
    summary.devices[d].copies += 1;
    summary.devices[d].copy_ns += trace.copies.duration[i];
  }
  return busy;
}

// Fills the devices' times; returns when any device works.
Intervals sum_up_devices(const Trace& trace, Summary& summary) {
  Busy busy = find_busy(trace, summary);
  Intervals any;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    DeviceSummary& device = summary.devices[d];
    const Intervals launches = united(std::move(busy.launches[d]));
    const Intervals copies = united(std::move(busy.copies[d]));
    Intervals both = launches;
    add_all(both, copies);
    both = united(std::move(both));
    device.busy_ns = length(both);
    device.idle_ns = summary.wall_ns() - device.busy_ns;
    device.overlap_ns = length(launches) + length(copies) - device.busy_ns;
    add_all(any, both);
  }
  for (size_t i = 0; i < trace.memory.size(); ++i) {
    if (!is_index(trace.memory.device[i], trace.devices.size())) continue;
    DeviceSummary& device = summary.devices[static_cast<size_t>(trace.memory.device[i])];
    if (trace.memory.used[i] > device.memory_peak_bytes) {
      device.memory_peak_bytes = trace.memory.used[i];
      device.memory_peak_at_ns = trace.memory.start[i];
    }
    device.cached_peak_bytes = std::max(device.cached_peak_bytes, trace.memory.cached[i]);
  }
  return united(std::move(any));
}

Part part_of(Category category) {
  switch (category) {
    case Category::Compile:
      return Part::Compile;
    case Category::Codegen:
      return Part::Codegen;
    case Category::Plan:
      return Part::Plan;
    case Category::Search:
      return Part::Search;
    case Category::Run:
    case Category::Pool:
    case Category::Jit:
      return Part::Engine;
    case Category::Stage:  // lies within planning or code generation
    case Category::Other:
      break;
  }
  return Part::Program;
}

// Each part gets the time that no earlier part has.
void share_out(const Trace& trace, const Intervals& device_works, Summary& summary) {
  std::array<Intervals, kPartCount> intervals;
  intervals[static_cast<size_t>(Part::Device)] = device_works;
  std::set<std::string_view> kernels;
  for (const Kernel& kernel : trace.kernels) kernels.insert(kernel.name);
  // Other spans of compilation contain those of several kernels, and some of planning only write
  // the trace.
  std::vector<bool> names_kernel, names_plan;
  for (const std::string& name : trace.names) {
    names_kernel.push_back(kernels.contains(name));
    names_plan.push_back(!name.ends_with(" for the trace"));
  }
  const auto counts = [&](size_t i) {
    const Category category = trace.spans.category[i];
    if (category != Category::Compile && category != Category::Plan) return true;
    const auto name = static_cast<size_t>(trace.spans.name[i]);
    const auto& names = category == Category::Compile ? names_kernel : names_plan;
    return is_index(trace.spans.name[i], names.size()) && names[name];
  };
  for (size_t i = 0; i < trace.spans.size(); ++i) {
    SpanSummary& span = summary.spans[static_cast<size_t>(trace.spans.category[i])];
    if (counts(i)) {
      const bool is_kernel = trace.spans.category[i] == Category::Compile;
      (is_kernel && trace.spans.value[i] == 2 ? span.from_memory : span.count) += 1;
      span.total_ns += trace.spans.duration[i];
      if (trace.spans.value[i] == 1) span.from_cache += 1;
    }
    intervals[static_cast<size_t>(part_of(trace.spans.category[i]))].push_back(
        interval(trace.spans, i));
  }
  for (size_t i = 0; i < trace.waits.size(); ++i) {
    const bool is_for_device = trace.waits.device[i] != kNone;
    const Part part = is_for_device ? Part::Wait : Part::Collective;
    intervals[static_cast<size_t>(part)].push_back(interval(trace.waits, i));
    if (!is_for_device) continue;
    summary.waits += 1;
    summary.wait_ns += trace.waits.duration[i];
  }
  intervals[static_cast<size_t>(Part::Program)] = {{summary.begin_ns, summary.end_ns}};
  Intervals taken;
  int64_t taken_ns = 0;
  for (size_t part = 0; part < kPartCount; ++part) {
    add_all(taken, intervals[part]);
    taken = united(std::move(taken));
    const int64_t now = length(taken);
    summary.parts[part] = now - taken_ns;
    taken_ns = now;
  }
}

void judge(const Trace& trace, KernelSummary& row) {
  if (!is_index(row.kernel, trace.kernels.size()) || row.total_ns <= 0) return;
  const Kernel& kernel = trace.kernels[static_cast<size_t>(row.kernel)];
  const double mean_ns = row.mean_ns();
  row.work = kernel.work;
  row.gflops = kernel.flops / mean_ns;
  row.gbps = kernel.bytes / mean_ns;
  if (!is_index(row.device, trace.devices.size())) return;
  const Device& device = trace.devices[static_cast<size_t>(row.device)];
  const double compute_ns = device.peak_gflops > 0 ? kernel.flops / device.peak_gflops : 0;
  const double memory_ns = device.peak_gbps > 0 ? kernel.bytes / device.peak_gbps : 0;
  const double least_ns = std::max(compute_ns, memory_ns);
  row.of_peak = least_ns / mean_ns;
  // Most of the time is the launch itself.
  if (device.launch_ns > least_ns && 2 * device.launch_ns > mean_ns)
    row.bound = Bound::Launch;
  else if (least_ns > 0)
    row.bound = compute_ns >= memory_ns ? Bound::Compute : Bound::Memory;
}

void sum_up_kernels(const Trace& trace, Summary& summary) {
  std::map<std::pair<int32_t, int32_t>, KernelSummary> rows;  // by kernel and device
  int64_t all_ns = 0;
  for (size_t i = 0; i < trace.launches.size(); ++i) {
    const int32_t device = device_of_launch(trace, i), kernel = trace.launches.kernel[i];
    const int64_t time = trace.launches.duration[i];
    KernelSummary& row = rows[{kernel, device}];
    row.kernel = kernel;
    row.device = device;
    row.shortest_ns = row.launches ? std::min(row.shortest_ns, time) : time;
    row.longest_ns = std::max(row.longest_ns, time);
    row.launches += 1;
    row.total_ns += time;
    all_ns += time;
  }
  for (auto& [key, row] : rows) {
    row.share = all_ns ? static_cast<double>(row.total_ns) / static_cast<double>(all_ns) : 0;
    judge(trace, row);
    summary.kernels.push_back(row);
  }
  std::ranges::stable_sort(summary.kernels, std::greater{}, &KernelSummary::total_ns);
}

void sum_up_copies(const Trace& trace, Summary& summary) {
  std::map<std::pair<int32_t, Direction>, CopySummary> rows;
  for (size_t i = 0; i < trace.copies.size(); ++i) {
    const int32_t device = device_of(trace, trace.copies.track[i]);
    CopySummary& row = rows[{device, trace.copies.direction[i]}];
    row.device = device;
    row.direction = trace.copies.direction[i];
    row.count += 1;
    row.bytes += trace.copies.bytes[i];
    row.total_ns += trace.copies.duration[i];
  }
  for (const auto& [key, row] : rows) summary.copies.push_back(row);
}

void sum_up_collectives(const Trace& trace, Summary& summary) {
  const Collectives& all = trace.collectives;
  std::map<CollectiveKind, CollectiveSummary> rows;
  for (size_t i = 0; i < all.size(); ++i) {
    CollectiveSummary& row = rows[all.kind[i]];
    row.kind = all.kind[i];
    row.count += 1;
    row.values += all.values[i];
    row.bytes += all.bytes[i];
    row.total_ns += all.duration[i];
    row.waited_ns += all.waited[i];
  }
  for (const auto& [kind, row] : rows) summary.collectives.push_back(row);
}

void sum_up_causes(const Trace& trace, Summary& summary) {
  for (const Miss& miss : trace.misses) {
    auto row = std::ranges::find(summary.causes, miss.cause, &CauseSummary::cause);
    if (row == summary.causes.end())
      row = summary.causes.insert(row, {miss.cause, miss.text, miss.operation});
    ++row->plans;
    row->kernels += miss.kernels;
    row->compile_ns += miss.compile_ns;
  }
  std::ranges::stable_sort(summary.causes, std::greater(), &CauseSummary::kernels);
}

}  // namespace

Intervals united(Intervals intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  size_t kept = 0;
  for (const Interval& next : intervals) {
    if (kept > 0 && next.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    else
      intervals[kept++] = next;
  }
  intervals.resize(kept);
  return intervals;
}

int64_t length(const Intervals& united_intervals) {
  int64_t sum = 0;
  for (const Interval& one : united_intervals) sum += one.end - one.begin;
  return sum;
}

const char* to_string(Bound bound) {
  constexpr const char* kNames[] = {"unknown", "compute", "memory", "launch"};
  return kNames[static_cast<size_t>(bound)];
}

const char* to_string(Direction direction) {
  constexpr const char* kNames[] = {"host to device", "device to host", "on the device", "fill"};
  return kNames[static_cast<size_t>(direction)];
}

Summary summarise(const Trace& trace) {
  Summary summary;
  summary.devices.resize(trace.devices.size());
  find_window(trace, summary);
  share_out(trace, sum_up_devices(trace, summary), summary);
  sum_up_kernels(trace, summary);
  sum_up_copies(trace, summary);
  sum_up_collectives(trace, summary);
  sum_up_causes(trace, summary);
  return summary;
}

std::string operations_text(const Trace& trace, int32_t kernel) {
  if (!is_index(kernel, trace.kernels.size())) return "";
  std::string text;
  std::set<std::string> seen;
  for (const int32_t index : trace.kernels[static_cast<size_t>(kernel)].operations) {
    const std::string& name = trace.operations[static_cast<size_t>(index)].name;
    if (!seen.insert(name).second) continue;
    if (seen.size() > kOperationsShown) return text + ", …";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

const Operation* first_located(const Trace& trace, int32_t kernel) {
  if (!is_index(kernel, trace.kernels.size())) return nullptr;
  for (const int32_t index : trace.kernels[static_cast<size_t>(kernel)].operations) {
    const Operation& operation = trace.operations[static_cast<size_t>(index)];
    if (!operation.file.empty()) return &operation;
  }
  return nullptr;
}

std::string kernel_name(const Trace& trace, int32_t kernel) {
  return is_index(kernel, trace.kernels.size()) ? trace.kernels[static_cast<size_t>(kernel)].name
                                                : "unknown kernel";
}

std::string device_name(const Trace& trace, int32_t device) {
  return is_index(device, trace.devices.size()) ? trace.devices[static_cast<size_t>(device)].name
                                                : "unknown device";
}

}  // namespace plugrad::tools::trace
