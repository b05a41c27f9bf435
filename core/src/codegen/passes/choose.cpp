// Decides the optimisations of a kernel: those given, none, or what the search by the model finds.
#include "codegen/passes/passes.h"
#include "codegen/search/climb.h"
#include "codegen/transforms/apply.h"
#include "codegen/transforms/changes.h"
#include "codegen/transforms/copies_ahead.h"
#include "codegen/transforms/wmma_tiles.h"

namespace plugrad::codegen {

void choose(Kernel& kernel) {
  if (kernel.options.apply != nullptr) {
    for (const Optimisation& change : *kernel.options.apply) apply(kernel, change);
  } else if (!kernel.options.no_opt) {
    apply_search(kernel);
  }
  drop_marks(kernel);
  lay_out_tiles(kernel);
  place_copies_ahead(kernel);
}

}  // namespace plugrad::codegen
