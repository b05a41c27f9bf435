#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/escaping/sanitise_text.h"
#include "profile/report.h"

namespace plugrad::tools {
namespace {

using namespace trace;

constexpr size_t kNameWidth = 34;

double milliseconds(double ns) {
  return ns * 1e-6;
}

double mebibytes(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// A number, or "-" if it is not known.
std::string known(double value, const char* format) {
  return value > 0 ? fmt::format(fmt::runtime(format), value) : "-";
}

// The first `kNameWidth` characters; bytes of a cut UTF-8 character are dropped.
std::string shortened(const std::string& name) {
  if (name.size() <= kNameWidth) return name;
  size_t end = kNameWidth - 2;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "..";
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string place_of(const Operation& operation) {
  return fmt::format("{}:{}", file_name(operation.file), operation.line);
}

// "matmul, add (net.cpp:12)".
std::string origin(const Trace& trace, int32_t kernel) {
  std::string text = operations_text(trace, kernel);
  if (const Operation* at = first_located(trace, kernel))
    text += fmt::format("{}({})", text.empty() ? "" : " ", place_of(*at));
  return text;
}

std::string compile_note(const SpanSummary& compile) {
  return fmt::format(
      "{} compilations, {} from the disk cache; {} kernels were there already; {:.1f} ms over all "
      "threads",
      compile.count, compile.from_cache, compile.from_memory,
      milliseconds(static_cast<double>(compile.total_ns)));
}

std::string plan_note(const SpanSummary& plan) {
  return fmt::format("{} plans made, {} found in their cache", plan.count - plan.from_cache,
                     plan.from_cache);
}

std::string collectives_note(const Summary& summary) {
  int64_t count = 0, bytes = 0, waited_ns = 0;
  for (const CollectiveSummary& row : summary.collectives) {
    count += row.count;
    bytes += row.bytes;
    waited_ns += row.waited_ns;
  }
  return fmt::format("exposed communication; {} collectives of {:.3f} MiB, waits of {:.1f} ms",
                     count, mebibytes(bytes), milliseconds(static_cast<double>(waited_ns)));
}

std::string parts_text(const Summary& summary) {
  const struct {
    Part part;
    const char* name;
    std::string note;
  } rows[] = {
      {Part::Device, "devices work", ""},
      {Part::Collective, "wait for ranks", collectives_note(summary)},
      {Part::Search, "search schedules", ""},
      {Part::Codegen, "generate code",
       fmt::format("{} kernels", summary.of(Category::Codegen).count)},
      {Part::Compile, "compile", compile_note(summary.of(Category::Compile))},
      {Part::Plan, "plan", plan_note(summary.of(Category::Plan))},
      {Part::Wait, "wait for devices",
       fmt::format("{} waits; {:.1f} ms also while devices work", summary.waits,
                   milliseconds(static_cast<double>(summary.wait_ns)))},
      {Part::Engine, "engine", "host overhead: launches, replays, the thread pool"},
      {Part::Program, "program", "the rest"},
  };
  std::string text = fmt::format("{:<20}{:>12}{:>8}\n", "TIME", "ms", "%");
  for (const auto& row : rows) {
    const bool is_idle = summary.of(row.part) == 0 && row.part != Part::Device;
    if (is_idle) continue;
    std::string line = fmt::format("{:<20}{:>12.3f}{:>8.1f}  {}", row.name,
                                   milliseconds(static_cast<double>(summary.of(row.part))),
                                   percent(summary.of(row.part), summary.wall_ns()), row.note);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string devices_text(const Trace& trace, const Summary& summary) {
  if (trace.devices.empty()) return "";
  std::string text =
      fmt::format("\n{:<14}{:>8}{:>8}{:>10}{:>9}{:>12}{:>12}{:>10}  {}\n", "DEVICE", "busy %",
                  "idle %", "launches", "copies", "overlap ms", "queued us", "peak MiB", "clock");
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceSummary& s = summary.devices[d];
    const Device& device = trace.devices[d];
    const double queued =
        s.launches ? static_cast<double>(s.queued_ns) * 1e-3 / static_cast<double>(s.launches) : 0;
    const std::string clock = device.own_clock
                                  ? fmt::format("the device's, to {} ns", device.clock_error_ns)
                                  : "the host's";
    fmt::format_to(std::back_inserter(text),
                   "{:<14}{:>8.1f}{:>8.1f}{:>10}{:>9}{:>12.3f}{:>12.1f}{:>10.1f}  {}\n",
                   device.name, percent(s.busy_ns, summary.wall_ns()),
                   percent(s.idle_ns, summary.wall_ns()), s.launches, s.copies,
                   milliseconds(static_cast<double>(s.overlap_ns)), queued,
                   mebibytes(s.memory_peak_bytes), clock);
  }
  return text;
}

std::string kernels_text(const Trace& trace, const Summary& summary, size_t top) {
  if (summary.kernels.empty()) return "";
  const size_t shown = std::min(top, summary.kernels.size());
  std::string text = fmt::format("\n{:<{}}{:>12}{:>7}{:>10}{:>11}{:>11}{:>9}{:>8}{:>8}  {:<8}{}\n",
                                 "KERNEL", kNameWidth, "ms", "%", "launches", "us/launch", "work M",
                                 "GFLOP/s", "GB/s", "% peak", "bound", "from");
  for (size_t i = 0; i < shown; ++i) {
    const KernelSummary& row = summary.kernels[i];
    fmt::format_to(
        std::back_inserter(text),
        "{:<{}}{:>12.3f}{:>7.1f}{:>10}{:>11.2f}{:>11}{:>9}{:>8}{:>8}  {:<8}{}\n",
        shortened(kernel_name(trace, row.kernel)), kNameWidth,
        milliseconds(static_cast<double>(row.total_ns)), row.share * 100, row.launches,
        row.mean_ns() * 1e-3, known(row.work * 1e-6, "{:.3f}"), known(row.gflops, "{:.1f}"),
        known(row.gbps, "{:.1f}"), known(row.of_peak * 100, "{:.1f}"),
        row.bound == Bound::Unknown ? "-" : to_string(row.bound), origin(trace, row.kernel));
  }
  if (shown < summary.kernels.size())
    text += fmt::format("and {} more kernels: --top N shows N\n", summary.kernels.size() - shown);
  if (trace.work.graph > 0)
    text += fmt::format("work of all plans: {:.2f} of that of their graphs\n",
                        trace.work.executed / trace.work.graph);
  return text;
}

// Why kernels were looked up or compiled.
std::string causes_text(const Trace& trace, const Summary& summary) {
  if (summary.causes.empty()) return "";
  std::string text = fmt::format("\n{:<20}{:>9}{:>9}{:>12}  {}\n", "COMPILED FOR", "plans",
                                 "kernels", "ms", "first");
  for (const CauseSummary& row : summary.causes) {
    const Operation* const at =
        row.operation == kNone ? nullptr : &trace.operations[static_cast<size_t>(row.operation)];
    const std::string place = at && !at->file.empty() ? place_of(*at) : "";
    fmt::format_to(std::back_inserter(text), "{:<20}{:>9}{:>9}{:>12.3f}  {}{}{}\n", row.cause,
                   row.plans, row.kernels, milliseconds(static_cast<double>(row.compile_ns)), place,
                   place.empty() || row.first.empty() ? "" : ": ", row.first);
  }
  return text;
}

std::string copies_text(const Trace& trace, const Summary& summary) {
  if (summary.copies.empty()) return "";
  std::string text = fmt::format("\n{:<18}{:<16}{:>9}{:>12}{:>12}{:>9}\n", "COPIES", "device",
                                 "count", "MiB", "ms", "GB/s");
  for (const CopySummary& row : summary.copies)
    fmt::format_to(
        std::back_inserter(text), "{:<18}{:<16}{:>9}{:>12.3f}{:>12.3f}{:>9}\n",
        to_string(row.direction), device_name(trace, row.device), row.count, mebibytes(row.bytes),
        milliseconds(static_cast<double>(row.total_ns)),
        row.total_ns
            ? known(static_cast<double>(row.bytes) / static_cast<double>(row.total_ns), "{:.2f}")
            : "-");
  return text;
}

std::string collectives_text(const Summary& summary) {
  if (summary.collectives.empty()) return "";
  std::string text = fmt::format("\n{:<18}{:>9}{:>9}{:>12}{:>12}{:>9}{:>12}\n", "COLLECTIVES",
                                 "count", "values", "MiB", "ms", "GB/s", "waited ms");
  for (const CollectiveSummary& row : summary.collectives)
    fmt::format_to(
        std::back_inserter(text), "{:<18}{:>9}{:>9}{:>12.3f}{:>12.3f}{:>9}{:>12.3f}\n",
        name_of(row.kind), row.count, row.values, mebibytes(row.bytes),
        milliseconds(static_cast<double>(row.total_ns)),
        row.total_ns
            ? known(static_cast<double>(row.bytes) / static_cast<double>(row.total_ns), "{:.2f}")
            : "-",
        milliseconds(static_cast<double>(row.waited_ns)));
  return text;
}

// What layers reported, one line each.
std::string findings_text(const Trace& trace, size_t top) {
  std::string text;
  const size_t shown = std::min(top, trace.findings.size());
  for (size_t i = 0; i < shown; ++i) {
    const Finding& finding = trace.findings[i];
    text += fmt::format("{}: {}: {}\n", finding.layer, finding.device,
                        finding.text.substr(0, finding.text.find('\n')));
  }
  if (shown < trace.findings.size())
    text += fmt::format("and {} more reports: --top N shows N\n", trace.findings.size() - shown);
  return text.empty() ? "" : "REPORTS\n" + text + '\n';
}

std::string change_line(const KernelChange& change) {
  const auto mean = [](const ComparedLaunches& side) {
    return side.launches ? fmt::format("{:.2f}", side.mean_ns() * 1e-3) : "-";
  };
  const std::string ratio = change.is_in_both()      ? fmt::format("{:.2f}x", change.ratio())
                            : change.before.launches ? "gone"
                                                     : "new";
  return fmt::format("{:<{}}{:>11}{:>11}{:>9}{:>11.3f}{:>10}{:>10}  {}{}\n", shortened(change.name),
                     kNameWidth, mean(change.before), mean(change.after), ratio,
                     milliseconds(change.added_ns()), change.before.launches, change.after.launches,
                     change.operations,
                     change.source.empty() ? "" : " (" + file_name(change.source) + ")");
}

}  // namespace

std::string profile_text(const Trace& trace, const Summary& summary, size_t top) {
  const std::string rank = trace.header.ranks == 1
                               ? ""
                               : fmt::format(", rank {} of {}", trace.header.rank,
                                             trace.header.ranks ? std::to_string(trace.header.ranks)
                                                                : "an unknown number");
  std::string text =
      fmt::format("{}{}: {:.3f} s, {} launches on {}\n\n",
                  trace.header.program.empty() ? "program" : file_name(trace.header.program), rank,
                  static_cast<double>(summary.wall_ns()) * 1e-9, trace.launches.size(),
                  trace.header.cpu.empty() ? "an unknown processor" : trace.header.cpu);
  if (trace.end && trace.end->dropped > 0)
    text += fmt::format("the oldest {} events did not fit the limit and are not counted\n\n",
                        trace.end->dropped);
  text += findings_text(trace, top) + parts_text(summary) + devices_text(trace, summary) +
          kernels_text(trace, summary, top) + causes_text(trace, summary) +
          copies_text(trace, summary) + collectives_text(summary);
  return sanitise_text(text);
}

std::string compare_text(const Comparison& before, const Comparison& after, size_t top) {
  const auto changes = compare(before.trace, before.summary, after.trace, after.summary);
  const auto seconds = [](const Comparison& one) {
    return static_cast<double>(one.summary.wall_ns()) * 1e-9;
  };
  const auto busy = [](const Comparison& one) {
    return static_cast<double>(one.summary.of(Part::Device)) * 1e-9;
  };
  std::string text = fmt::format(
      "\nbefore {}: {:.3f} s, devices work {:.3f} s\nafter  {}: {:.3f} s, devices work {:.3f} "
      "s\n\n",
      before.path, seconds(before), busy(before), after.path, seconds(after), busy(after));
  text += fmt::format("{:<{}}{:>11}{:>11}{:>9}{:>11}{:>10}{:>10}  {}\n", "CHANGE", kNameWidth,
                      "us before", "us after", "ratio", "added ms", "launches", "after", "from");
  const size_t shown = std::min(top, changes.size());
  for (size_t i = 0; i < shown; ++i) text += change_line(changes[i]);
  if (shown < changes.size())
    text += fmt::format("and {} more kernels: --top N shows N\n", changes.size() - shown);
  return sanitise_text(text);
}

}  // namespace plugrad::tools
