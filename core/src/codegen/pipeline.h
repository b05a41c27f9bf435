// The stages of code generation, for `plugrad explain --stages`.
#pragma once

#include "rewrite/stage.h"

namespace plugrad::codegen {

std::vector<StageInfo> stages();

}  // namespace plugrad::codegen
