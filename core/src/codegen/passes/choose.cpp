// A choice, no rewrite.
// Decides the optimisations of a kernel: those given, none, or what the search by the model finds.
#include "codegen/passes/passes.h"
#include "codegen/search/climb.h"
#include "codegen/transforms/apply.h"

namespace plugrad::codegen {

void choose(Kernel& kernel) {
  if (kernel.options.apply != nullptr) {
    for (const Optimisation& change : *kernel.options.apply) apply(kernel, change);
  } else if (!kernel.options.no_opt) {
    apply_search(kernel);
  }
}

}  // namespace plugrad::codegen
