// A choice, no rewrite.
// Decides the optimisations of a kernel: those given, none, or what the search by the model finds.
#include "codegen/passes/passes.h"
#include "codegen/search/climb.h"
#include "codegen/transforms/apply.h"

namespace plugrad::codegen {

void apply_schedule(Kernel& kernel) {
  if (kernel.options.schedule != nullptr) {
    for (const ScheduleStep& change : *kernel.options.schedule) apply(kernel, change);
  } else if (!kernel.options.no_opt) {
    apply_search(kernel);
  }
}

}  // namespace plugrad::codegen
