// Memory followed by an inaccessible page: an access behind its end crashes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace plugrad::conformance {

class GuardedBytes {
 public:
  explicit GuardedBytes(size_t size) : size_(size), page_(static_cast<size_t>(::getpagesize())) {
    pages_ = (size + page_ - 1) / page_ + 1;
    base_ = static_cast<char*>(::mmap(nullptr, pages_ * page_, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + (pages_ - 1) * page_, page_, PROT_NONE);
  }
  // The first bytes of `value`, as many as fit, followed by zeros.
  template <typename Struct>
  GuardedBytes(const Struct& value, size_t size) : GuardedBytes(size) {
    std::memcpy(data(), &value, size < sizeof value ? size : sizeof value);
  }
  ~GuardedBytes() { ::munmap(base_, pages_ * page_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  char* data() const { return base_ + (pages_ - 1) * page_ - size_; }
  size_t size() const { return size_; }
  template <typename Struct>
  Struct* as() const {
    return reinterpret_cast<Struct*>(data());
  }

 private:
  size_t size_, page_, pages_;
  char* base_;
};

}  // namespace plugrad::conformance
