#include "conformance/worker/channel.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace plugrad::conformance {
namespace {

constexpr auto kSpin = std::chrono::microseconds(100);

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* limit) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, limit, nullptr,
                   0);
}

timespec to_timespec(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), (time - seconds).count()};
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Bell::ring(uint32_t value) {
  value_.store(value);
  if (sleepers_.load() > 0) futex(value_, FUTEX_WAKE, 1, nullptr);
}

bool Bell::wait(uint32_t old, std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto deadline = start + limit;
  while (value() == old) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    if (now - start < kSpin) {
      for (int i = 0; i < 32 && value() == old; ++i) pause_briefly();
      ::sched_yield();  // the other process may stand on the same processor
      continue;
    }
    const timespec rest = to_timespec(deadline - now);
    sleepers_.fetch_add(1);
    futex(value_, FUTEX_WAIT, old, &rest);
    sleepers_.fetch_sub(1);
  }
  return true;
}

Channel Channel::create() {
  const int low = ::memfd_create("plugrad-conformance", MFD_CLOEXEC);
  if (low < 0) throw std::runtime_error("no shared memory for the worker");
  // Above the numbers that the worker's own files take.
  const int file = ::fcntl(low, F_DUPFD_CLOEXEC, 10);
  ::close(low);
  if (file < 0 || ::ftruncate(file, kBuffersOffset + kBuffersBytes) != 0)
    throw std::runtime_error("no shared memory for the worker");
  return Channel(file);
}

Channel::Channel(int file) : file_(file) {
  void* memory = ::mmap(nullptr, kBuffersOffset + kBuffersBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("the worker's memory cannot be mapped");
  memory_ = static_cast<std::byte*>(memory);
}

Channel::Channel(Channel&& other) noexcept
    : file_(std::exchange(other.file_, -1)), memory_(std::exchange(other.memory_, nullptr)) {}

Channel::~Channel() {
  if (memory_) ::munmap(memory_, kBuffersOffset + kBuffersBytes);
  if (file_ >= 0) ::close(file_);
}

void Channel::put(std::string_view text, std::span<const std::byte> bytes) {
  if (text.size() + bytes.size() > kMessageBytes)
    throw std::runtime_error("a message of " + std::to_string(text.size() + bytes.size()) +
                             " bytes is larger than the worker's channel");
  head().text_bytes = text.size();
  head().other_bytes = bytes.size();
  std::memcpy(message_area(), text.data(), text.size());
  if (!bytes.empty()) std::memcpy(message_area() + text.size(), bytes.data(), bytes.size());
}

Message Channel::take() const {
  // The plugin shares this memory with the worker and may have written over it.
  const uint64_t text = head().text_bytes, other = head().other_bytes;
  if (text > kMessageBytes || other > kMessageBytes - text)
    throw std::runtime_error("the worker's channel is damaged");
  const std::byte* begin = memory_ + kMessageOffset;
  return {std::string(reinterpret_cast<const char*>(begin), text),
          std::vector<std::byte>(begin + text, begin + text + other)};
}

void Channel::set_kernel(std::span<const std::byte> kernel_ir) {
  const uint64_t size = kernel_ir.size() <= kKernelBytes ? kernel_ir.size() : 0;
  if (size) std::memcpy(memory_ + kKernelOffset, kernel_ir.data(), size);
  head().kernel_bytes = size;
}

std::vector<std::byte> Channel::kernel() const {
  const uint64_t size = std::min<uint64_t>(head().kernel_bytes, kKernelBytes);
  return {memory_ + kKernelOffset, memory_ + kKernelOffset + size};
}

}  // namespace plugrad::conformance
