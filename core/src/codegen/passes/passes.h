// The passes of codegen, in the order of pipeline.cpp. Each turns a kernel into one that means the
// same.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

void eliminate_reductions(
    Kernel& kernel);  // reductions that are closed forms or single loads lose their loop
void simplify_ranges(Kernel& kernel);       // adjacent ranges merge, divided ranges split
void index_stores(Kernel& kernel);          // terms of marked reductions are stored by their index
void partition_outputs(Kernel& kernel);     // padding is stores of its own instead of conditions
void apply_schedule(Kernel& kernel);        // optimisations: the heuristic's, or those given
void set_dynamic_bounds(Kernel& kernel);    // loops end where sizes that are data say
void tighten_bounds(Kernel& kernel);        // loops run where their terms are not 0
void expand(Kernel& kernel);                // upcast, unroll and vector ranges are gone
void partition_loops(Kernel& kernel);       // inside of borders, conditions are constant
void predicate_work_items(Kernel& kernel);  // every element is stored by one work-item
void vectorise(Kernel& kernel);             // loads and stores have scalar indices and a width
void decompose(Kernel& kernel);             // only ops that the device claims
void lower_indices(Kernel& kernel);         // no Index, FloorDiv or FloorMod: plain i32 or i64

}  // namespace plugrad::codegen
