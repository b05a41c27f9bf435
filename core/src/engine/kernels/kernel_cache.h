// Kernel ASTs become loaded kernels: in parallel, identical ones once.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/hash.h"
#include "codegen/codegen.h"
#include "engine/kernels/user_kernels.h"
#include "engine/recent_cache.h"
#include "engine/report.h"
#include "runtime/device/device.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// A kernel that can be launched, and what it is told about.
struct ReadyKernel {
  std::shared_ptr<const KernelAst> ast;
  codegen::KernelCode code;
  std::shared_ptr<runtime::Kernel> kernel;
  uint32_t param_count = 0;  // buffers it takes: those of its AST, less unused ones at the end
  uint64_t codegen_ns = 0;
  uint32_t launches = 0;  // DEBUG marks the first
};

/// What people are told of it.
KernelReport report_of(const ReadyKernel& ready);

struct KernelRequest {
  std::shared_ptr<const KernelAst> ast;  // null where `user` says all
  runtime::Device* device;
  UserKernelPtr user = nullptr;
};

/// The settings that a kernel depends on, fixed for one plan.
struct KernelOptions {
  bool no_opt = false, fast_math = false, contract = true, tf32 = false, deterministic = false;
  uint32_t beam = 0;
  uint64_t lists = 0;  // a hash of those that kernels are given
  static KernelOptions from_settings();
  uint64_t bits() const {
    return no_opt | fast_math << 1 | contract << 2 | tf32 << 3 | deterministic << 4 |
           uint64_t{beam} << 5;
  }
};

/// What code generation is asked for.
codegen::Options codegen_options(const KernelRequest& request, const KernelOptions& options);

/// A user's kernel as source or kernel IR. Errors: User where neither fits the device;
/// CompileError.
std::shared_ptr<ReadyKernel> make_user_kernel(const UserKernelCode& kernel, runtime::Device& device,
                                              const KernelOptions& options);

/// Source texts of the requests, generated and rendered anew and not compiled; identical kernels
/// once. Errors: Unsupported and what codegen throws.
std::vector<std::string> render(std::span<const KernelRequest> requests,
                                const KernelOptions& options);

/// Ready kernels that this process used lately, by AST, device and options. Used under the
/// session's mutex.
class KernelCache {
 public:
  /// One ready kernel a request. Errors: CompileError and what codegen throws; the cache stays as
  /// it was.
  std::vector<std::shared_ptr<ReadyKernel>> get(std::span<const KernelRequest> requests,
                                                const KernelOptions& options);
  /// The request's kernel with that list instead of its own, not kept here. Any thread. Errors: as
  /// get().
  static std::shared_ptr<ReadyKernel> make(const KernelRequest& request,
                                           const KernelOptions& options,
                                           const std::vector<codegen::Optimisation>& list);
  /// What get() gives from now on for requests like that.
  void replace(const KernelRequest& request, const KernelOptions& options,
               std::shared_ptr<ReadyKernel> better);
  uint64_t made() const { return made_; }
  uint64_t codegen_ns() const { return codegen_ns_; }
  size_t size() const { return recent_.size(); }
  uint64_t size_bytes() const { return recent_.size_bytes(); }
  void clear() { recent_.clear(); }

 private:
  // 256 kernels are those of a large network.
  RecentCache<std::shared_ptr<ReadyKernel>> recent_{{4096, 256, 32 << 20}};
  uint64_t made_ = 0, codegen_ns_ = 0;
};

}  // namespace plugrad::engine
