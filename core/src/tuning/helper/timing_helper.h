// Times and checks kernels in a helper process, which is started again when a kernel takes it down.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "tuning/helper/messages.h"

namespace plugrad::tuning {

/// The helper's program, as it lies beside the library; empty where it is missing.
std::string timing_helper_path();

/// Environment variables of the helper, by which it opens the same device with the same settings.
std::vector<std::pair<std::string, std::string>> helper_environment(const runtime::Device& device);

class TimingHelper {
 public:
  struct Timing {
    double seconds;  // of one launch; infinity where there is a problem or it was clearly slower
    std::string problem;        // why it cannot run
    bool is_dangerous = false;  // it crashed, or its launch did not end
  };

  /// Seconds that a launch or compiling may take; what takes longer is a problem.
  struct Limits {
    double launch = 30, compile = 10;
  };

  /// A helper for the device, started when it is first needed.
  TimingHelper(runtime::Device& device, Limits limits);
  ~TimingHelper();
  TimingHelper(const TimingHelper&) = delete;
  TimingHelper& operator=(const TimingHelper&) = delete;

  /// Any thread: the helper ends, and what is asked of it now or later fails.
  void interrupt();

  void set_launch_limit(double seconds) { limits_.launch = seconds; }

  /// What the kernels of later calls take. Nothing is sent before they need it.
  void set_params(std::vector<ParamSpec> params);

  /// Errors: Device, where the helper cannot be started or its memory does not suffice.
  std::vector<Timing> time(std::span<const codegen::KernelCode* const> kernels,
                           const TimeSpec& spec);

  /// Empty where the values agree, otherwise how they differ or what went wrong. `whole` is used
  /// with spec.is_sample.
  std::string check(const codegen::KernelCode& candidate, const codegen::KernelCode& reference,
                    const codegen::KernelCode& whole, const CheckSpec& spec);

  runtime::Device& device() const { return device_; }

  /// Processor time of the helpers so far.
  uint64_t helper_ns() const;

  /// How often the helper was lost.
  uint32_t losses() const { return losses_; }

 private:
  struct Helper;
  struct Event;
  void start();
  void need_helper();
  Event next_event(double limit);
  void lose();
  void note(const Event& event, std::vector<uint32_t>& compiling,
            std::optional<uint32_t>& running) const;

  runtime::Device& device_;
  Limits limits_;
  std::vector<ParamSpec> params_;
  bool params_sent_ = false;
  std::mutex mutex_;  // of the helper's beginning and end
  bool is_interrupted_ = false;
  std::unique_ptr<Helper> helper_;
  uint64_t lost_helpers_ns_ = 0;
  uint32_t losses_ = 0;
};

}  // namespace plugrad::tuning
