// Copies in local memory that are made some turns of a loop before they are used, asynchronously
// where the device can: the array holds as many tiles, and each turn reads one and starts the copy
// of another.
//   before   load (filled s[%e] = %a[%b*16 + %e], over %e)[%k]                 inside %b
//   after    load (filled s[(%b % 2)*16 + %e] = %a[%b*16 + %e], over %e)[(%b % 2)*16 + %k]
// As values both say the same, so that no other pass need know. What linearise makes of the second,
// for one turn ahead, is
//   copy the tile of turn 0; commit
//   loop %b: wait for all copies; barrier; copy the tile of %b + 1 where there is one; commit; use
//   %b's
// The one barrier serves twice: behind it what all items copied is there, and all have done with
// the tile that is written next.
#pragma once

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// The loops of reductions that a value depends on.
std::vector<Id> reduce_loops(const Graph& g, OpenRanges& open, Id id);

/// Bytes of the local array, all tiles; before their places are chosen.
uint64_t bytes_of_copy(const Graph& g, Id filled);

/// Gives the tiles of copies that are made ahead their places.
void place_copies_ahead(Kernel& kernel);

/// The loop in whose turns the tiles are copied ahead; kNoId for other arrays.
Id loop_ahead(const Graph& g, OpenRanges& open, Id filled);

/// The load of which the store is an asynchronous copy on this device: of so many neighbours at
/// once, zeros behind a closed gate. kNoId where the items must move it themselves.
Id asynchronous_load(const Graph& g, const pgr_device_caps& caps, Id store, uint32_t lanes);

}  // namespace plugrad::codegen
