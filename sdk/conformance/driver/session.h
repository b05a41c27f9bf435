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
  TestResult run(const Test& test, uint64_t seed, std::span<const std::byte> payload = {});
  const std::vector<std::byte>& kernel() const { return kernel_; }
  // As `run`, with a limit of its own.
  TestResult run_within(std::chrono::nanoseconds limit, const Test& test, uint64_t seed,
                        std::span<const std::byte> payload);

  // The next test gets a new worker.
  void end_worker() { worker_.reset(); }

  // "CPU: AMD EPYC"; empty where the plugin or its device does not open.
  std::string describe_device();

 private:
  // Empty, or why there is no worker with the plugin open.
  std::string prepare(TestResult& result);
  void take_ending(const Test& test, TestResult& result);
  std::chrono::nanoseconds stretched(std::chrono::nanoseconds limit) const;

  WorkerTarget target_;
  double factor_;
  std::unique_ptr<Worker> worker_;
  std::vector<std::byte> kernel_;
  uint32_t refused_in_a_row_ = 0;  // times that the plugin could not be opened
  std::string refusal_;
};

}  // namespace plugrad::conformance
