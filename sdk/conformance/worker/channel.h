// The memory that the driver and its worker share: one request and one reply at a time, the kernel
// that a test is about, and the buffers of isolated launches.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::conformance {

enum class Request : uint32_t { Open, TryDevice, RunTest, LoadKernel, Launch };

// Text and bytes, in either direction.
struct Message {
  std::string text;
  std::vector<std::byte> bytes;
};

// A number that one process raises and the other waits for.
class Bell {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  void ring(uint32_t value);
  // Whether the value became another than `old` in time. Spins at first, so that an answer within
  // 100 microseconds costs no sleep, then sleeps.
  bool wait(uint32_t old, std::chrono::nanoseconds limit);

 private:
  std::atomic<uint32_t> value_;
  std::atomic<uint32_t> sleepers_;
};

class Channel {
 public:
  static Channel create();
  // Of the worker: the file that it inherited.
  explicit Channel(int file);
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&&) = delete;

  int file() const { return file_; }
  Bell& asked() { return head().asked; }
  Bell& answered() { return head().answered; }
  Request& kind() { return head().kind; }

  // Throw std::runtime_error for a message that does not fit, or is damaged.
  void put(std::string_view text, std::span<const std::byte> bytes);
  Message take() const;
  // Where messages lie, for requests that are laid out in place.
  std::byte* message_area() { return memory_ + kMessageOffset; }

  void set_kernel(std::span<const std::byte> kernel_ir);
  std::vector<std::byte> kernel() const;

  // Offsets of buffers count from here.
  std::span<std::byte> buffers() { return {memory_ + kBuffersOffset, kBuffersBytes}; }

 private:
  static constexpr uint64_t kMessageOffset = 64 << 10, kMessageBytes = 16 << 20;
  static constexpr uint64_t kKernelOffset = kMessageOffset + kMessageBytes, kKernelBytes = 4 << 20;
  static constexpr uint64_t kBuffersOffset = kKernelOffset + kKernelBytes;
  static constexpr uint64_t kBuffersBytes = 1 << 30;  // touched pages alone take memory

  struct Head {
    Bell asked, answered;
    Request kind;
    uint32_t reserved;
    uint64_t text_bytes, other_bytes, kernel_bytes;
  };
  Head& head() const { return *reinterpret_cast<Head*>(memory_); }

  int file_;
  std::byte* memory_;
};

}  // namespace plugrad::conformance
