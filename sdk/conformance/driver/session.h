// Tests of one plugin, each in a worker; what ends a worker is a result.
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
  // `factor` stretches every time limit.
  Session(WorkerTarget target, double factor) : target_(std::move(target)), factor_(factor) {}

  // Starts a worker where there is none. The kernel that the test was about is in `kernel`.
  const std::vector<std::byte>& kernel() const { return kernel_; }
  TestResult run_within(std::chrono::nanoseconds limit, const Test& test, uint64_t seed,
                        std::span<const std::byte> payload);

 private:
  // Empty, or why there is no worker with the plugin open.
  std::string prepare(TestResult& result);
  void take_ending(const Test& test, std::chrono::nanoseconds limit, TestResult& result);
  std::chrono::nanoseconds stretched(std::chrono::nanoseconds limit) const;

  WorkerTarget target_;
  double factor_;
  std::unique_ptr<Worker> worker_;
  std::vector<std::byte> kernel_;
  uint32_t refused_in_a_row_ = 0;  // times that the plugin could not be opened
  std::string refusal_;
};

// Whether there is anything to judge.
struct Trial {
  std::string device;  // "CPU: AMD EPYC"; "CPU" where there is no device
  std::string driver;
  std::string refusal;  // why the plugin or its device cannot be opened; empty: they can
};
Trial try_device(const WorkerTarget& target, double factor);

}  // namespace plugrad::conformance
