// Turns the lines of a trace file into columns. A line that does not parse ends the readable part.
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/file.h"
#include "trace/trace.h"

namespace plugrad::tools::trace {
namespace {

using Json = nlohmann::json;

// A line that is not as the format says.
struct BadLine {
  std::string reason;
};

// Times, and each sum of a column, stay below, so that no sum of them overflows: 73 years, 2 EiB.
constexpr int64_t kMost = int64_t{1} << 61;

int64_t integer(const Json& value) {
  if (value.is_number_unsigned())
    return static_cast<int64_t>(std::min<uint64_t>(value.get<uint64_t>(), INT64_MAX));
  if (value.is_number_integer()) return value.get<int64_t>();
  const double real = value.is_number_float() ? value.get<double>() : 0;
  return std::abs(real) < 9e18 ? static_cast<int64_t>(real) : 0;
}

const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

int64_t integer(const Json& object, const char* key) {
  return integer(member(object, key));
}

double real(const Json& object, const char* key) {
  const Json& value = member(object, key);
  const double number = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(number) && number > 0 ? number : 0;
}

bool flag(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::string text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// Exports repeat names with each event.
constexpr size_t kMostNameBytes = 1024, kMostFrames = 64;

// The text without bytes beyond the limit, whole characters only.
std::string shortened(std::string text) {
  if (text.size() <= kMostNameBytes) return text;
  size_t end = kMostNameBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

std::string name(const Json& object, const char* key) {
  return shortened(text(object, key));
}

std::array<int64_t, 3> triple(const Json& object, const char* key) {
  std::array<int64_t, 3> out{};
  const Json& value = member(object, key);
  for (size_t i = 0; i < 3 && value.is_array() && i < value.size(); ++i) out[i] = integer(value[i]);
  return out;
}

// Ids of one type of definition, and their indices.
class Ids {
 public:
  void add(int64_t id, size_t index) { indices_[id] = static_cast<int32_t>(index); }
  int32_t index(int64_t id) const {
    const auto found = indices_.find(id);
    return found == indices_.end() ? kNone : found->second;
  }

 private:
  std::unordered_map<int64_t, int32_t> indices_;
};

// Sums of columns over all blocks.
struct Sums {
  int64_t durations = 0, submits = 0, bytes = 0, values = 0, kernels = 0, compiling = 0;
};

// Adds to `sum`; returns `value`.
int64_t counted(int64_t value, int64_t& sum, const char* what) {
  if (value < 0 || value > kMost - sum) throw BadLine{fmt::format("{} are out of range", what)};
  sum += value;
  return value;
}

// One block of events.
class Block {
 public:
  Block(const Json& line, Sums& sums) : columns_(member(line, "columns")), sums_(sums) {
    if (!columns_.is_object()) throw BadLine{"events without columns"};
    const Json& count = member(line, "count");
    if (!count.is_number_unsigned()) throw BadLine{"events without a count"};
    count_ = count.get<uint64_t>();
  }

  template <class T, class Convert>
  void append(const char* name, std::vector<T>& to, Convert convert) const {
    const Json& column = member(columns_, name);
    if (!column.is_array() || column.size() != count_)
      throw BadLine{fmt::format("the column {} has not {} numbers", name, count_)};
    to.reserve(std::max(to.capacity(), to.size() + count_));
    for (const Json& value : column) {
      if (!value.is_number_integer()) throw BadLine{fmt::format("no integer in {}", name)};
      to.push_back(convert(integer(value)));
    }
  }

  void append_starts(std::vector<int64_t>& to) const {
    int64_t time = 0;
    append("start", to, [&time](int64_t difference) {
      if (__builtin_add_overflow(time, difference, &time) || time > kMost || time < -kMost)
        throw BadLine{"a start is out of range"};
      return time;
    });
  }

  void append_times(Events& to, const Ids& tracks) const {
    append("track", to.track, [&](int64_t id) { return tracks.index(id); });
    append_starts(to.start);
    append("duration", to.duration,
           [this](int64_t time) { return counted(time, sums_.durations, "durations"); });
  }

 private:
  const Json& columns_;
  Sums& sums_;
  uint64_t count_ = 0;
};

class Parser {
 public:
  explicit Parser(Trace& trace) : trace_(trace) {}

  void add(const Json& line) {
    const std::string type = text(line, "t");
    if (type == "events") return add_events(line);
    if (type == "end") return add_end(line);
    if (type == "machine") return add_machine(line);
    if (type == "finding") return add_finding(line);
    if (type == "work") return add_work(line);
    if (type == "miss") return add_miss(line);
    const int64_t id = integer(line, "id");
    if (type == "device") return devices_.add(id, trace_.devices.size()), add_device(line);
    if (type == "track") return tracks_.add(id, trace_.tracks.size()), add_track(line);
    if (type == "operation")
      return operations_.add(id, trace_.operations.size()), add_operation(line);
    if (type == "kernel") return kernels_.add(id, trace_.kernels.size()), add_kernel(line);
    if (type == "name") {
      names_.add(id, trace_.names.size());
      trace_.names.push_back(name(line, "text"));
    }
  }

 private:
  void add_device(const Json& line) {
    trace_.devices.push_back({.name = name(line, "name"),
                              .arch = name(line, "arch"),
                              .hardware = name(line, "hardware"),
                              .own_clock = text(line, "clock") == "device",
                              .clock_error_ns = integer(line, "clock_error_ns"),
                              .memory_bytes = integer(line, "memory_bytes")});
  }

  void add_machine(const Json& line) {
    const int32_t index = devices_.index(integer(line, "device"));
    if (index == kNone) return;
    Device& device = trace_.devices[static_cast<size_t>(index)];
    device.peak_gflops = real(line, "peak_gflops");
    device.peak_gbps = real(line, "peak_gbps");
    device.launch_ns = real(line, "launch_ns");
  }

  void add_track(const Json& line) {
    const std::string kind = text(line, "kind");
    trace_.tracks.push_back({.kind = kind == "queue"         ? TrackKind::Queue
                                     : kind == "transfers"   ? TrackKind::Transfers
                                     : kind == "collectives" ? TrackKind::Collectives
                                                             : TrackKind::Thread,
                             .device = devices_.index(integer(line, "device")),
                             .name = name(line, "name")});
  }

  void add_operation(const Json& line) {
    Operation operation{.name = name(line, "name"),
                        .file = name(line, "file"),
                        .function = name(line, "function"),
                        .line = integer(line, "line"),
                        .stack = {}};
    if (const Json& stack = member(line, "stack"); stack.is_array())
      for (const Json& frame : stack)
        if (frame.is_string() && operation.stack.size() < kMostFrames)
          operation.stack.push_back(shortened(frame.get<std::string>()));
    trace_.operations.push_back(std::move(operation));
  }

  void add_kernel(const Json& line) {
    Kernel kernel{.device = devices_.index(integer(line, "device")),
                  .name = name(line, "name"),
                  .schedule = text(line, "schedule"),
                  .global = triple(line, "global"),
                  .local = triple(line, "local"),
                  .flops = real(line, "flops"),
                  .bytes = real(line, "bytes"),
                  .predicted_ns = real(line, "predicted_ns"),
                  .work = real(line, "work"),
                  .compile_ns = integer(line, "compile_ns"),
                  .from_cache = flag(line, "from_cache"),
                  .operations = {}};
    if (const Json& operations = member(line, "operations"); operations.is_array())
      for (const Json& id : operations)
        if (const int32_t index = operations_.index(integer(id)); index != kNone)
          kernel.operations.push_back(index);
    trace_.kernels.push_back(std::move(kernel));
  }

  void add_finding(const Json& line) {
    trace_.findings.push_back({.layer = name(line, "layer"),
                               .device = name(line, "device"),
                               .kernel = name(line, "kernel"),
                               .text = text(line, "text"),
                               .is_difference = member(line, "difference").is_object()});
  }

  void add_work(const Json& line) {
    trace_.work.executed += real(line, "executed");
    trace_.work.graph += real(line, "graph");
  }

  void add_miss(const Json& line) {
    trace_.misses.push_back(
        {.cause = name(line, "cause"),
         .text = name(line, "text"),
         .kernels = counted(integer(line, "kernels"), sums_.kernels, "kernels"),
         .compile_ns = counted(integer(line, "compile_ns"), sums_.compiling, "times"),
         .operation = operations_.index(integer(line, "operation"))});
  }

  void add_end(const Json& line) {
    trace_.end = End{.dropped = integer(line, "dropped"), .time_ns = {}};
    if (line.contains("time_ns"))
      trace_.end->time_ns = std::clamp<int64_t>(integer(line, "time_ns"), 0, kMost);
  }

  void add_events(const Json& line) {
    const std::string kind = text(line, "kind");
    const Block block(line, sums_);
    const auto as_integer = [](int64_t value) { return value; };
    const auto as_device = [this](int64_t id) { return devices_.index(id); };
    if (kind == "launch") {
      block.append_times(trace_.launches, tracks_);
      block.append("kernel", trace_.launches.kernel,
                   [this](int64_t id) { return kernels_.index(id); });
      block.append("submit", trace_.launches.submit, [this](int64_t value) {
        return counted(std::max<int64_t>(value, 0), sums_.submits, "submits");
      });
    } else if (kind == "copy") {
      block.append_times(trace_.copies, tracks_);
      block.append("bytes", trace_.copies.bytes,
                   [this](int64_t value) { return counted(value, sums_.bytes, "bytes"); });
      block.append("direction", trace_.copies.direction, [](int64_t value) {
        if (value < 0 || value > 3) throw BadLine{"a direction is out of range"};
        return static_cast<Direction>(value);
      });
    } else if (kind == "wait") {
      block.append_times(trace_.waits, tracks_);
      block.append("device", trace_.waits.device, as_device);
    } else if (kind == "collective") {
      add_collectives(block);
    } else if (kind == "span") {
      block.append_times(trace_.spans, tracks_);
      block.append("name", trace_.spans.name, [this](int64_t id) { return names_.index(id); });
      block.append("value", trace_.spans.value, as_integer);
      block.append("category", trace_.spans.category, [](int64_t value) {
        return value >= 0 && value < int64_t{static_cast<int>(Category::Other)}
                   ? static_cast<Category>(value)
                   : Category::Other;
      });
    } else if (kind == "memory") {
      block.append_starts(trace_.memory.start);
      block.append("device", trace_.memory.device, as_device);
      block.append("used", trace_.memory.used, as_integer);
      block.append("cached", trace_.memory.cached, as_integer);
    }
  }

  void add_collectives(const Block& block) {
    Collectives& to = trace_.collectives;
    block.append_times(to, tracks_);
    block.append("bytes", to.bytes,
                 [this](int64_t value) { return counted(value, sums_.bytes, "bytes"); });
    block.append("values", to.values,
                 [this](int64_t value) { return counted(value, sums_.values, "values"); });
    block.append("waited", to.waited,
                 [this](int64_t value) { return counted(value, sums_.durations, "durations"); });
    block.append("collective", to.kind, [](int64_t value) {
      if (value < 0 || value >= int64_t{kCollectiveKinds})
        throw BadLine{"a collective is out of range"};
      return static_cast<CollectiveKind>(value);
    });
  }

  Trace& trace_;
  Sums sums_;
  Ids devices_, tracks_, operations_, kernels_, names_;
};

// Columns of a block that was appended in part are cut back to whole events.
void trim(Trace& trace) {
  const auto cut = [](auto&... columns) {
    const size_t size = std::min({columns.size()...});
    (columns.resize(size), ...);
  };
  Launches& l = trace.launches;
  cut(l.start, l.duration, l.track, l.kernel, l.submit);
  Copies& c = trace.copies;
  cut(c.start, c.duration, c.track, c.bytes, c.direction);
  cut(trace.waits.start, trace.waits.duration, trace.waits.track, trace.waits.device);
  Collectives& m = trace.collectives;
  cut(m.start, m.duration, m.track, m.kind, m.bytes, m.values, m.waited);
  Spans& s = trace.spans;
  cut(s.start, s.duration, s.track, s.name, s.value, s.category);
  cut(trace.memory.start, trace.memory.device, trace.memory.used, trace.memory.cached);
}

// True for lines of types that Trace does not hold and that may be large. Others are parsed.
bool is_skipped(std::string_view line) {
  for (const std::string_view type : {"plan", "rule", "stage"})
    if (line.starts_with(fmt::format(R"({{"t":"{}")", type))) return true;
  return false;
}

Json parse_line(std::string_view line, const Limits& limits) {
  if (!fits(line, limits)) throw BadLine{"it nests too deep or has too many values"};
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) throw BadLine{"it is not a JSON object"};
  return json;
}

}  // namespace

std::string describe(Ending ending, uint64_t number, const std::string& path) {
  switch (ending) {
    case Ending::Whole:
      return "";
    case Ending::CutOff:
      return fmt::format("{} ends within a block after line {}; what is before it is used", path,
                         number);
    case Ending::Damaged:
      return fmt::format("{} is damaged after line {}; what is before it is used", path, number);
    case Ending::TooLarge:
      return fmt::format("{} is too large after line {}; what is before it is used", path, number);
  }
  return "";
}

Header parse_header(std::string_view line, const std::string& path) {
  const Json json = fits(line, Limits{}) ? Json::parse(line, nullptr, false) : Json();
  require(json.is_object() && text(json, "t") == "trace",
          "[trace] {} is not a trace: its first line is no header of one", path);
  const int64_t version = integer(json, "version");
  require(version == kVersion,
          "[trace] {} is a trace of version {}; this build reads version {}: use the plugrad that "
          "wrote it, or record again",
          path, version, kVersion);
  return {.program = name(json, "program"),
          .cpu = name(json, "cpu"),
          .pid = integer(json, "pid"),
          .start_ns = std::clamp<int64_t>(integer(json, "start_ns"), 0, kMost),
          .start_unix_ns = integer(json, "start_unix_ns"),
          .threads = integer(json, "threads"),
          .rank = std::max<int64_t>(integer(json, "rank"), 0),
          .ranks = json.contains("ranks") ? std::max<int64_t>(integer(json, "ranks"), 0) : 1,
          .rules = flag(json, "rules")};
}

Trace parse_trace(std::span<const std::byte> file, const std::string& path, const Limits& limits) {
  LineReader lines(file, limits);
  const auto first = lines.next();
  require(first.has_value(), "[trace] {} is not a trace, or was cut off before its first line",
          path);
  Trace trace;
  trace.header = parse_header(*first, path);
  Parser parser(trace);
  uint64_t number = 1;
  try {
    while (const auto line = lines.next()) {
      if (!is_skipped(*line)) parser.add(parse_line(*line, limits));
      ++number;
    }
    trace.warning = describe(lines.ending(), number, path);
    if (trace.warning.empty() && !trace.end)
      trace.warning = fmt::format(
          "{} has no end: its program still runs, or was stopped; its {} lines are used", path,
          number);
  } catch (const BadLine& bad) {
    trim(trace);
    trace.warning = fmt::format("{}: line {} is damaged ({}); the {} before it are used", path,
                                number + 1, bad.reason, number);
  }
  return trace;
}

std::vector<std::byte> read_trace_file(const std::string& path) {
  auto bytes = read_file(path);
  require(bytes.has_value(), "[trace] {} cannot be read: {}", path, file_error_text(errno));
  require(!bytes->empty(), "[trace] {} is empty: its program has written nothing so far", path);
  require(is_gzip(*bytes),
          "[trace] {} is not a trace: it is not a gzip file; PLUGRAD_TRACE=FILE records one", path);
  return std::move(*bytes);
}

Trace read_trace(const std::string& path) {
  return parse_trace(read_trace_file(path), path);
}

}  // namespace plugrad::tools::trace
