// Reductions that are closed forms (arange, one-hot) or pick one element (embedding, gather) lose
// their loop.
//   before   reduce add (where (%t == %r), %w[%r], 0), %r          after   %w[%t]
#include "codegen/passes/passes.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// A loop that runs once is no loop.
void drop_single_ranges(Kernel& kernel) {
  std::vector<RangeReplacement> single;
  for (Id axis : kernel.axes)
    if (range_size(kernel.graph, axis) == 1 && !is_bounded(kernel.graph[axis]))
      single.push_back({axis, kernel.graph.index(0), {}});
  kernel.sink = replace_ranges(kernel.graph, kernel.sink, single);
}

}  // namespace

void eliminate_reductions(Kernel& kernel) {
  drop_single_ranges(kernel);
  kernel.sink = Simplifier(kernel.graph, kernel.rules())(kernel.sink);
  kernel.sink = collapse_reduces(kernel.graph, kernel.sink, kernel.rules());
  compact(kernel);
}

}  // namespace plugrad::codegen
