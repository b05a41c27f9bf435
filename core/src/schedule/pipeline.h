// The stages of the scheduler, for `plugrad explain --stages`.
#pragma once

#include "rewrite/stage.h"

namespace plugrad::schedule {

std::vector<StageInfo> stages();

}  // namespace plugrad::schedule
