// Ranges that indices must lie in. The host checks those that it knows; with
// PLUGRAD_CHECK_INDICES=1 a kernel reports the first that lies outside, and a read of what depends
// on it is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad::engine {

/// Indices of an axis of size `high`, or `but`.
struct IndexRange {
  std::string function, what;  ///< what an error calls them: "index_select", "place"
  int64_t low = 0, high = 0;
  std::optional<int64_t> but{};
  DType dtype = DType::I32;  ///< of the indices
  bool operator==(const IndexRange&) const = default;

  /// Of element number `element`, whose value has these bits.
  std::string problem(int64_t bits, int64_t element) const;
  /// Errors: User for the first of the elements, stored as `dtype`, that lies outside.
  void require_of(std::span<const std::byte> elements) const;
};
using IndexRangePtr = std::shared_ptr<const IndexRange>;

/// The ranges that nodes of the graph name, each once; they stay.
class IndexRangeTable {
 public:
  uint64_t number_of(const IndexRange& range);
  const IndexRangePtr& operator[](uint64_t number) const { return ranges_[number]; }
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<IndexRangePtr> ranges_;
};

}  // namespace plugrad::engine
