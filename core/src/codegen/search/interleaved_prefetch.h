// Rows of a matrix that is read once, several at a time. Neighbours are short streams that end and
// begin together, which prefetching follows badly; a run of rows that lie one behind the other is
// one long stream.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// How many rows each of `count` streams had best walk along, where the axis' values are rows that
/// lie one behind the other and more than the caches of a thread hold; 1 where they are not.
int64_t prefetch_stream_rows(const Kernel& kernel, size_t axis, int64_t count);

/// Whether a tile with all of this axis reads rows that are summed, lie one behind the other and
/// are more than a cache of the thread holds as one stream: 2 x 2 pooling reads a line and the
/// next.
bool joins_prefetch_streams(const Kernel& kernel, size_t axis);

/// upcast(axis, count) of rows that are `rows` apart.
void upcast_interleaved(Kernel& kernel, size_t axis, int64_t count, int64_t rows);

}  // namespace plugrad::codegen
