// Records what the process does: launches, copies, waits, spans of threads, memory, and definitions
// of what these refer to. docs/trace-format.md describes the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/collective_kind.h"
#include "plugrad/export.h"

namespace plugrad {

/// Whether PLUGRAD_TRACE or VIZ asks for a trace; check before preparing what is recorded.
PLUGRAD_API bool tracing();
/// Whether stages and rewrites are recorded too (PLUGRAD_TRACE_RULES, VIZ).
bool tracing_rules();
/// Writes all that was recorded to the file; also done each second and at exit.
PLUGRAD_API void flush_trace();

namespace trace {

// Times are those of monotonic_ns(). Tracks, kernels, plans, devices and names are ids of
// definitions.
struct Launch {
  std::uint32_t track = 0, kernel = 0;
  std::uint64_t start_ns = 0, duration_ns = 0;
  std::uint64_t submit_ns = 0;  ///< when the host gave it; 0: as it started
  std::uint32_t plan = 0;
  std::int32_t step = -1;
};

enum class Direction : std::uint8_t { In, Out, Device, Fill };

struct Copy {
  std::uint32_t track = 0;
  Direction direction = Direction::In;
  std::uint64_t bytes = 0, start_ns = 0, duration_ns = 0;
};

struct Wait {
  std::uint32_t track = 0;
  std::uint32_t device = 0;  ///< 0: for a collective
  std::uint64_t start_ns = 0, duration_ns = 0;
};

enum class Category : std::uint8_t { Plan, Codegen, Compile, Run, Stage, Search, Pool, Jit };

/// A collective between processes, from its start until this process's part is complete.
struct Collective {
  std::uint32_t track = 0;
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::uint64_t bytes = 0;  ///< that this process gives
  std::uint32_t values = 1;
  std::uint64_t start_ns = 0, duration_ns = 0;
  std::uint64_t waited_ns = 0;  ///< for how long the program waited for it
  std::uint32_t plan = 0;
  std::int32_t step = -1;
};

struct Span {
  std::uint32_t track = 0;
  Category category = Category::Run;
  std::uint32_t name = 0;
  std::uint64_t start_ns = 0, duration_ns = 0, value = 0;
};

struct Memory {
  std::uint32_t device = 0;
  std::uint64_t start_ns = 0, used_bytes = 0, cached_bytes = 0;
  std::int64_t change_bytes = 0;
  std::uint64_t buffer = 0;
};

void record(const Launch& event);
void record(const Copy& event);
void record(const Wait& event);
void record(const Collective& event);
void record(const Span& event);
void record(const Memory& event);
/// Counts rewrites, for the totals at the end.
void count_rewrites(std::uint64_t count);

/// Now, as definitions give times: since the start of the trace.
std::uint64_t elapsed_ns();

/// A new id for a definition.
std::uint32_t new_id();
/// Adds a line: one JSON object. Its stages are dropped with old events when the file is full.
void define(std::string json_line);
void define_stage(std::string json_line);
/// A line that the writing thread completes later, as it is slow to make.
void define_later(std::function<std::string()> make);

/// The track of this thread.
std::uint32_t thread_track();
/// The track of a device's queue: `kind` is "queue" or "transfers".
std::uint32_t queue_track(std::uint32_t device, std::string_view kind, std::string_view name);
/// The track of the process's collectives.
std::uint32_t collectives_track();
/// The id of a span's name.
std::uint32_t name_id(std::string_view text);

/// Records a span of this thread from `start_ns` to now.
void span(Category category, std::string_view name, std::uint64_t start_ns,
          std::uint64_t value = 0);

void span_between(Category category, std::string_view name, std::uint64_t start_ns,
                  std::uint64_t end_ns, std::uint64_t value = 0);

/// Records a span of this thread while it lives, if a trace is on.
class Scope {
 public:
  Scope(Category category, std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const Category category_;
  const std::string_view name_;
  const std::uint64_t start_ns_;  // 0: nothing is recorded
};

/// Makes flush_trace() and the end of the process call `collect` before they write: it records the
/// events that devices still have.
void before_writing(void (*collect)());

}  // namespace trace
}  // namespace plugrad
