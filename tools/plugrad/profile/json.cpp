#include <algorithm>

#include "profile/report.h"

namespace plugrad::tools {
namespace {

using namespace trace;
using Json = nlohmann::ordered_json;

double seconds(int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

Json or_null(double value) {
  return value > 0 ? Json(value) : Json();
}

Json parts_json(const Summary& summary) {
  constexpr const char* kNames[kPartCount] = {
      "device_seconds",  "collective_wait_seconds", "search_seconds",
      "codegen_seconds", "compile_seconds",         "plan_seconds",
      "wait_seconds",    "engine_seconds",          "program_seconds"};
  Json json;
  for (size_t i = 0; i < kPartCount; ++i) json[kNames[i]] = seconds(summary.parts[i]);
  return json;
}

Json counts_json(const Summary& summary) {
  const SpanSummary& plans = summary.of(Category::Plan);
  return {{"plans", plans.count - plans.from_cache},
          {"plan_cache_hits", plans.from_cache},
          {"generated", summary.of(Category::Codegen).count},
          {"compiled", summary.of(Category::Compile).count},
          {"compiled_from_cache", summary.of(Category::Compile).from_cache},
          {"kernels_from_memory", summary.of(Category::Compile).from_memory},
          {"waits", summary.waits}};
}

Json device_json(const Device& device, const DeviceSummary& s) {
  return {{"name", device.name},
          {"model", device.hardware},
          {"arch", device.arch},
          {"clock", device.own_clock ? "device" : "host"},
          {"peak_gflops", or_null(device.peak_gflops)},
          {"peak_gbps", or_null(device.peak_gbps)},
          {"launch_us", or_null(device.launch_ns * 1e-3)},
          {"busy_seconds", seconds(s.busy_ns)},
          {"idle_seconds", seconds(s.idle_ns)},
          {"launches", s.launches},
          {"launch_seconds", seconds(s.launch_ns)},
          {"copies", s.copies},
          {"copy_seconds", seconds(s.copy_ns)},
          {"overlap_seconds", seconds(s.overlap_ns)},
          {"queued_seconds", seconds(s.queued_ns)},
          {"memory_peak_bytes", s.memory_peak_bytes},
          {"memory_peak_at_seconds", seconds(s.memory_peak_at_ns)},
          {"cached_peak_bytes", s.cached_peak_bytes}};
}

Json kernel_json(const Trace& trace, const KernelSummary& row) {
  Json json = {{"name", kernel_name(trace, row.kernel)},
               {"device", device_name(trace, row.device)},
               {"launches", row.launches},
               {"seconds", seconds(row.total_ns)},
               {"share", row.share},
               {"mean_us", row.mean_ns() * 1e-3},
               {"shortest_us", seconds(row.shortest_ns) * 1e6},
               {"longest_us", seconds(row.longest_ns) * 1e6},
               {"work", or_null(row.work)},
               {"gflops", or_null(row.gflops)},
               {"gbps", or_null(row.gbps)},
               {"of_peak", or_null(row.of_peak)},
               {"bound", to_string(row.bound)},
               {"operations", Json::array()}};
  if (row.kernel == kNone) return json;
  const Kernel& kernel = trace.kernels[static_cast<size_t>(row.kernel)];
  json["schedule"] = kernel.schedule;
  json["predicted_us"] = or_null(kernel.predicted_ns * 1e-3);
  for (const int32_t index : kernel.operations) {
    const Operation& operation = trace.operations[static_cast<size_t>(index)];
    Json entry = {{"name", operation.name}, {"file", nullptr}, {"line", nullptr}};
    if (!operation.file.empty()) {
      entry["file"] = operation.file;
      entry["line"] = operation.line;
    }
    json["operations"].push_back(std::move(entry));
  }
  return json;
}

Json copy_json(const Trace& trace, const CopySummary& row) {
  return {{"device", device_name(trace, row.device)},
          {"direction", to_string(row.direction)},
          {"count", row.count},
          {"bytes", row.bytes},
          {"seconds", seconds(row.total_ns)}};
}

Json collective_json(const CollectiveSummary& row) {
  return {{"kind", name_of(row.kind)},
          {"count", row.count},
          {"values", row.values},
          {"bytes", row.bytes},
          {"seconds", seconds(row.total_ns)},
          {"waited_seconds", seconds(row.waited_ns)}};
}

Json cause_json(const Trace& trace, const CauseSummary& row) {
  Json json = {{"cause", row.cause},     {"plans", row.plans},
               {"kernels", row.kernels}, {"seconds", seconds(row.compile_ns)},
               {"first", row.first},     {"file", nullptr},
               {"line", nullptr}};
  if (row.operation == kNone) return json;
  const Operation& operation = trace.operations[static_cast<size_t>(row.operation)];
  if (operation.file.empty()) return json;
  json["file"] = operation.file;
  json["line"] = operation.line;
  return json;
}

Json finding_json(const Finding& finding) {
  return {{"layer", finding.layer},
          {"device", finding.device},
          {"kernel", finding.kernel.empty() ? Json() : Json(finding.kernel)},
          {"differs", finding.is_difference},
          {"text", finding.text}};
}

}  // namespace

Json profile_json(const Trace& trace, const Summary& summary, size_t top) {
  Json document = {{"program", trace.header.program},
                   {"cpu", trace.header.cpu},
                   {"rank", trace.header.rank},
                   {"ranks", trace.header.ranks},
                   {"complete", trace.warning.empty()},
                   {"dropped", trace.end ? trace.end->dropped : 0},
                   {"seconds", seconds(summary.wall_ns())},
                   {"parts", parts_json(summary)},
                   {"counts", counts_json(summary)},
                   {"work", {{"executed", trace.work.executed}, {"graph", trace.work.graph}}},
                   {"devices", Json::array()},
                   {"kernels", Json::array()},
                   {"causes", Json::array()},
                   {"copies", Json::array()},
                   {"collectives", Json::array()},
                   {"reports", Json::array()}};
  for (size_t d = 0; d < trace.devices.size(); ++d)
    document["devices"].push_back(device_json(trace.devices[d], summary.devices[d]));
  for (size_t i = 0; i < std::min(top, summary.kernels.size()); ++i)
    document["kernels"].push_back(kernel_json(trace, summary.kernels[i]));
  for (const CauseSummary& row : summary.causes)
    document["causes"].push_back(cause_json(trace, row));
  for (const CopySummary& row : summary.copies) document["copies"].push_back(copy_json(trace, row));
  for (const CollectiveSummary& row : summary.collectives)
    document["collectives"].push_back(collective_json(row));
  for (const Finding& finding : trace.findings)
    document["reports"].push_back(finding_json(finding));
  return document;
}

Json compare_json(const Comparison& before, const Comparison& after) {
  const auto side = [](const Comparison& one) {
    return Json{{"trace", one.path},
                {"seconds", seconds(one.summary.wall_ns())},
                {"device_seconds", seconds(one.summary.of(Part::Device))}};
  };
  Json document = {{"before", side(before)}, {"after", side(after)}, {"kernels", Json::array()}};
  for (const KernelChange& change :
       compare(before.trace, before.summary, after.trace, after.summary))
    document["kernels"].push_back({{"name", change.name},
                                   {"operations", change.operations},
                                   {"source", change.source.empty() ? Json() : Json(change.source)},
                                   {"launches_before", change.before.launches},
                                   {"launches_after", change.after.launches},
                                   {"mean_us_before", or_null(change.before.mean_ns() * 1e-3)},
                                   {"mean_us_after", or_null(change.after.mean_ns() * 1e-3)},
                                   {"ratio", or_null(change.ratio())},
                                   {"added_seconds", change.added_ns() * 1e-9}});
  return document;
}

}  // namespace plugrad::tools
