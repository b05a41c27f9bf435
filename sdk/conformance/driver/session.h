// Runs tests of one plugin in a worker; the end of a worker is a test result.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conformance/test.h"
#include "conformance/worker/worker.h"

namespace plugrad::conformance {

class Session {
 public:
  // `factor` scales all time limits.
  Session(WorkerTarget target, double factor) : target_(std::move(target)), factor_(factor) {}

  // Starts a worker if none is running. The test's kernel is in `kernel`.
  const std::vector<std::byte>& kernel() const { return kernel_; }
  TestResult run_within(std::chrono::nanoseconds limit, const Test& test, uint64_t seed,
                        std::span<const std::byte> payload);

 private:
  // Empty, or the reason that no worker has the plugin open.
  std::string prepare(TestResult& result);
  void take_ending(const Test& test, std::chrono::nanoseconds limit, TestResult& result);
  std::chrono::nanoseconds stretched(std::chrono::nanoseconds limit) const;

  WorkerTarget target_;
  double factor_;
  std::unique_ptr<Worker> worker_;
  std::vector<std::byte> kernel_;
  uint32_t refused_in_a_row_ = 0;  // consecutive failures to open the plugin
  std::string refusal_;
};

// Result of opening the plugin before a run.
struct Trial {
  std::string device;  // "CPU: AMD EPYC"; "CPU" without a device
  std::string driver;
  std::string refusal;  // reason that the plugin or device cannot be opened; empty: none
};
Trial try_device(const WorkerTarget& target, double factor);

}  // namespace plugrad::conformance
