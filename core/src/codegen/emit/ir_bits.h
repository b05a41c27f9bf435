// Constants of graphs in kernel IR.
#pragma once

#include "ir/graph.h"

namespace plugrad::codegen {

/// A Const's bits as kernel IR wants them: those of its dtype.
uint64_t ir_bits(const Graph& g, Id id);

}  // namespace plugrad::codegen
