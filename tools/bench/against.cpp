#include "against.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/check.h"

namespace plugrad::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kTurns = 9;

// Quotes a word for the shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The document printed by `program bench arguments… --json`; its messages go to stderr.
nlohmann::json run(const std::string& program, const Arguments& arguments) {
  std::string command = quoted(program) + " bench";
  for (const std::string& word : arguments) command += " " + quoted(word);
  std::FILE* pipe = popen((command + " --json").c_str(), "r");
  require(pipe != nullptr, "[bench] {} cannot be started", program);
  std::string text;
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, size);
  const int status = pclose(pipe);
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "[bench] {} failed{}", command,
          WIFEXITED(status) ? fmt::format(" with exit code {}", WEXITSTATUS(status)) : "");
  return nlohmann::json::parse(text);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The row of that name.
const nlohmann::json& row_of(const nlohmann::json& document, const std::string& name) {
  for (const nlohmann::json& row : document.at("results"))
    if (row.at("name") == name) return row;
  throw Error(ErrorKind::User, fmt::format("[bench] {} was not measured", name));
}

bench::Result compare_row(const std::string& name, const std::string& folder,
                          const std::string (&programs)[2], const Arguments& arguments) {
  std::vector<double> values[2];
  bench::Result result;
  result.name = name;
  for (int turn = 0; turn < kTurns; ++turn)
    for (int i = 0; i < 2; ++i) {
      const size_t side = static_cast<size_t>((turn + i) % 2);  // each starts equally often
      const nlohmann::json document = run(programs[side], arguments);
      const nlohmann::json& row = row_of(document, name);
      values[side].push_back(row.at("value").get<double>());
      if (side == 0) result.unit = row.at("unit").get<std::string>();
    }
  result.value = median(values[0]);
  result.peer = bench::Peer{folder, median(values[1])};
  result.higher_is_better = result.unit.ends_with("/s");
  return result;
}

}  // namespace

OtherBuild::OtherBuild(const std::string& folder)
    : folder_(folder), program_((fs::path(folder) / "bin/plugrad").string()) {
  if (access(program_.c_str(), X_OK) != 0)
    throw UsageError(fmt::format(
        "--against {}: there is no {}; name a build tree, as build/dev, in which plugrad was built",
        folder, program_));
}

std::vector<std::string> OtherBuild::row_names(const Arguments& arguments) const {
  Arguments all = arguments;
  all.emplace_back("--list");
  std::vector<std::string> names;
  for (const nlohmann::json& row : run(program_, all)) names.push_back(row.at("name"));
  return names;
}

void OtherBuild::compare(const std::vector<std::string>& names, const Arguments& arguments,
                         const bench::Report& report) const {
  const std::string programs[2] = {
      (fs::read_symlink("/proc/self/exe").parent_path() / "plugrad").string(), program_};
  const std::vector<std::string> theirs = row_names(arguments);
  const std::set<std::string> known(theirs.begin(), theirs.end());
  for (const std::string& name : names) {
    if (!known.contains(name)) {
      fmt::print(stderr, "plugrad: {} has no row {}\n", folder_, name);
      continue;
    }
    Arguments one = arguments;
    for (const char* word : {"--peers", "none", "--filter"}) one.emplace_back(word);
    one.push_back(name);
    report(compare_row(name, folder_, programs, one));
  }
}

}  // namespace plugrad::tools
