#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "trace/export.h"
#include "trace/lanes.h"
#include "trace/summary.h"

namespace plugrad::tools::trace {
namespace {

constexpr int kHostProcess = 1;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// Microseconds with three decimals, exactly.
std::string microseconds(int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

int process_of(int32_t device) {
  return device == kNone ? kHostProcess : kHostProcess + 1 + device;
}

std::string launch_arguments(const Trace& trace, int32_t kernel) {
  const std::string operations = operations_text(trace, kernel);
  const Operation* located = first_located(trace, kernel);
  std::string text;
  if (!operations.empty()) text += R"(,"operations":)" + quoted(operations);
  if (located) text += R"(,"source":)" + quoted(fmt::format("{}:{}", located->file, located->line));
  return text;
}

// What all events of one key share: name, category and arguments.
std::string shared_text(const Trace& trace, const Slice& slice) {
  std::string text = fmt::format(R"("name":{},"cat":"{}")", quoted(slice_name(trace, slice)),
                                 slice_category(trace, slice));
  return text;
}

class ChromeWriter {
 public:
  explicit ChromeWriter(const Trace& trace)
      : trace_(trace), shared_(slice_key_count(trace)), arguments_(trace.kernels.size() + 1) {}

  std::string run() {
    add_name("process_name", kHostProcess, 0,
             trace_.header.program.empty() ? "host" : trace_.header.program);
    for (size_t d = 0; d < trace_.devices.size(); ++d)
      add_name("process_name", process_of(static_cast<int32_t>(d)), 0, trace_.devices[d].name);
    const std::vector<Lane> lanes = make_lanes(trace_);
    for (size_t i = 0; i < lanes.size(); ++i) add_lane(lanes[i], static_cast<int>(i) + 1);
    add_memory();
    out_ += "\n],\"displayTimeUnit\":\"ns\"}\n";
    return std::move(out_);
  }

 private:
  void begin_event() {
    out_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
  }

  void add_name(const char* what, int process, int thread, const std::string& name) {
    begin_event();
    fmt::format_to(std::back_inserter(out_),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                   process, thread, quoted(name));
  }

  void add_lane(const Lane& lane, int thread) {
    const int32_t device =
        lane.track == kNone ? kNone : trace_.tracks[static_cast<size_t>(lane.track)].device;
    add_name("thread_name", process_of(device), thread, lane.name);
    for (const Slice& slice : lane.slices) {
      std::string& shared = shared_[slice_key(trace_, slice)];
      if (shared.empty()) shared = shared_text(trace_, slice);
      begin_event();
      fmt::format_to(std::back_inserter(out_),
                     R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},{})", process_of(device),
                     thread, microseconds(slice.start), microseconds(slice.end - slice.start),
                     shared);
      add_arguments(slice);
      out_ += '}';
    }
  }

  void add_arguments(const Slice& slice) {
    const auto out = std::back_inserter(out_);
    if (slice.kind == SliceKind::Launch) {
      const int32_t kernel = trace_.launches.kernel[slice.index];
      std::string& arguments = arguments_[static_cast<size_t>(kernel + 1)];
      if (arguments.empty()) arguments = launch_arguments(trace_, kernel);
      fmt::format_to(out, R"(,"args":{{"queued_us":{}{}}})",
                     microseconds(trace_.launches.submit[slice.index]), arguments);
    } else if (slice.kind == SliceKind::Copy) {
      fmt::format_to(out, R"(,"args":{{"bytes":{}}})", trace_.copies.bytes[slice.index]);
    } else if (slice.kind == SliceKind::Collective) {
      fmt::format_to(out, R"(,"args":{{"bytes":{},"values":{},"waited_us":{}}})",
                     trace_.collectives.bytes[slice.index], trace_.collectives.values[slice.index],
                     microseconds(trace_.collectives.waited[slice.index]));
    } else if (slice.kind == SliceKind::Span && trace_.spans.value[slice.index] != 0) {
      fmt::format_to(out, R"(,"args":{{"value":{}}})", trace_.spans.value[slice.index]);
    }
  }

  void add_memory() {
    const MemoryEvents& memory = trace_.memory;
    for (size_t i = 0; i < memory.size(); ++i) {
      begin_event();
      fmt::format_to(
          std::back_inserter(out_),
          R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{"used":{},"cached":{}}}}})",
          process_of(memory.device[i]), microseconds(memory.start[i]), memory.used[i],
          memory.cached[i]);
    }
  }

  const Trace& trace_;
  std::vector<std::string> shared_, arguments_;
  std::string out_ = "{\"traceEvents\":[";
  bool is_first_ = true;
};

}  // namespace

std::string to_chrome(const Trace& trace) {
  return ChromeWriter(trace).run();
}

}  // namespace plugrad::tools::trace
