// The passes of codegen, in the order of pipeline.cpp. Each turns a kernel into one that means the
// same.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

void collapse_loops(
    Kernel& kernel);  // reductions that are closed forms or single loads lose their loop
void simplify_ranges(Kernel& kernel);  // adjacent ranges merge, divided ranges split
void index_stores(Kernel& kernel);     // terms of marked reductions are stored by their index
void split_borders(Kernel& kernel);    // padding is stores of its own instead of conditions
void choose(Kernel& kernel);           // optimisations: the heuristic's, or those given
void count_loops(Kernel& kernel);      // loops end where sizes that are data say
void bound_loops(Kernel& kernel);      // loops run where their terms are not 0
void expand(Kernel& kernel);           // upcast, unroll and vector ranges are gone
void partition_loops(Kernel& kernel);  // inside of borders, conditions are constant
void gate_items(Kernel& kernel);       // every element is stored by one work-item
void vectorise(Kernel& kernel);        // loads and stores have scalar indices and a width
void decompose(Kernel& kernel);        // only ops that the device claims
void lower_indices(Kernel& kernel);    // no Index, FloorDiv or FloorMod: plain i32 or i64

}  // namespace plugrad::codegen
