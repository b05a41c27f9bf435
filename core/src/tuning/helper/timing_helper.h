// Times and checks kernels in a helper process; restarts it when a kernel crashes it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "tuning/helper/messages.h"

namespace plugrad::tuning {

/// Path of the helper program, beside the library; empty if it is missing.
std::string timing_helper_path();

/// Environment variables with which the helper opens the same device with the same settings.
std::vector<std::string> helper_environment(const runtime::Device& device);

class TimingHelper {
 public:
  struct Timing {
    double seconds;             // of one launch; infinity if it failed or was clearly slower
    std::string problem;        // why it cannot run
    bool is_dangerous = false;  // it crashed, or its launch did not end
  };

  /// Limits in seconds for a launch and for compiling; exceeding one is a problem.
  struct Limits {
    double launch = 30, compile = 10;
  };

  /// Times kernels on the device. The helper process starts on first use.
  TimingHelper(runtime::Device& device, Limits limits);
  ~TimingHelper();
  TimingHelper(const TimingHelper&) = delete;
  TimingHelper& operator=(const TimingHelper&) = delete;

  /// May be called from any thread: ends the helper; requests in progress and later ones fail.
  void interrupt();

  void set_launch_limit(double seconds) { limits_.launch = seconds; }

  /// Sets the parameters for kernels of later calls; sent on the next call.
  void set_params(std::vector<ParamSpec> params);

  /// Errors: Device if the helper cannot be started or has too little memory.
  std::vector<Timing> time(std::span<const codegen::KernelCode* const> kernels,
                           const TimeSpec& spec);

  /// Empty if the results agree, otherwise how they differ or what failed. `whole` is used only
  /// with spec.is_sample.
  std::string check(const codegen::KernelCode& candidate, const codegen::KernelCode& reference,
                    const codegen::KernelCode& whole, const CheckSpec& spec);

  runtime::Device& device() const { return device_; }

  /// Processor time of all helpers so far.
  uint64_t helper_ns() const;

  /// The number of helpers that were lost.
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
  std::mutex mutex_;  // guards start and end of the helper
  bool is_interrupted_ = false;
  std::unique_ptr<Helper> helper_;
  uint64_t lost_helpers_ns_ = 0;
  uint32_t losses_ = 0;
};

}  // namespace plugrad::tuning
