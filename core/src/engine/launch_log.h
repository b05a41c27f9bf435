// Launches steps one after another, counts them, and tells what DEBUG asks for.
#pragma once

#include <span>

#include "base/clock.h"
#include "engine/kernels.h"
#include "engine/report.h"

namespace plugrad::engine {

/// Lives as long as one run of a plan; its end prints the line of DEBUG=1.
class LaunchLog {
 public:
  explicit LaunchLog(Statistics& statistics);
  ~LaunchLog();
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  void launch(ReadyKernel& kernel, std::span<runtime::Buffer* const> params);
  void copy(runtime::Buffer& dst, const runtime::Buffer& src);

 private:
  void tell_launch(const ReadyKernel& kernel, size_t params, uint64_t time_ns);
  void tell_copy(const runtime::Buffer& dst, const runtime::Buffer& src, uint64_t time_ns);

  Statistics& statistics_;
  const int debug_;
  const bool timed_;
  const uint64_t begin_ns_;
  const uint64_t kernels_before_, copies_before_;
  const runtime::Device* last_device_ = nullptr;
};

}  // namespace plugrad::engine
