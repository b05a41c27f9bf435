// Ranges that indices must lie in. The host checks indices that it has; with
// PLUGRAD_CHECK_INDICES=1 a kernel reports the first index out of range, and reading any value that
// depends on it is an error.
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

/// Valid indices of an axis of size `high`: [low, high), and also `but`.
struct IndexRange {
  std::string function, what;  ///< their name in errors: "index_select", "index"
  int64_t low = 0, high = 0;
  std::optional<int64_t> but{};
  DType dtype = DType::I32;  ///< of the indices
  bool operator==(const IndexRange&) const = default;

  /// The error text for element number `element`, whose value has these bits.
  std::string problem(int64_t bits, int64_t element) const;
  /// Errors: User for the first element, stored as `dtype`, that is out of range.
  void require_of(std::span<const std::byte> elements) const;
};
using IndexRangePtr = std::shared_ptr<const IndexRange>;

/// The ranges that nodes refer to, equal ones once. Entries are never removed.
class IndexRangeTable {
 public:
  uint64_t number_of(const IndexRange& range);
  const IndexRangePtr& operator[](uint64_t number) const { return ranges_[number]; }
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<IndexRangePtr> ranges_;
};

}  // namespace plugrad::engine
