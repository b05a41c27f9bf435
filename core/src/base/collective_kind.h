// The collectives, by the numbers that traces give them (docs/trace-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plugrad {

enum class CollectiveKind : std::uint8_t {
  AllReduce,
  ReduceScatter,
  AllGather,
  AllToAll,
  Broadcast,
  Send,
  Receive,
};
inline constexpr std::size_t kCollectiveKinds = 7;

/// "all-reduce", …
constexpr std::string_view name_of(CollectiveKind kind) {
  constexpr std::string_view kNames[kCollectiveKinds] = {
      "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "send", "receive"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace plugrad
