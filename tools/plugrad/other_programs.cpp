// Companions: programs beside this one that run some of its commands, because most of their code is
// needed by nothing else.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/child_process.h"
#include "command.h"
#include "plugrad/error.h"

namespace plugrad::tools {
namespace {

std::string target_of(std::string companion) {
  std::ranges::replace(companion, '-', '_');
  return companion + "_tool";
}

}  // namespace

int start_companion(const Command& command, const Arguments& arguments) {
  if (arguments == Arguments{"--help"} || arguments == Arguments{"-h"})
    return parse(arguments, command.syntax()), kSuccess;
  const std::string path = program_beside(command.companion);
  std::vector<char*> words = {const_cast<char*>(path.c_str()), const_cast<char*>(command.name)};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(path.c_str(), words.data());
  throw Error(ErrorKind::User,
              fmt::format("plugrad {} needs the program {}, which cannot be started: {}; build the "
                          "target {}{}, or install it beside plugrad",
                          command.name, path, std::strerror(errno), target_of(command.companion),
                          command.syntax == bench_syntax ? " with PLUGRAD_BUILD_BENCH=ON" : ""));
}

}  // namespace plugrad::tools
