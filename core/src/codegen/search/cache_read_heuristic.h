// Which operands a kernel copies into scratch.
#pragma once

#include <set>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Readings of elements that lie apart, from which on a copy of them pays.
inline constexpr double kEnoughGatherings = 4;

/// For a kernel with its register tile: stages the operand that the lanes load where it is read
/// again often enough. A sum whose lanes lie apart where it is stored waits in scratch until its
/// neighbours are there, and is transposed. Returns how many output loops, from the outermost on,
/// may run in parallel without copying more than once; SIZE_MAX where nothing is staged.
size_t choose_cache_reads(Kernel& kernel);

/// For a kernel with its groups and register tile: stages the tiles that many work-items read, and
/// unrolls what is left of the reduction. False where there are none, or the device gains nothing.
bool cache_read_tiles(Kernel& kernel);

/// Takes the reduce loop in parts of the first length that is legal and leaves room in local
/// memory, stages the parameters inside, and unrolls what is left. False where none is.
bool cache_read_longest_parts(Kernel& kernel, size_t loop, const std::vector<int64_t>& lengths,
                              const std::set<uint32_t>& slots);

/// Whether, in a kernel of one store without a register tile, threads will share out panels of what
/// lanes along the axis load.
bool shares_out_panels(const Kernel& kernel, size_t axis);

}  // namespace plugrad::codegen
