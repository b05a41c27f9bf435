// Software pipelining: copies into local memory that are made some iterations of a loop before they
// are used, asynchronously where the device can. The array holds as many tiles, and each iteration
// reads one and starts the copy of another.
//   before   load (filled s[%e] = %a[%b*16 + %e], over %e)[%k]                 inside %b
//   after    load (filled s[(%b % 2)*16 + %e] = %a[%b*16 + %e], over %e)[(%b % 2)*16 + %k]
// Both are the same value, so that no other pass need know. For one iteration ahead, linearise
// makes of the second
//   copy the tile of iteration 0; commit
//   loop %b: wait for all copies; barrier; copy the tile of %b + 1 if any; commit; use that of %b
// The one barrier serves twice: behind it the copies of all items are there, and all items have
// finished with the tile that is written next.
#pragma once

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// The loops of reductions that a value depends on.
std::vector<Id> reduce_loops(const Graph& g, OpenRanges& open, Id id);

/// Bytes of the local array, all tiles; before their places are chosen.
uint64_t bytes_of_copy(const Graph& g, Id filled);

/// Gives the tiles of copies that are made ahead their places.
void place_pipelined_tiles(Kernel& kernel);

/// The loop in whose turns the tiles are copied ahead; kNoId for other arrays.
Id pipelined_loop(const Graph& g, OpenRanges& open, Id filled);

/// The load of which the store is an asynchronous copy on this device: of so many neighbours at
/// once, zeros behind a closed gate. kNoId where the items must move it themselves.
Id asynchronous_load(const Graph& g, const pgr_device_caps& caps, Id store, uint32_t lanes);

}  // namespace plugrad::codegen
