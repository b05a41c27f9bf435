// Writes the report as JSON, and reads it.
#include "nlohmann/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "conformance/files.h"
#include "conformance/report/report.h"
#include "markup/clean_text.h"

namespace plugrad::conformance {
namespace {

using markup::clean_text;
using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, std::string TestResult::*> kTexts[] = {
    {"message", &TestResult::message}, {"worst_input", &TestResult::worst_input},
    {"replay", &TestResult::replay},   {"ir", &TestResult::ir},
    {"op", &TestResult::op},           {"dtype", &TestResult::dtype},
    {"stack", &TestResult::stack},
};
constexpr std::pair<const char*, std::string Report::*> kFacts[] = {
    {"device", &Report::device},
    {"driver", &Report::driver},
    {"plugin", &Report::plugin_path},
    {"plugin_version", &Report::plugin_version},
    {"suite_version", &Report::suite_version},
    {"machine", &Report::machine},
};

// JSON has no infinity and no NaN.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json to_json(const TestResult& test) {
  Json json = {{"id", clean_text(test.id)},
               {"level", to_string(test.level)},
               {"status", to_string(test.status)}};
  json["metric"] = clean_text(test.metric);
  json["worst"] = test.metric.empty() ? Json(nullptr) : number(test.worst);
  json["ms"] = std::round(test.milliseconds * 1000) / 1000;
  json["replay"] = clean_text(test.replay);
  for (const auto& [key, field] : kTexts)
    if (!(test.*field).empty()) json[key] = clean_text(test.*field);
  return json;
}

Json to_json(const std::vector<std::string>& lines) {
  Json json = Json::array();
  for (const std::string& line : lines) json.push_back(clean_text(line));
  return json;
}

Json selection_of(const Report& report) {
  Json levels = Json::array();
  for (Level level : report.levels) levels.push_back(to_string(level));
  return {{"levels", levels},
          {"full", report.full},
          {"filter", clean_text(report.filter)},
          {"replay", clean_text(report.replay)}};
}

// The digest covers the document without the digest and without spaces.
std::string digest_of(Json document) {
  document.erase("digest");
  return "sha256:" + sha256(document.dump());
}

Json to_json(const Report& report) {
  Json json = {{"schema", kReportSchema}};
  for (const auto& [key, field] : kFacts) json[key] = clean_text(report.*field);
  json["plugin"] = clean_text(file_name(report.plugin_path));
  json["seed"] = report.seed;
  json["jobs"] = report.jobs;
  json["seconds"] = std::round(report.seconds * 1000) / 1000;
  json["selection"] = selection_of(report);
  Totals totals = report.totals;
  for (Status status : kStatuses) json["totals"][to_string(status)] = total_of(totals, status);
  if (report.interrupted) json["interrupted"] = true;
  json["next"] = Json::array();
  for (const NextStep& step : report.next) json["next"].push_back(clean_text(step.text));
  json["notes"] = to_json(report.notes);
  json["tests"] = Json::array();
  for (const TestResult& test : report.tests) json["tests"].push_back(to_json(test));
  json["digest"] = digest_of(json);
  return json;
}

// Rejects duplicate keys, which parsers interpret differently.
Json parse_strictly(const std::string& text) {
  if (nests_too_deep(text)) throw std::runtime_error("it nests too deeply");
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw std::runtime_error(fmt::format("the key {} stands twice in one object", parsed.dump()));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    throw std::runtime_error(fmt::format("no JSON (byte {})", error.byte));
  }
}

const Json& member(const Json& json, const char* key, const std::string& where) {
  if (!json.is_object() || !json.contains(key))
    throw std::runtime_error(fmt::format("{} lacks \"{}\"", where, key));
  return json[key];
}

template <class T>
T value(const Json& json, const char* key, const std::string& where) {
  const Json& found = member(json, key, where);
  bool good = false;
  if constexpr (std::is_same_v<T, std::string>) good = found.is_string();
  if constexpr (std::is_same_v<T, uint64_t>) good = found.is_number_unsigned();
  if constexpr (std::is_same_v<T, double>) good = found.is_number();
  if constexpr (std::is_same_v<T, bool>) good = found.is_boolean();
  if (!good) throw std::runtime_error(fmt::format("\"{}\" of {} has the wrong type", key, where));
  return found.get<T>();
}

