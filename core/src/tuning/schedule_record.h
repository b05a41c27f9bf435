// A search result for one kernel and its line in a text file: tab-separated fields, of which the
// last is a hash of the others. Such files can be exported, imported and concatenated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::tuning {

struct ScheduleRecord {
  uint32_t version = 0;          // codegen::kSearchVersion of the writer
  std::string device, compiler;  // where the times were measured
  std::string kernel;            // its structure with sizes, and the options that change its code
  std::string family;            // its structure without sizes
  std::vector<int64_t> sizes;    // of its loops
  uint32_t width = 0;            // BEAM of a finished search; 0: unfinished
  uint32_t tried = 0;            // schedules timed so far; 0: older than this field
  double seconds = 0, first_seconds = 0;  // of one launch; with the heuristic's schedule
  std::string list;                       // for codegen::parse_schedule
};

/// Parses comma-separated sizes. Returns whether the text is valid.
bool read_sizes(std::string_view text, std::vector<int64_t>& out);
/// Whether the value is plausible as the time of a launch.
bool is_time(double seconds);

/// Without a line end.
std::string to_line(const ScheduleRecord& record);
/// Nothing if the line is damaged or has another form.
std::optional<ScheduleRecord> parse_record(std::string_view line);

/// The records of a text file, in order; `damaged` counts lines that are damaged or of another
/// version, `first_damaged` is the number of the first.
struct ScheduleText {
  std::vector<ScheduleRecord> records;
  size_t damaged = 0, first_damaged = 0;
};
ScheduleText parse_records(std::string_view text);

/// Whether a file starts like such a text.
bool is_schedule_text(const std::string& path);

}  // namespace plugrad::tuning
