#include "engine/recording/prepared_constants.h"

#include <algorithm>

namespace plugrad::engine {

void PreparedConstantsList::add(const std::shared_ptr<PreparedConstants>& constants) {
  std::erase_if(list_, [](const auto& weak) { return weak.expired(); });
  list_.push_back(constants);
}

uint64_t PreparedConstantsList::bytes_on(uint32_t device) const {
  std::vector<const Value*> kept;
  each([&](const PreparedConstants& constants) {
    for (const PreparedConstants::Part& part : constants.parts)
      for (const ValuePtr& value : part.results) kept.push_back(value.get());
  });
  std::ranges::sort(kept);  // several recordings may share a value
  const auto repeated = std::ranges::unique(kept);
  kept.erase(repeated.begin(), repeated.end());
  uint64_t bytes = 0;
  for (const Value* value : kept)
    if (device == 0 || value->device == device) bytes += value->size_bytes;
  return bytes;
}

bool PreparedConstantsList::drop() {
  const bool has_any = bytes_on() > 0;
  each([](PreparedConstants& constants) { constants.drop(); });
  return has_any;
}

}  // namespace plugrad::engine
