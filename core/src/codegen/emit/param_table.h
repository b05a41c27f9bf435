// The table of a kernel's parameters.
#pragma once

#include <utility>
#include <vector>

#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Writes the table and an instruction for each Param and Scalar of the graph, the
/// scalars behind the buffers; returns those with their
/// instructions.
std::vector<std::pair<Id, uint32_t>> write_params(const Kernel& kernel, IrWriter& writer);

}  // namespace plugrad::codegen
