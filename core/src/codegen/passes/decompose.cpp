// Ops that the device does not claim for a dtype become ops that it does: the tables of lowering/,
// to a fixpoint.
//   before   exp2 f32 %x            after   a polynomial, where the device has no exp2
//   before   add f16 %a, %b         after   cast f16 (add f32 (cast f32 %a), (cast f32 %b))
//   before   load i8 %p[%i]         after   bitcast i8 (load u8 %p[%i]), where it cannot store i8
// 64-bit integers stay as they are: linearise splits them.
#include "codegen/lowering/lowering.h"
#include "codegen/passes/passes.h"

namespace plugrad::codegen {

void decompose(Kernel& kernel) {
  Lowering device(*kernel.caps);
  Rewriter rewriter(kernel.graph, lowering_table(), {.fixpoint = true, .context = &device});
  device.follow(rewriter);
  kernel.sink = rewriter(kernel.sink);
  compact(kernel);
  for (Id id = 0; id < kernel.graph.size(); ++id) check_claimed(kernel.graph, id, device);
}

}  // namespace plugrad::codegen
