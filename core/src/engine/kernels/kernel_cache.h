// Turns kernel ASTs into loaded kernels: in parallel, identical kernels once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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

class Promotion;

/// A kernel that can be launched, and its facts for reports.
struct ReadyKernel {
  std::shared_ptr<const KernelAst> ast;
  codegen::KernelCode code;
  std::shared_ptr<runtime::Kernel> kernel;
  uint32_t param_count = 0;  // buffers it takes: those of its AST without unused trailing ones
  uint64_t codegen_ns = 0;
  uint32_t launches = 0;                 // DEBUG marks the first
  std::shared_ptr<Promotion> promotion;  // of a frugal schedule to the full one; else null
};

KernelReport report_of(const ReadyKernel& ready);

struct KernelRequest {
  std::shared_ptr<const KernelAst> ast;  // null if `user` is complete by itself
  runtime::Device* device;
  UserKernelPtr user = nullptr;
  const codegen::KernelSchedule* schedule = nullptr;  // null: the one found or chosen
};

/// The settings that affect a kernel, constant within a plan.
struct KernelOptions {
  bool no_opt = false, fast_math = false, contract = true, tf32 = false, deterministic = false;
  bool frugal = false;  // kernels may be made with little code first
  uint32_t beam = 0;
  uint64_t lists = 0;  // hash of the schedule overrides
  static KernelOptions from_settings();
  uint64_t bits() const {
    return no_opt | fast_math << 1 | contract << 2 | tf32 << 3 | deterministic << 4 |
           uint64_t{beam} << 5 | uint64_t{frugal} << 37;
  }
};

/// Whether the settings leave it to this process to improve schedules while a program runs.
bool may_refine();

codegen::Options codegen_options(const KernelRequest& request, const KernelOptions& options);

/// Compiles a user's kernel given as source or kernel IR. Errors: User if neither fits the device;
/// CompileError.
std::shared_ptr<ReadyKernel> make_user_kernel(const UserKernelCode& kernel, runtime::Device& device,
                                              const KernelOptions& options);

/// Source texts of the requests, generated anew and not compiled; identical kernels once. Errors:
/// Unsupported and those of codegen.
std::vector<std::string> render(std::span<const KernelRequest> requests,
                                const KernelOptions& options);

/// Recently used kernels by AST, device and options. Requires the session's mutex.
class KernelCache {
 public:
  /// One ready kernel for each request. Errors: CompileError and those of codegen; the cache is
  /// then unchanged.
  std::vector<std::shared_ptr<ReadyKernel>> get(std::span<const KernelRequest> requests,
                                                const KernelOptions& options);
  /// The request for which the last get() failed first; none if it did not, or for another reason.
  std::optional<size_t> failed() const { return failed_; }
  /// Makes the request's kernel with schedule `list` and does not cache it. May be called from any
  /// thread. Errors: as get().
  static std::shared_ptr<ReadyKernel> make(const KernelRequest& request,
                                           const KernelOptions& options,
                                           const codegen::KernelSchedule& list);
  /// Makes the request's kernel with the full schedule and does not cache it; null if the code does
  /// not pay. Otherwise as above.
  using Pays = std::function<bool(const codegen::KernelCode&)>;
  static std::shared_ptr<ReadyKernel> make_full(const KernelRequest& request, KernelOptions options,
                                                const Pays& pays);
  /// Makes get() return `better` for such requests from now on.
  void replace(const KernelRequest& request, const KernelOptions& options,
               std::shared_ptr<ReadyKernel> better);
  uint64_t made() const { return made_; }
  uint64_t codegen_ns() const { return codegen_ns_; }
  size_t size() const { return recent_.size(); }
  uint64_t size_bytes() const { return recent_.size_bytes(); }
  void clear() { recent_.clear(); }

 private:
  // 256: the kernels of one large network.
  RecentCache<std::shared_ptr<ReadyKernel>> recent_{{4096, 256, 32 << 20}};
  uint64_t made_ = 0, codegen_ns_ = 0;
  std::optional<size_t> failed_;
};

}  // namespace plugrad::engine