template <class Values>
auto by_name(const Values& values, const std::string& name, const char* what,
             const std::string& where) {
  for (auto each : values)
    if (name == to_string(each)) return each;
  throw std::runtime_error(fmt::format("\"{}\" of {} is no {}", name, where, what));
}

double read_worst(const Json& test, const std::string& where) {
  const Json& worst = member(test, "worst", where);
  if (worst.is_null()) return 0;
  if (worst == "inf") return INFINITY;
  if (worst == "-inf") return -INFINITY;
  if (worst == "nan") return NAN;
  return value<double>(test, "worst", where);
}

TestResult read_test(const Json& json, size_t number) {
  TestResult test;
  test.id = value<std::string>(json, "id", fmt::format("test {}", number));
  const std::string where = "test " + test.id;
  test.level = by_name(kLevels, value<std::string>(json, "level", where), "level", where);
  test.status = by_name(kStatuses, value<std::string>(json, "status", where), "status", where);
  test.metric = value<std::string>(json, "metric", where);
  test.worst = read_worst(json, where);
  test.milliseconds = value<double>(json, "ms", where);
  test.replay = value<std::string>(json, "replay", where);
  for (const auto& [key, field] : kTexts)
    if (json.contains(key)) test.*field = value<std::string>(json, key, where);
  return test;
}

std::vector<std::string> read_lines(const Json& json, const char* key) {
  const Json& list = member(json, key, "the report");
  if (!list.is_array()) throw std::runtime_error(fmt::format("\"{}\" is no list", key));
  std::vector<std::string> lines;
  for (const Json& line : list) {
    if (!line.is_string()) throw std::runtime_error(fmt::format("\"{}\" holds no text", key));
    lines.push_back(line);
  }
  return lines;
}

void read_selection(const Json& json, Report& report) {
  const Json& selection = member(json, "selection", "the report");
  for (const std::string& name : read_lines(selection, "levels"))
    report.levels.push_back(by_name(kLevels, name, "level", "the selection"));
  report.full = value<bool>(selection, "full", "the selection");
  report.filter = value<std::string>(selection, "filter", "the selection");
  report.replay = value<std::string>(selection, "replay", "the selection");
}

}  // namespace

std::string write_json(const Report& report, bool indented) {
  return to_json(report).dump(indented ? 1 : -1) + "\n";
}

ReadReport read_report(const std::string& text) {
  const Json json = parse_strictly(text);
  ReadReport read;
  Report& report = read.report;
  read.schema = value<std::string>(json, "schema", "the report");
  if (read.schema != kReportSchema)
    throw std::runtime_error(
        fmt::format("the schema is \"{}\", this suite reads \"{}\"", read.schema, kReportSchema));
  for (const auto& [key, field] : kFacts)
    report.*field = value<std::string>(json, key, "the report");
  report.seed = value<uint64_t>(json, "seed", "the report");
  report.jobs = static_cast<uint32_t>(value<uint64_t>(json, "jobs", "the report"));
  report.seconds = value<double>(json, "seconds", "the report");
  read_selection(json, report);
  const Json& totals = member(json, "totals", "the report");
  for (Status status : kStatuses)
    total_of(report.totals, status) = value<uint64_t>(totals, to_string(status), "the totals");
  report.interrupted = json.value("interrupted", false);
  for (std::string& line : read_lines(json, "next")) report.next.push_back({{}, std::move(line)});
  report.notes = read_lines(json, "notes");
  const Json& tests = member(json, "tests", "the report");
  if (!tests.is_array()) throw std::runtime_error("\"tests\" is no list");
  for (const Json& test : tests) report.tests.push_back(read_test(test, report.tests.size() + 1));
  read.digest = value<std::string>(json, "digest", "the report");
  read.expected_digest = digest_of(json);
  return read;
}

}  // namespace plugrad::conformance
