// Post-processing of results: waivers, totals, advice, and helpers shared by the writers.
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
  // Reads a JSON file: [{"test": glob, "reason": text, "expires": "YYYY-MM-DD"}, …]. Throws
  // std::runtime_error with file, entry and key if malformed. `today` ("YYYY-MM-DD") replaces the
  // clock in tests.
  static Waivers read(const std::string& path, std::string_view today = {});

  // A failure with a matching unexpired waiver becomes Waived; the reason is prepended to its
  // message.
  void apply(TestResult& result);
  // Expired waivers and unused waivers.
  std::vector<std::string> notes() const;

 private:
  struct Waiver {
    std::string test, reason, expires;
    bool expired = false, used = false, matched = false;
  };
  std::string path_;
  std::vector<Waiver> waivers_;
};

// Recommended next steps: first the likely root cause of other failures, then optional features
// that the plugin lacks, ordered by the number of tests unlocked. `tests` has the requirements of
// each test.
std::vector<NextStep> next_steps(std::span<const TestResult> results, const Tests& tests);

// "3 tests", "1 test".
std::string counted(uint64_t count, std::string_view noun);
// A measured value as text: "0.50 ulp", "12.3 GB/s".
std::string describe_measure(const TestResult& test);
// "l1.memory" of "l1.memory.size.1".
std::string family_of(const std::string& id);
// The part of a path that a published report contains.
std::string file_name(const std::string& path);
// The command that reruns the test; empty without a token.
std::string replay_command(const Report& report, const TestResult& test);

// SHA-256 in hex.
std::string sha256(std::string_view bytes);

// The processor's name, its threads and the operating system.
std::string machine_name();
// `plugrad conformance --plugin …` with the options that name the device.
std::string command_of(const Options& options);

// Parses the text of write_json. Throws std::runtime_error with the error.
struct ReadReport {
  Report report;
  std::string schema, digest, expected_digest;
};
ReadReport read_report(const std::string& json);

}  // namespace plugrad::conformance
