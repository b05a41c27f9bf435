/// What a tensor would run: read-only views of its kernels, for people and tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plugrad/export.h"

namespace plugrad {

namespace engine {
struct KernelReport;
}

/// One fused kernel as planned and compiled for its device. A cheap copy.
class PLUGRAD_API Kernel {
 public:
  explicit Kernel(std::shared_ptr<const engine::KernelReport> report)
      : report_(std::move(report)) {}

  const std::string& name() const;           ///< a C identifier, unique by content
  const std::string& colored_name() const;   ///< with terminal colours: one for each kind of axis
  const std::string& device() const;         ///< "CPU:0"
  const std::string& source() const;         ///< rendered text; empty where the plugin renders none
  const std::string& ast() const;            ///< textual IR
  const std::string& optimisations() const;  ///< can be given back to codegen
  int64_t flops() const;                     ///< floating-point operations of one launch
  int64_t bytes() const;                     ///< bytes that must move in one launch

 private:
  std::shared_ptr<const engine::KernelReport> report_;
};

}  // namespace plugrad
