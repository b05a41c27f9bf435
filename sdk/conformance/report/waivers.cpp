// Reads the waivers file: known failures, with reason and expiry date.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/files.h"
#include "conformance/report/report.h"
#include "conformance/selection.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kMostWaiverBytes = 16 << 20;

// A valid calendar date, year-month-day: sorts chronologically as text.
bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  int number[3] = {};
  const size_t begins[] = {0, 5, 8}, lengths[] = {4, 2, 2};
  for (int i = 0; i < 3; ++i)
    for (char c : text.substr(begins[i], lengths[i])) {
      if (c < '0' || c > '9') return false;
      number[i] = number[i] * 10 + (c - '0');
    }
  return std::chrono::year_month_day(std::chrono::year(number[0]),
                                     std::chrono::month(static_cast<unsigned>(number[1])),
                                     std::chrono::day(static_cast<unsigned>(number[2])))
      .ok();
}

std::string today_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

[[noreturn]] void refuse_waivers(const std::string& path, const std::string& what) {
  throw std::runtime_error(
      fmt::format("waivers file {}: {}; it holds [{{\"test\": glob, \"reason\": text, \"expires\": "
                  "\"YYYY-MM-DD\"}}, …]",
                  path, what));
}

std::string waiver_text(const std::string& path, size_t number, const nlohmann::json& entry,
                        const char* key) {
  if (!entry.contains(key)) refuse_waivers(path, fmt::format("entry {} lacks \"{}\"", number, key));
  if (!entry[key].is_string() || entry[key].get<std::string>().empty())
    refuse_waivers(path, fmt::format("\"{}\" of entry {} is no text", key, number));
  return entry[key];
}

nlohmann::json parse_list(const std::string& path) {
  const std::string text = read_whole_file(path, kMostWaiverBytes);
  if (nests_too_deep(text)) refuse_waivers(path, "it nests too deeply");
  nlohmann::json list;
  try {
    list = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    refuse_waivers(path, fmt::format("no JSON (byte {})", error.byte));
  }
  if (!list.is_array()) refuse_waivers(path, "not a list");
  return list;
}

}  // namespace

Waivers Waivers::read(const std::string& path, std::string_view today) {
  const std::string day = today.empty() ? today_utc() : std::string(today);
  Waivers waivers;
  waivers.path_ = path;
  for (const nlohmann::json& entry : parse_list(path)) {
    const size_t number = waivers.waivers_.size() + 1;
    if (!entry.is_object()) refuse_waivers(path, fmt::format("entry {} is no object", number));
    for (const auto& [key, value] : entry.items())
      if (key != "test" && key != "reason" && key != "expires")
        refuse_waivers(path, fmt::format("entry {} has an unknown key \"{}\"", number, key));
    Waiver waiver;
    waiver.test = waiver_text(path, number, entry, "test");
    waiver.reason = waiver_text(path, number, entry, "reason");
    waiver.expires = waiver_text(path, number, entry, "expires");
    if (!is_date(waiver.expires))
      refuse_waivers(
          path, fmt::format("\"expires\" of entry {} is \"{}\", no date", number, waiver.expires));
    waiver.expired = waiver.expires < day;
    waivers.waivers_.push_back(std::move(waiver));
  }
  return waivers;
}

void Waivers::apply(TestResult& result) {
  for (Waiver& waiver : waivers_) {
    if (!matches(waiver.test, result.id)) continue;
    waiver.matched = true;
    if (waiver.expired || !is_failure(result.status)) continue;
    waiver.used = true;
    result.message = fmt::format("waived until {}: {}. The {}: {}", waiver.expires, waiver.reason,
                                 to_string(result.status), result.message);
    result.status = Status::Waived;
    return;
  }
}

std::vector<std::string> Waivers::notes() const {
  std::vector<std::string> notes;
  for (const Waiver& waiver : waivers_) {
    if (waiver.expired)
      notes.push_back(fmt::format("{}: the waiver of {} expired on {} and waives nothing", path_,
                                  waiver.test, waiver.expires));
    else if (!waiver.matched)
      notes.push_back(
          fmt::format("{}: the waiver of {} names no test of this run", path_, waiver.test));
    else if (!waiver.used)
      notes.push_back(fmt::format(
          "{}: the waiver of {} is not needed: nothing that it names failed", path_, waiver.test));
  }
  return notes;
}

}  // namespace plugrad::conformance
