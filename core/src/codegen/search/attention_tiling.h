// A product of matrices in a kernel that makes the rows of one operand by another product, as
// attention does.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// The rows are taken in blocks, and what is made of a block waits in scratch until the product
/// reads it. False where the kernel is no such product or a block of rows does not fit.
bool tile_attention(Kernel& kernel);

/// Copies what lanes over the rows of a block load far apart into scratch, side by side.
void pack_row_blocks(Kernel& kernel);

}  // namespace plugrad::codegen
