// SPDX-License-Identifier: Apache-2.0
// Reads an array of pgr_option, using the caller's stride.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {

using KeyValue = std::pair<std::string_view, std::string_view>;

// The pairs in order, as views of the caller's memory.
inline std::vector<KeyValue> read_options(const pgr_option* options, uint32_t count,
                                          uint32_t stride) {
  std::vector<KeyValue> pairs;
  const char* at = reinterpret_cast<const char*>(options);
  for (uint32_t i = 0; options && i < count; ++i, at += stride) {
    const pgr_option own = read(reinterpret_cast<const pgr_option*>(at));
    pairs.emplace_back(to_view(own.key), to_view(own.value));
  }
  return pairs;
}

// The last value given for `key`, or `fallback`.
inline std::string_view find_option(const std::vector<KeyValue>& pairs, std::string_view key,
                                    std::string_view fallback = {}) {
  for (auto it = pairs.rbegin(); it != pairs.rend(); ++it)
    if (it->first == key) return it->second;
  return fallback;
}

}  // namespace plugrad::sdk
