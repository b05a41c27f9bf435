// What becomes of results: waivers, totals, advice, and the pieces that the writers share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/test.h"

namespace plugrad::conformance {

inline constexpr const char* kReportSchema = "plugrad-conformance-1";
inline constexpr Level kLevels[] = {Level::L0, Level::L1, Level::L2, Level::L3, Level::Perf};
inline constexpr Status kStatuses[] = {Status::Pass,   Status::Fail,  Status::Unsupported,
                                       Status::Waived, Status::Crash, Status::Timeout};

Totals count(std::span<const TestResult> tests);
uint64_t& total_of(Totals& totals, Status status);
bool is_failure(Status status);  // fail, crash or timeout

// The waivers of a run.
class Waivers {
 public:
  Waivers() = default;
  // From a JSON file: [{"test": glob, "reason": text, "expires": "YYYY-MM-DD"}, …]. Throws
  // std::runtime_error naming file, entry and key for anything else. `today` ("YYYY-MM-DD")
  // replaces the clock, for tests.
  static Waivers read(const std::string& path, std::string_view today = {});

  // A failure that an unexpired waiver names becomes Waived, with the reason before its message.
  void apply(TestResult& result);
  // Waivers that have expired, and those that no failure needed.
  std::vector<std::string> notes() const;

 private:
  struct Waiver {
    std::string test, reason, expires;
    bool expired = false, used = false, matched = false;
  };
  std::string path_;
  std::vector<Waiver> waivers_;
};

// What the plugin's author would do next: the failure that others are likely to follow from; then
// what plugins may leave out and this one does, most tests unlocked first. `tests` say what each
// needs.
std::vector<NextStep> next_steps(std::span<const TestResult> results, const Tests& tests);

// "3 tests", "1 test".
std::string counted(uint64_t count, std::string_view noun);
// A measured value for people: "0.50 ulp", "12.3 GB/s".
std::string describe_measure(const TestResult& test);
// What a published report tells of a path.
std::string file_name(const std::string& path);
// The command that runs the test again; empty without a token.
std::string replay_command(const Report& report, const TestResult& test);

// Well-formed UTF-8 without control characters other than tab and line break.
std::string clean_text(std::string_view text);
// The same with the characters that mark up XML and HTML replaced.
std::string escape_markup(std::string_view text);

// SHA-256 in hex.
std::string sha256(std::string_view bytes);

// The report that the text of write_json describes, where it can be read at all. Throws
// std::runtime_error naming what is wrong.
struct ReadReport {
  Report report;
  std::string schema, digest, expected_digest;
};
ReadReport read_report(const std::string& json);

}  // namespace plugrad::conformance
