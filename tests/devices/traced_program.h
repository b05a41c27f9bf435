// Programs whose traces tests read.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/settings.h"
#include "unit/base/temporary_directory.h"
#include "unit/base/trace_lines.h"

namespace plugrad {

/// A trace, and what its program counted.
struct Traced {
  TraceLines lines;
  nlohmann::json counted;
};
/// A process has one trace, so the program runs in a process.
inline Traced trace_of(const std::function<nlohmann::json()>& program, bool rules = false) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    change_settings([&](Settings& s) {
      s.trace_path = path;
      s.trace_rules = rules;
      s.tune = false;
    });
    std::ofstream(directory / "counted") << program().dump();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::ifstream counted(directory / "counted");
  return {trace_lines(path), nlohmann::json::parse(counted, nullptr, false)};
}

}  // namespace plugrad
