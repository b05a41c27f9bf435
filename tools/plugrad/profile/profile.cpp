// plugrad profile: runs a program, or reads the trace of one, and prints where its time went.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/check.h"
#include "base/child_process.h"
#include "base/log.h"
#include "command.h"
#include "command_line/text.h"
#include "profile/report.h"
#include "profile/run.h"
#include "temporary_folder.h"
#include "trace/trace.h"

namespace plugrad::tools {
namespace {

namespace fs = std::filesystem;

// Arguments of this command, and those of the program to run, its name first.
struct Line {
  Arguments own, program;
};

bool is_program(const std::string& word) {
  std::error_code ignored;
  if (!fs::is_regular_file(word, ignored) || ::access(word.c_str(), X_OK) != 0) return false;
  char begin[2] = {};
  std::ifstream(word, std::ios::binary).read(begin, sizeof begin);
  return !trace::is_gzip(std::as_bytes(std::span(begin)));
}

// True if the next argument is the value of this option.
bool takes_next(const std::string& argument, const std::vector<OptionText>& options) {
  if (argument == "-o") return true;
  return std::ranges::any_of(options, [&](const OptionText& option) {
    return option.takes_value && argument == "--" + option.name;
  });
}

// The program begins at "--", or at the first word if that is a command or a program.
Line split(const Arguments& arguments, const Syntax& syntax) {
  const auto options = option_texts(syntax);
  auto at = arguments.begin();
  while (at != arguments.end() && *at != "--" && at->starts_with('-'))
    at += takes_next(*at, options) && at + 1 != arguments.end() ? 2 : 1;
  Line line;
  if (at == arguments.end()) {
    line.own = arguments;
  } else if (*at == "--") {
    line = {{arguments.begin(), at}, {at + 1, arguments.end()}};
    if (line.program.empty())
      throw UsageError(fmt::format("-- is followed by no program\nusage: {}", syntax.usage));
  } else if (std::ranges::count(syntax.choices.at("trace"), *at) > 0) {
    line = {{arguments.begin(), at}, {at, arguments.end()}};
    line.program.insert(line.program.begin(), program_beside("plugrad"));
  } else if (is_program(*at)) {
    line = {{arguments.begin(), at}, {at, arguments.end()}};
    if (line.program[0].find('/') == std::string::npos) line.program[0].insert(0, "./");
  } else {
    line.own = arguments;
  }
  return line;
}

struct Request {
  std::string trace, before, keep;
  size_t top = 0;
  bool json = false;
};

Request read_request(const Parsed& parsed, const Line& line, const Syntax& syntax) {
  const auto words = parsed.get<Arguments>("trace");
  if (!words.empty() && !fs::exists(words[0]))
    throw UsageError(
        fmt::format("there is no file {}{}; a program of PATH is named after --\nusage: {}",
                    words[0], did_you_mean(words[0], syntax.choices.at("trace")), syntax.usage));
  if (line.program.empty() && words.size() != 1)
    throw UsageError(fmt::format("name one trace, or a program to run\nusage: {}", syntax.usage));
  const auto top = parsed.get<int>("top");
  if (top < 1) throw UsageError(fmt::format("--top must be 1 or more\nusage: {}", syntax.usage));
  Request request{.trace = words.empty() ? "" : words[0],
                  .before = parsed.has("compare") ? parsed.get<std::string>("compare") : "",
                  .keep = parsed.has("output") ? parsed.get<std::string>("output") : "",
                  .top = static_cast<size_t>(top),
                  .json = parsed.has("json")};
  if (line.program.empty() && !request.keep.empty())
    throw UsageError(fmt::format("-o is for a program that runs\nusage: {}", syntax.usage));
  return request;
}

trace::Trace read_with_warning(const std::string& path) {
  trace::Trace trace = trace::read_trace(path);
  if (!trace.warning.empty()) log_warning("{}", trace.warning);
  return trace;
}

void report(const Request& request, const std::string& name, const trace::Trace& trace,
            const std::optional<trace::Trace>& before) {
  const trace::Summary summary = trace::summarise(trace);
  nlohmann::ordered_json document;
  if (request.json)
    document = profile_json(trace, summary, request.top);
  else
    fmt::print("{}", profile_text(trace, summary, request.top));
  if (before) {
    const trace::Summary before_summary = trace::summarise(*before);
    const Comparison then{*before, before_summary, request.before};
    const Comparison now{trace, summary, name};
    if (request.json)
      document["compare"] = compare_json(then, now);
    else
      fmt::print("{}", compare_text(then, now, request.top));
  }
  if (request.json) print_json(document);
}

// Prints the document of `plugrad WORDS` with the profile, as `plugrad profile --json` has it, under
// "profile".
int run_json_with_profile(const Arguments& words, size_t top) {
  const TemporaryFolder folder("profile");
  const std::string output = folder.file("output.json");
  Arguments program = words;
  program.insert(program.begin(), program_beside("plugrad"));
  const RecordedRun recorded = run_and_record(program, {.stdout_file = output});
  std::ifstream file(output);
  nlohmann::ordered_json document = nlohmann::ordered_json::parse(file, nullptr, false);
  if (document.is_discarded()) return recorded.exit_code;  // the program said why
  if (recorded.trace)
    document["profile"] = profile_json(*recorded.trace, trace::summarise(*recorded.trace), top);
  print_json(document);
  return recorded.exit_code;
}

}  // namespace

int run_profile(const Arguments& arguments) {
  const Syntax syntax = profile_syntax();
  const Line line = split(arguments, syntax);
  const Parsed parsed = parse(line.own, syntax);
  if (parsed.help) return kSuccess;
  const Request request = read_request(parsed, line, syntax);
  std::optional<trace::Trace> before;
  if (!request.before.empty()) before = read_with_warning(request.before);
  if (line.program.empty()) {
    report(request, request.trace, read_with_warning(request.trace), before);
    return kSuccess;
  }
  const RecordedRun recorded =
      run_and_record(line.program, {.stdout_to_stderr = request.json, .keep = request.keep});
  if (!recorded.trace) return recorded.exit_code;
  if (!recorded.trace->warning.empty()) log_warning("{}", recorded.trace->warning);
  Arguments words = line.program;
  words[0] = fs::path(words[0]).filename().string();
  report(request, fmt::format("{}", fmt::join(words, " ")), *recorded.trace, before);
  return recorded.exit_code;
}

int run_run_with_profile(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, run_syntax());
  if (parsed.help) return kSuccess;
  Arguments line = {"run"};
  std::ranges::remove_copy(arguments, std::back_inserter(line), "--profile");
  if (!parsed.has("json")) return run_profile(line);
  const auto top = parse({}, profile_syntax()).get<int>("top");
  return run_json_with_profile(line, static_cast<size_t>(top));
}

}  // namespace plugrad::tools
