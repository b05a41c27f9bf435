// Memory followed by an inaccessible page.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace plugrad::abi {

// `size` bytes that end at an inaccessible page.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t size) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    pages_ = (size + page_ - 1) / page_ + 1;
    base_ = static_cast<char*>(
        mmap(nullptr, pages_ * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + (pages_ - 1) * page_, page_, PROT_NONE);
    data_ = base_ + (pages_ - 1) * page_ - size;
  }
  ~GuardedBytes() { munmap(base_, pages_ * page_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  char* data() const { return data_; }

 private:
  size_t page_, pages_;
  char *base_, *data_;
};

}  // namespace plugrad::abi
