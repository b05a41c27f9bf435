// Runs the SDK's conformance suite, which does not depend on core; core only locates a device's
// plugin.
#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "base/file.h"
#include "command.h"
#include "conformance/selection.h"
#include "interruption.h"
#include "models.h"
#include "networks/report.h"
#include "plugrad/sdk/conformance.h"
#include "progress.h"
#include "runtime/discovery/plugin_discovery.h"
#include "runtime/runtime.h"

namespace plugrad::tools {
namespace {

namespace suite = conformance;
using conformance::Level;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}
std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

// "L1", "l1,perf".
std::vector<Level> parse_levels(const std::vector<std::string>& given) {
  std::vector<Level> levels;
  for (const std::string& list : given) {
    std::istringstream words(lower(list));
    for (std::string word; std::getline(words, word, ',');) {
      const auto found = std::find_if(std::begin(kLevels), std::end(kLevels),
                                      [&](const LevelName& level) { return word == level.name; });
      if (found == std::end(kLevels))
        throw UsageError(fmt::format("--level {}: the levels are L0, L1, L2, L3 and perf{}", word,
                                     did_you_mean(word, {"L0", "L1", "L2", "L3", "perf"})));
      levels.push_back(found->level);
    }
  }
  return levels;
}

template <class Number>
Number parse_limit(const char* what, const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(fmt::format("{} {}: not a whole number from 0 on", what, text));
  return number;
}

// 0 if not given: the suite's default.
uint32_t parse_jobs(const std::string& text) {
  if (text.empty()) return 0;
  const auto jobs = parse_limit<uint32_t>("--jobs", text);
  if (jobs < 1 || jobs > 64) throw UsageError(fmt::format("--jobs {}: from 1 to 64", text));
  return jobs;
}

uint32_t parse_index(const std::string& text) {
  return parse_limit<uint32_t>("device", text);
}

// "CPU" or "CPU:1": the plugin's path from the discovery records, without loading it.
void resolve_device(const std::string& text, suite::Options& options) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = upper(text.substr(0, colon));
  if (colon < text.size()) options.device_index = parse_index(text.substr(colon + 1));
  const std::vector<runtime::LoadRecord> records = runtime::Registry::instance().records();
  for (const runtime::LoadRecord& record : records) {
    const bool usable =
        record.state == runtime::LoadState::Available || record.state == runtime::LoadState::Loaded;
    if (!usable || record.manifest.device_name != name) continue;
    options.plugin_path = record.path;
    return;
  }
  throw UsageError(fmt::format("--device {}: no usable plugin has that device\n{}", text,
                               runtime::describe_records(records)));
}

// A file that is not a library is a usage error, not 1500 test failures.
void require_library(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    throw UsageError(fmt::format("--plugin {}: there is no such file", path));
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  if (std::string_view(magic, sizeof magic) != "\177ELF")
    throw UsageError(fmt::format("--plugin {}: it is no shared library (ELF)", path));
}

bool is_empty(const boost::program_options::variable_value& value) {
  if (const auto* text = boost::any_cast<std::string>(&value.value())) return text->empty();
  const auto* texts = boost::any_cast<std::vector<std::string>>(&value.value());
  return texts &&
         std::any_of(texts->begin(), texts->end(), [](const auto& text) { return text.empty(); });
}

// An empty option value would select all tests.
void require_sense(const Parsed& parsed) {
  for (const char* name : {"level", "filter", "replay", "waivers", "report", "seed"})
    if (parsed.has(name) && !parsed.values[name].defaulted() && is_empty(parsed.values[name]))
      throw UsageError(fmt::format("--{}: its value is empty", name));
  if (parsed.values["replay"].defaulted()) return;
  for (const char* name : {"level", "filter", "quick", "full"})
    if (parsed.has(name) && !parsed.values[name].defaulted())
      throw UsageError(fmt::format("--replay runs one test and takes no --{}", name));
}

suite::Options read_options(const Parsed& parsed) {
  require_sense(parsed);
  if (parsed.has("plugin") == parsed.has("device"))
    throw UsageError(
        fmt::format("give either --plugin or --device\nusage: {}", conformance_syntax().usage));
  if (parsed.has("quick") && parsed.has("full"))
    throw UsageError("give --quick or --full, not both");
  suite::Options options;
  options.device_index = parse_index(parsed.get<std::string>("index"));
  if (parsed.has("plugin"))
    options.plugin_path = parsed.get<std::string>("plugin");
  else
    resolve_device(parsed.get<std::string>("device"), options);
  require_library(options.plugin_path);
  options.levels = parse_levels(parsed.get<std::vector<std::string>>("level"));
  options.device_options = parse_key_values(parsed.get<std::vector<std::string>>("option"));
  options.plugin_options = parse_key_values(parsed.get<std::vector<std::string>>("plugin-option"));
  options.full = parsed.has("full");
  options.filter = parsed.get<std::string>("filter");
  options.seed = parse_limit<uint64_t>("--seed", parsed.get<std::string>("seed"));
  options.replay = parsed.get<std::string>("replay");
  options.waivers_path = parsed.get<std::string>("waivers");
  options.jobs = parse_jobs(parsed.get<std::string>("jobs"));
  options.time_limit_factor = parsed.get<double>("time-limit-factor");
  if (!(options.time_limit_factor > 0)) throw UsageError("--time-limit-factor is above 0");
  options.extra = model_tests({options.plugin_path, options.device_index, options.device_options,
                               options.time_limit_factor});
  return options;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  if (const int failed = replace_file(path.string(), parts))
    throw std::runtime_error(
        fmt::format("--report: {} cannot be written: {}", path.string(), file_error_text(failed)));
}

