// Kernels as people see them.
#include <algorithm>

#include "engine/parts.h"
#include "uop/printer.h"

namespace plugrad::engine {

KernelReport report_of(const ReadyKernel& ready) {
  const codegen::KernelCode& code = ready.code;
  KernelReport report;
  report.device = ready.kernel->device().name();
  report.name = code.name;
  report.colored_name = code.colored_name;
  report.optimisations = codegen::to_string(code.optimisations);
  report.ast = print(ready.ast->graph, ready.ast->sink, Numbering::FromZero);
  report.source = ready.kernel->source();
  std::ranges::copy(code.group_count, report.group_count);
  std::ranges::copy(code.local_size, report.local_size);
  report.flops = code.estimates.flops;
  report.bytes = code.estimates.bytes;
  return report;
}

std::vector<KernelReport> Session::kernels_of(States states) {
  const std::lock_guard guard(mutex_);
  safe_point();
  std::vector<KernelReport> reports;
  for (const auto& [device, roots] : missing_roots(states)) {
    const auto ready = ready_plan(roots, device == 0 ? default_device() : device);
    parts_->canonical.take_inputs();
    for (const auto& kernel : ready->kernels)
      if (kernel) reports.push_back(report_of(*kernel));
  }
  return reports;
}

}  // namespace plugrad::engine
