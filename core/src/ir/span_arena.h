// Stores short runs of values that never move, so that spans stay valid while the arena grows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace plugrad {

template <class T>
class SpanArena {
 public:
  /// Copies the values; at() of the result returns them.
  uint32_t add(std::span<const T> values) {
    if (blocks_.empty() || used_ >= kBlockSize || used_ + values.size() > room_) {
      const size_t room = std::max<size_t>(kBlockSize, values.size());
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(room));
      room_ = room;
      used_ = 0;
    }
    std::ranges::copy(values, blocks_.back().get() + used_);
    const auto place = static_cast<uint32_t>((blocks_.size() - 1) << kBlockBits | used_);
    used_ += values.size();
    return place;
  }
  const T* at(uint32_t place) const {
    return blocks_[place >> kBlockBits].get() + (place & (kBlockSize - 1));
  }
  /// Frees unused capacity. Invalidates spans into the arena.
  void trim() {
    if (blocks_.empty() || used_ == room_) return;
    auto exact = std::make_unique_for_overwrite<T[]>(used_);
    std::copy_n(blocks_.back().get(), used_, exact.get());
    blocks_.back() = std::move(exact);
    room_ = used_;
  }
  uint64_t size_bytes() const {
    return blocks_.empty() ? 0 : ((blocks_.size() - 1) * kBlockSize + room_) * sizeof(T);
  }

 private:
  static constexpr uint32_t kBlockBits = 12, kBlockSize = 1u << kBlockBits;
  std::vector<std::unique_ptr<T[]>> blocks_;
  size_t used_ = 0, room_ = 0;  // of the last block; an oversized run has its own block
};

}  // namespace plugrad
