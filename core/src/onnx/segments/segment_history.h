// How the calls of a segment went: which were replays, and what differed in the others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/causes/causes.h"
#include "onnx/import/value.h"

namespace plugrad::onnx {

uint64_t hash_of(std::span<const uint64_t> words);

class SegmentHistory {
 public:
  void replayed() { ++replayed_; }
  /// Call `number` of the model ran the nodes on `given`, the values of `names`; `sums`: a hash of
  /// the sizes that are sums. `is_recorded`: for later calls.
  void ran(uint64_t number, const std::vector<std::string_view>& names,
           const std::vector<Value>& given, uint64_t sums, bool is_recorded);
  /// Whether a call differed from an earlier one for this cause.
  bool has(engine::Cause cause) const { return !misses_.last_name(cause).empty(); }
  /// "3 replayed one of 2 recordings, 2 ran to be recorded", and a line for each call that ran.
  std::string text(size_t recordings) const;

 private:
  uint64_t replayed_ = 0, recorded_ = 0, plain_ = 0;
  engine::Kinds kinds_;
  engine::Misses misses_;
};

}  // namespace plugrad::onnx
