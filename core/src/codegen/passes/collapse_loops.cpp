// Reductions that are closed forms (arange, one-hot) or pick one element (embedding, gather) lose their loop.
//   before   reduce add (where (%t == %r), %w[%r], 0), %r          after   %w[%t]
#include "codegen/passes/passes.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

void collapse_loops(Kernel& kernel) {
  kernel.sink = Simplifier(kernel.graph, kernel.rules())(kernel.sink);
  kernel.sink = collapse_reduces(kernel.graph, kernel.sink, kernel.rules());
  compact(kernel);
}

}  // namespace plugrad::codegen
