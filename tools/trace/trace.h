// A trace file in memory: definitions as structs, events as columns. docs/trace-format.md describes
// the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/collective_kind.h"
#include "trace/lines.h"

namespace plugrad::tools::trace {

inline constexpr int64_t kVersion = 1;
/// An index of something that the file does not define.
inline constexpr int32_t kNone = -1;

struct Header {
  std::string program, cpu;
  int64_t pid = 0, start_ns = 0, start_unix_ns = 0, threads = 0;
  int64_t rank = 0, ranks = 1;  ///< of the process; ranks 0: not known
  bool rules = false;
};

struct Device {
  std::string name, arch, hardware;
  bool own_clock = false;  ///< times of its launches are of its own clock, else of the host's
  int64_t clock_error_ns = 0, memory_bytes = 0;
  double peak_gflops = 0, peak_gbps = 0;  ///< 0: not known
  double launch_ns = 0;                   ///< the host's time of one launch; 0: not known
};

enum class TrackKind : uint8_t { Queue, Transfers, Collectives, Thread };

struct Track {
  TrackKind kind = TrackKind::Thread;
  int32_t device = kNone;
  std::string name;
};

struct Operation {
  std::string name, file, function;
  int64_t line = 0;
  std::vector<std::string> stack;  ///< "function (file:line)", innermost first
};

struct Kernel {
  int32_t device = kNone;
  std::string name, schedule;
  std::array<int64_t, 3> global{}, local{};
  double flops = 0, bytes = 0, predicted_ns = 0;  ///< estimates for one launch
  double work = 0;                                ///< operations that one launch executes
  int64_t compile_ns = 0;
  bool from_cache = false;
  std::vector<int32_t> operations;
};

/// Columns of events: element i of each belongs to event i. Times are nanoseconds since start_ns.
struct Events {
  std::vector<int64_t> start, duration;
  std::vector<int32_t> track;
  size_t size() const { return start.size(); }
};
struct Launches : Events {
  std::vector<int32_t> kernel;
  std::vector<int64_t> submit;
};
enum class Direction : uint8_t { ToDevice, ToHost, OnDevice, Fill };
struct Copies : Events {
  std::vector<Direction> direction;
  std::vector<int64_t> bytes;
};
struct Waits : Events {
  std::vector<int32_t> device;  ///< kNone: for a collective
};
struct Collectives : Events {
  std::vector<CollectiveKind> kind;
  std::vector<int64_t> bytes, values, waited;
};
enum class Category : uint8_t { Plan, Codegen, Compile, Run, Stage, Search, Pool, Jit, Other };
struct Spans : Events {
  std::vector<Category> category;
  std::vector<int32_t> name;  ///< index of Trace::names
  std::vector<int64_t> value;
};
struct MemoryEvents {
  std::vector<int64_t> start, used, cached;
  std::vector<int32_t> device;
  size_t size() const { return start.size(); }
};

/// What a layer such as `compare` reported.
struct Finding {
  std::string layer, device, kernel;  ///< names; `kernel` may be empty
  std::string text;
  bool is_difference = false;  ///< from another device's results
};

/// A plan that was made, and why.
struct Miss {
  std::string cause, text;  ///< "number" and "a number is 0.5, was 0.25"; the text may be empty
  int64_t kernels = 0, compile_ns = 0;
  int32_t operation = kNone;  ///< that made the first result
};

/// Operations that the kernels of all plans execute, and those of their graphs.
struct Work {
  double executed = 0, graph = 0;
};

struct End {
  int64_t dropped = 0;
  std::optional<int64_t> time_ns;  ///< when the recording ended
};

struct Trace {
  Header header;
  std::vector<Device> devices;
  std::vector<Track> tracks;
  std::vector<Operation> operations;
  std::vector<Kernel> kernels;
  std::vector<std::string> names;
  Launches launches;
  Copies copies;
  Waits waits;
  Collectives collectives;
  Spans spans;
  MemoryEvents memory;
  std::vector<Finding> findings;
  std::vector<Miss> misses;
  Work work;
  std::optional<End> end;  ///< none: the file was cut off, or its program still runs
  std::string warning;     ///< why a part is missing; empty: nothing is missing
};

/// The text of a file. Errors: User, if it cannot be read, is not gzip or larger than `most_bytes`.
std::vector<std::byte> read_trace_file(const std::string& path);

/// Parses the readable part. Errors: User, naming `path`, if it is not a trace, of another version,
/// or beyond the limits.
Trace parse_trace(std::span<const std::byte> file, const std::string& path,
                  const Limits& limits = {});

/// Reads a file.
Trace read_trace(const std::string& path);

/// Errors: User, as parse_trace(), if `line` is not the first line of a readable trace.
Header parse_header(std::string_view line, const std::string& path);

/// Why the lines after line `number` are missing; empty for Ending::Whole.
std::string describe(Ending ending, uint64_t number, const std::string& path);

}  // namespace plugrad::tools::trace
