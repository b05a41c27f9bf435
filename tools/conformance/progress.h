// Progress of `plugrad conformance`: one line per level.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "plugrad/sdk/conformance.h"

namespace plugrad::tools {

struct LevelName {
  conformance::Level level;
  const char* name;
  const char* title;
};
inline constexpr LevelName kLevels[] = {{conformance::Level::L0, "l0", "L0 loadable"},
                                        {conformance::Level::L1, "l1", "L1 core"},
                                        {conformance::Level::L2, "l2", "L2 full"},
                                        {conformance::Level::L3, "l3", "L3 async"},
                                        {conformance::Level::Perf, "perf", "perf"}};

class Progress {
 public:
  /// `silent`: standard output is machine-readable. If `log` is not a terminal, it gets a line
  /// every `interval`.
  explicit Progress(bool silent, std::FILE* log = stderr,
                    std::chrono::milliseconds interval = std::chrono::seconds(10));

  void operator()(const conformance::TestResult& result, size_t done, size_t total);
  void finish_level();

  /// The line of a level, without advice: "L1 core  185 passed   0 failed".
  std::string line_of(conformance::Level level) const;
  /// The first level with a failure, or the last level.
  conformance::Level telling_level() const;

 private:
  struct Line {
    conformance::Level level;
    uint64_t counts[6];  // indexed by status
  };
  static std::string text(const Line& line);

  void log_now_and_then(const conformance::TestResult& result, size_t done, size_t total);

  bool silent_, moving_;
  std::FILE* log_;
  std::chrono::milliseconds interval_;
  std::chrono::steady_clock::time_point logged_ = std::chrono::steady_clock::now();
  std::vector<Line> lines_;
};

}  // namespace plugrad::tools
