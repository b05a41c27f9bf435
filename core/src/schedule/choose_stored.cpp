#include "schedule/draft.h"
namespace plugrad::schedule {
void choose_stored(Draft& draft) {
  draft.stored.assign(draft.graph.size(), 0);
  for (Id id : draft.live) {
    const Op op = draft.graph[id].op;
    if (op == Op::Buffer || op == Op::Contiguous || op == Op::Copy || op == Op::Reduce || draft.requested[id] != 0)
      draft.stored[id] = 1;
  }
}
}  // namespace plugrad::schedule
