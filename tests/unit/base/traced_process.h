// Programs that are traced, in tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/trace/trace.h"
#include "unit/base/temporary_directory.h"
#include "unit/base/trace_lines.h"

namespace plugrad {

inline void trace_ten_spans() {
  for (int i = 0; i < 10; ++i) trace::span(trace::Category::Stage, "expand", monotonic_ns() - 5000);
}

/// The log of a process that traces to `path`. A process has one trace, so each test starts a
/// process, which fails the test if it does not end with 0.
inline std::string log_of_tracing(
    const std::string& path, const std::function<void()>& before = [] {},
    const std::function<void()>& body = trace_ten_spans) {
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    before();
    // the trace is closed after static objects are destroyed
    auto* const log = new std::string(directory / "log");
    set_log_sink(
        [](std::string_view text, void* to) {
          std::ofstream(*static_cast<std::string*>(to), std::ios::app) << text;
        },
        log);
    change_settings([&](Settings& s) { s.trace_path = path; });
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status) << ", signal " << WTERMSIG(status);
  std::ifstream log(directory / "log");
  return {std::istreambuf_iterator<char>(log), {}};
}

inline size_t events_in(const std::vector<nlohmann::json>& blocks) {
  size_t count = 0;
  for (const nlohmann::json& block : blocks) count += block["count"].get<size_t>();
  return count;
}

}  // namespace plugrad
