// Runs the tests of a session one by one: shrinks failing kernels and makes replay tokens.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "conformance/driver/replay.h"
#include "conformance/driver/session.h"

namespace plugrad::conformance {

// Index of the first test of each family that hung. Later tests get less time: a device that hangs
// in one test hangs in most, and would need minutes each.
class Hangs {
 public:
  std::chrono::nanoseconds limit_of(const Test& test, size_t place) const;
  void add(const Test& test, size_t place);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, size_t> first_;
};

class TestRunner {
 public:
  TestRunner(WorkerTarget target, const Options& options, Hangs& hangs)
      : session_(std::move(target), options.time_limit_factor), options_(options), hangs_(hangs) {}

  // nullopt if the run was interrupted. `place` is the test's index in the run.
  std::optional<TestResult> run(const Test& test, size_t place);
  std::optional<TestResult> replay(const Test& test, const Replay& replay);

 private:
  std::vector<std::byte> shrunk(const Test& test, uint64_t seed, TestResult& result,
                                const std::vector<std::byte>& kernel);
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  Session session_;
  const Options& options_;
  Hangs& hangs_;
};

}  // namespace plugrad::conformance
