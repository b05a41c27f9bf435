// Floats on huge pages, like plugrad's own buffers: small pages cost a fault every 4 KiB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace plugrad::bench {

class HugeArray {
 public:
  explicit HugeArray(size_t count) : count_(count) {
    constexpr size_t kPage = size_t{2} << 20;
    const size_t bytes = (count * sizeof(float) + kPage) / kPage * kPage;
    data_ = static_cast<float*>(std::aligned_alloc(kPage, bytes));
    if (!data_) throw std::bad_alloc();
    madvise(data_, bytes, MADV_HUGEPAGE);
  }
  HugeArray(HugeArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  HugeArray(const HugeArray&) = delete;
  HugeArray& operator=(const HugeArray&) = delete;
  HugeArray& operator=(HugeArray&&) = delete;
  ~HugeArray() { std::free(data_); }

  float* data() const { return data_; }
  size_t size() const { return count_; }

 private:
  float* data_;
  size_t count_;
};

}  // namespace plugrad::bench
