// An operator new that fails once, at the n-th allocation of this thread.
#pragma once

#include <cstdint>

namespace plugrad::test {

/// While one lives, allocations of this thread count, and number `at` throws std::bad_alloc; 0: none.
class FailingNew {
 public:
  explicit FailingNew(std::uint64_t at = 0) noexcept;
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  static std::uint64_t count() noexcept;
};

}  // namespace plugrad::test
