// One call of a recording.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/checks/record/recording.h"

namespace plugrad::runtime {

struct RecordedCall {
  nlohmann::json facts;
  std::span<const std::byte> data;
};

}  // namespace plugrad::runtime
