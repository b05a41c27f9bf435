#include <fmt/format.h>

#include "conformance/report/report.h"

namespace plugrad::conformance {

uint64_t& total_of(Totals& totals, Status status) {
  uint64_t* const all[] = {&totals.pass,   &totals.fail,  &totals.unsupported,
                           &totals.waived, &totals.crash, &totals.timeout};
  return *all[static_cast<size_t>(status)];
}

Totals count(std::span<const TestResult> tests) {
  Totals totals;
  for (const TestResult& test : tests) ++total_of(totals, test.status);
  return totals;
}

bool is_failure(Status status) {
  return status == Status::Fail || status == Status::Crash || status == Status::Timeout;
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string describe_measure(const TestResult& test) {
  if (test.metric.empty()) return {};
  return fmt::format("{:.3g} {}", test.worst, test.metric);
}

std::string family_of(const std::string& id) {
  return id.substr(0, id.find('.', id.find('.') + 1));
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string replay_command(const Report& report, const TestResult& test) {
  if (test.replay.empty()) return {};
  return fmt::format("{} --replay {}", report.command, test.replay);
}

}  // namespace plugrad::conformance
