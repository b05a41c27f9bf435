/// What a tensor would run: read-only views of its kernels, for people and tests.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

#include "plugrad/export.h"

namespace plugrad {

namespace engine {
struct KernelReport;
}

/// One loop of a kernel's AST.
struct KernelRange {
  uint32_t axis = 0;  ///< unique in the kernel, smaller is further out
  int64_t size = 0;
  bool reduces = false;  ///< closed by a reduction, otherwise over elements of outputs
};

/// One fused kernel as planned, and from Tensor::schedule() as compiled for its device. A cheap
/// copy; printed, it shows all of this.
class PLUGRAD_API Kernel {
 public:
  explicit Kernel(std::shared_ptr<const engine::KernelReport> report)
      : report_(std::move(report)) {}

  const std::string& name() const;          ///< a C identifier, unique by content
  const std::string& colored_name() const;  ///< with terminal colours: one for each kind of axis
  const std::string& device() const;        ///< "CPU:0"
  const std::string& source() const;        ///< rendered text; empty where the plugin renders none
  const std::string& ast() const;           ///< textual IR
  std::span<const KernelRange> ranges() const;  ///< the loops of the AST, outermost first
  const std::string& optimisations() const;     ///< can be given back: OptimisationScope
  int64_t flops() const;                        ///< floating-point operations of one launch
  int64_t bytes() const;                        ///< bytes that must move in one launch

 private:
  std::shared_ptr<const engine::KernelReport> report_;
};
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Kernel& kernel);

}  // namespace plugrad
