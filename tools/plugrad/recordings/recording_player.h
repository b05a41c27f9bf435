// Repeats the calls of a recording on a device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/checks/compare/kernel_lines.h"
#include "runtime/checks/record/recorded_call.h"
#include "runtime/device/device.h"

namespace plugrad::tools {

/// Bytes that the recorded program read from its device, and those of the repetition.
struct PlayedRead {
  uint64_t call = 0, buffer = 0, bytes = 0;
  std::string recorded_hash, hash;
  bool is_equal = false;
  std::string first_difference;  // e.g. "[12] is 3, it was 4"; needs the recorded bytes
};

class RecordingPlayer {
 public:
  explicit RecordingPlayer(runtime::Device& device) : device_(device) {}

  /// Errors: User for a call that does not fit the earlier ones; those of the device.
  void play(const runtime::RecordedCall& call);

  /// Called before each launch, with the kernel's AST as text and its buffers.
  using Observer = std::function<void(
      const std::string& name, const std::string& ast, const runtime::KernelLines& lines,
      std::span<runtime::Buffer* const> buffers, const runtime::Launch& launch)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  struct PlayedKernel {
    std::string name, ast;
    runtime::KernelLines lines;
    std::shared_ptr<runtime::Kernel> kernel;  // null: the device lacks an operation
  };
  /// Replaces the launches.
  using Launcher = std::function<void(const runtime::RecordedCall& call, const PlayedKernel& kernel,
                                      const runtime::Launch& launch)>;
  void launch_by(Launcher launcher) { launcher_ = std::move(launcher); }
  /// Kernels of these numbers are not compiled.
  void leave_out(std::set<uint64_t> kernels) { left_out_ = std::move(kernels); }

  const std::vector<PlayedRead>& reads() const { return reads_; }
  uint64_t launches() const { return launches_; }
  /// Kernels that ran on REFERENCE, each with what the device lacks.
  const std::map<std::string, std::string>& moved() const { return moved_; }
  bool lacks_contents() const { return lacks_contents_; }

 private:
  void make_kernel(const runtime::RecordedCall& call);
  void launch(const runtime::RecordedCall& call);
  void launch_elsewhere(PlayedKernel& kernel, const std::vector<runtime::Buffer*>& buffers,
                        const runtime::Launch& launch);
  void read(const runtime::RecordedCall& call);
  runtime::Buffer& buffer(const runtime::RecordedCall& call, const char* key = "buffer");

  runtime::Device& device_;
  std::map<uint64_t, std::shared_ptr<runtime::Buffer>> buffers_;
  std::map<uint64_t, uint32_t> dtypes_;  // of buffers, from the kernels that use them
  std::map<uint64_t, PlayedKernel> kernels_;
  std::map<std::string, std::string> moved_;
  std::vector<PlayedRead> reads_;
  uint64_t calls_ = 0, launches_ = 0;
  bool lacks_contents_ = false;
  Observer observer_;
  Launcher launcher_;
  std::set<uint64_t> left_out_;
};

}  // namespace plugrad::tools
