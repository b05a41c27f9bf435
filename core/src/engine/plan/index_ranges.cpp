#include "engine/plan/index_ranges.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace plugrad::engine {
namespace {

template <class T>
void check(const IndexRange& range, std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes.data() + at, sizeof(T));
    const auto index = static_cast<int64_t>(element);
    const bool in_range = index >= range.low && index < range.high;
    if (!std::in_range<int64_t>(element) || !(in_range || index == range.but))
      require_index(false, "{}", range.problem(index, static_cast<int64_t>(at / sizeof(T))));
  }
}

}  // namespace

std::string IndexRange::problem(int64_t bits, int64_t element) const {
  const std::string value =
      dtype == DType::U64 ? std::to_string(static_cast<uint64_t>(bits)) : std::to_string(bits);
  const std::string allowed =
      low < high ? fmt::format("allowed are {} to {}", low, high - 1) : "none is allowed";
  return fmt::format("[{}] {} {} (element {}) is out of range for size {}: {}", function, what,
                     value, element, high, allowed);
}

void IndexRange::require_of(std::span<const std::byte> elements) const {
  switch (dtype) {
    case DType::I8:
      return check<int8_t>(*this, elements);
    case DType::I16:
      return check<int16_t>(*this, elements);
    case DType::I32:
      return check<int32_t>(*this, elements);
    case DType::I64:
      return check<int64_t>(*this, elements);
    case DType::U8:
      return check<uint8_t>(*this, elements);
    case DType::U16:
      return check<uint16_t>(*this, elements);
    case DType::U32:
      return check<uint32_t>(*this, elements);
    case DType::U64:
      return check<uint64_t>(*this, elements);
    default:
      return;
  }
}

uint64_t IndexRangeTable::number_of(const IndexRange& range) {
  const auto known =
      std::ranges::find_if(ranges_, [&](const IndexRangePtr& r) { return *r == range; });
  if (known != ranges_.end()) return static_cast<uint64_t>(known - ranges_.begin());
  ranges_.push_back(std::make_shared<const IndexRange>(range));
  return ranges_.size() - 1;
}

}  // namespace plugrad::engine
