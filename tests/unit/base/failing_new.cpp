#include "unit/base/failing_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool counts = false;
thread_local std::uint64_t counted = 0, fails_at = 0;

void* allocated(std::size_t size, std::size_t alignment) {
  if (counts && ++counted == fails_at) throw std::bad_alloc();
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size > 0 ? size : 1) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

plugrad::test::FailingNew::FailingNew(std::uint64_t at) noexcept {
  counted = 0;
  fails_at = at;
  counts = true;
}
plugrad::test::FailingNew::~FailingNew() {
  counts = false;
}
std::uint64_t plugrad::test::FailingNew::count() noexcept {
  return counted;
}

void* operator new(std::size_t size) {
  return allocated(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t size) {
  return allocated(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
// As the library's, which a sanitizer replaces by one whose memory is not free()'s.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
