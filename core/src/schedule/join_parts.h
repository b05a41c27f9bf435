// One computation for the equal parts of a joined tensor.
#pragma once

#include "schedule/draft.h"
#include "schedule/tensor_builder.h"

namespace plugrad::schedule {

/// Rewrites what the draft's roots need; returns what each node became, by id.
std::vector<Id> join_parts(Draft& draft, TensorBuilder& build);

}  // namespace plugrad::schedule
