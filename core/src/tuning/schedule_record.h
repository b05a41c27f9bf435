// What a search found for one kernel, and its line in a text file: fields between tabs, the last of
// which is the hash of all before it. Files of such lines are exported, imported and joined by cat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::tuning {

struct ScheduleRecord {
  uint32_t version = 0;          // codegen::kSearchVersion of the writer
  std::string device, compiler;  // what the times are of
  std::string kernel;            // its structure with sizes, and the options that change its code
  std::string family;            // its structure without sizes
  std::vector<int64_t> sizes;    // of its loops
  uint32_t width = 0;            // BEAM of a search that ended; 0: of one that did not
  uint32_t tried = 0;            // lists timed until then; 0: written before this was kept
  double seconds = 0, first_seconds = 0;  // of one launch, and of the heuristic's kernel
  std::string list;                       // codegen::parse_optimisations reads it

  /// Whether both are about the same kernel on the same device, by the same compiler and codegen.
  bool same_key(const ScheduleRecord& other) const {
    return version == other.version && device == other.device && compiler == other.compiler &&
           kernel == other.kernel;
  }
};

/// Sizes between commas. Whether the text holds such.
bool read_sizes(std::string_view text, std::vector<int64_t>& out);
/// Whether a time of a launch can be that.
bool is_time(double seconds);

/// Without the line's end.
std::string to_line(const ScheduleRecord& record);
/// Nothing where the line is damaged or of another form.
std::optional<ScheduleRecord> parse_record(std::string_view line);

/// The records of a text file, in order; `damaged` counts the lines that are damaged or of another
/// version, `first_damaged` is the number of the first.
struct ScheduleText {
  std::vector<ScheduleRecord> records;
  size_t damaged = 0, first_damaged = 0;
};
ScheduleText parse_records(std::string_view text);

/// Whether a file begins as such a text does.
bool is_schedule_text(const std::string& path);

}  // namespace plugrad::tuning
