// plugrad bench and plugrad conformance: programs of their own beside this one, because most of
// their code is needed by nothing else.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/child_process.h"
#include "command.h"
#include "plugrad/error.h"

namespace plugrad::tools {
namespace {

// Becomes the program of that name with the same arguments, streams and process id.
int become(const char* name, const Syntax& syntax, const Arguments& arguments, const char* remedy) {
  if (parse(arguments, syntax).help) return kSuccess;
  const std::string path = program_beside(name);
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(path.c_str(), words.data());
  throw Error(ErrorKind::User,
              path + " cannot be started: " + std::strerror(errno) + "; " + remedy);
}

}  // namespace

int run_bench(const Arguments& arguments) {
  return become("plugrad-bench", bench_syntax(), arguments,
                "configure with PLUGRAD_BUILD_BENCH=ON and build it");
}

int run_conformance(const Arguments& arguments) {
  return become("plugrad-conformance", conformance_syntax(), arguments,
                "build the target plugrad_conformance_tool");
}

}  // namespace plugrad::tools
