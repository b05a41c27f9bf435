// A buffer's memory mapped to the host, if mapping needs no copy.
#pragma once

#include <cstddef>

#include "runtime/device/device.h"

namespace plugrad::runtime {

class Mapping {
 public:
  /// Waits for queued work on the buffer, which must outlive the mapping.
  explicit Mapping(const Buffer& buffer);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  explicit operator bool() const { return pointer_ != nullptr; }
  std::byte* bytes() const { return static_cast<std::byte*>(pointer_); }
  /// Returns written bytes to the device.
  void end();

 private:
  pgr_status unmap(pgr_error* error);

  const Buffer& buffer_;
  DeviceState& d_;
  void* pointer_ = nullptr;
};

}  // namespace plugrad::runtime
