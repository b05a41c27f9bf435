/// Read-only views of the kernels that a tensor would run, for users and tests.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

#include "plugrad/export.h"

namespace plugrad {

namespace detail {
struct HandleAccess;
struct KernelReport;
}  // namespace detail

/// One loop of a kernel's AST.
struct KernelRange {
  uint32_t axis = 0;  ///< unique in the kernel, smaller is further out
  int64_t size = 0;
  bool reduces = false;  ///< true: the loop of a reduction; false: a loop over output elements
};

/// One fused kernel as planned; from Tensor::schedule() also as compiled for its device. Copies
/// share the report. Printing shows all members.
class PLUGRAD_API Kernel {
 public:
  const std::string& name() const;          ///< a C identifier, unique by content
  const std::string& colored_name() const;  ///< with terminal colours: one for each kind of axis
  const std::string& device() const;        ///< "CPU:0"
  const std::string& source() const;        ///< rendered text; empty if the plugin renders none
  const std::string& ast() const;           ///< textual IR
  std::span<const KernelRange> ranges() const;  ///< the loops of the AST, outermost first
  /// the schedule of the kernel, as OptimisationScope takes it
  const std::string& optimisations() const;
  int64_t flops() const;  ///< floating-point operations of one launch
  int64_t bytes() const;  ///< bytes of memory traffic that one launch needs at least
  /// operations that one launch executes: a multiply-add counts as two, a division or a function
  /// such as exp as several, an address as none; 0 before code generation
  int64_t work() const;

 private:
  friend struct detail::HandleAccess;
  explicit Kernel(std::shared_ptr<const detail::KernelReport> report)
      : report_(std::move(report)) {}

  std::shared_ptr<const detail::KernelReport> report_;
};
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Kernel& kernel);

/// Text for people: the last 256 computations for which kernels had to be looked up or compiled,
/// oldest first. Of each the first result, the line of the program if that is known, the kernels
/// compiled, and what differs from the last computation of the same operations: a number, a shape,
/// a dtype, a device, settings. Jit::explain() does so for a jitted function.
PLUGRAD_API std::string explain();

}  // namespace plugrad