// Created before the run, which may take minutes.
void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw std::runtime_error(
        fmt::format("--report {}: the folder cannot be made: {}", folder, error.message()));
}

void write_reports(const std::string& folder, const suite::Report& report) {
  write_file(std::filesystem::path(folder) / "conformance.json", suite::write_json(report));
  write_file(std::filesystem::path(folder) / "conformance.xml", suite::write_junit(report));
  write_file(std::filesystem::path(folder) / "conformance.html", suite::write_html(report));
}

bool passed(const suite::Report& report) {
  const suite::Totals& totals = report.totals;
  return totals.fail + totals.crash + totals.timeout == 0 && suite::nothing_ran(report).empty();
}

int exit_code(const suite::Report& report) {
  if (report.interrupted) return interruption_exit_code();
  return passed(report) ? kSuccess : kFailure;
}

// The line of the level of the first advice.
std::string last_line(const Progress& progress, const suite::Report& report) {
  if (report.next.empty()) return progress.line_of(progress.telling_level());
  const suite::NextStep& next = report.next.front();
  return progress.line_of(next.level) + "   next: " + next.text.substr(0, next.text.find('\n'));
}

int run_and_report(const suite::Options& given, const Parsed& parsed) {
  suite::Options options = given;
  const bool json = parsed.has("json");
  const auto folder = parsed.get<std::string>("report");
  if (!folder.empty()) make_folder(folder);
  Progress progress(json);
  options.progress = [&](const suite::TestResult& result, size_t done, size_t total) {
    progress(result, done, total);
  };
  catch_interruption();
  options.interrupted = is_interrupted;
  const suite::Report report = is_of_networks(parsed) ? report_on_networks(options, parsed, folder)
                                                      : suite::run_suite(options);
  if (!folder.empty()) write_reports(folder, report);
  const std::string nothing = suite::nothing_ran(report);
  if (json) {
    fmt::print("{}\n", suite::write_json(report));
    if (!nothing.empty()) fmt::print(stderr, "plugrad conformance: {}\n", nothing);
    if (report.interrupted) fmt::print(stderr, "plugrad conformance: {}\n", report.notes.front());
    return exit_code(report);
  }
  progress.finish_level();
  fmt::print("\n{}", suite::write_text(report));
  if (!nothing.empty()) fmt::print("{}\n", nothing);
  fmt::print("{}\n", last_line(progress, report));
  return exit_code(report);
}

int verify(const std::string& path, bool json) {
  const auto bytes = read_file(path);
  if (!bytes)
    throw UsageError(
        fmt::format("--verify-report {} cannot be read: {}", path, file_error_text(errno)));
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const std::string wrong = suite::verify_report(text, model_tests({}));
  if (json)
    print_json({{"path", path}, {"verified", wrong.empty()}, {"reason", wrong}});
  else if (wrong.empty())
    fmt::print("{} is a report that this suite wrote\n", path);
  else
    fmt::print(stderr, "plugrad conformance: {}: {}\n", path, wrong);
  return wrong.empty() ? kSuccess : kFailure;
}

int list(const Parsed& parsed) {
  const bool full = parsed.has("full"), json = parsed.has("json");
  const std::vector<Level> levels = parse_levels(parsed.get<std::vector<std::string>>("level"));
  const std::string filter = parsed.get<std::string>("filter");
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::vector<suite::TestResult> tests = suite::list_tests(full);
  for (const suite::ExtraTest& test : model_tests({})) tests.push_back(test.described);
  for (const suite::TestResult& test : tests) {
    if (!levels.empty() && std::find(levels.begin(), levels.end(), test.level) == levels.end())
      continue;
    if (!filter.empty() && !suite::matches(filter, test.id)) continue;
    if (json)
      document.push_back({{"id", test.id}, {"level", to_string(test.level)}});
    else
      fmt::print("{:<5}{}\n", to_string(test.level), test.id);
  }
  if (json) print_json(document);
  return kSuccess;
}

int print_suite_version(bool json) {
  if (json)
    print_json({{"suite_version", suite::suite_version()}});
  else
    fmt::print("{}\n", suite::suite_version());
  return kSuccess;
}

}  // namespace

int judge_plugin(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, conformance_syntax());
  if (parsed.help) return kSuccess;
  if (parsed.has("list")) return list(parsed);
  if (parsed.has("suite-version")) return print_suite_version(parsed.has("json"));
  if (parsed.has("verify-report"))
    return verify(parsed.get<std::string>("verify-report"), parsed.has("json"));
  return run_and_report(read_options(parsed), parsed);
}

}  // namespace plugrad::tools
