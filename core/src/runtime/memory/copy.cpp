// Copies between buffers: on the device if both belong to it, else through the host, which accesses
// mapped memory in place and copies other memory in pieces.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "runtime/device/device.h"
#include "runtime/device/device_state.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint64_t kPieceBytes = 4u << 20;
constexpr std::uint64_t kWorthMapping = 1u << 20;

// A buffer's memory mapped to the host, if mapping needs no copy.
class Mapping {
 public:
  explicit Mapping(const Buffer& buffer) : buffer_(buffer), d_(buffer.device().state()) {
    const bool can =
        d_.caps.unified_memory && offered(d_.allocator_api.map) && offered(d_.allocator_api.unmap);
    if (!can) return;
    CallError error;
    std::string escaped;
    pgr_buffer* const handle = buffer.handle();
    const WatchedCall watched(d_.calls, "map");
    const pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
      return d_.allocator_api.map(d_.handle, handle, &pointer_, e);
    });
    if (status == PGR_STATUS_DEVICE_LOST) d_.calls.fail("map", "", status, error.message());
    if (status != PGR_STATUS_OK) pointer_ = nullptr;  // fall back to copying
  }
  ~Mapping() {
    if (pointer_) d_.calls.quietly("unmap", [&] { unmap(nullptr); });
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  explicit operator bool() const { return pointer_ != nullptr; }
  std::byte* bytes() const { return static_cast<std::byte*>(pointer_); }
  /// Returns written bytes to the device.
  void end() {
    d_.calls.check("unmap", [&](pgr_error* e) { return unmap(e); });
  }

 private:
  pgr_status unmap(pgr_error* error) {
    pointer_ = nullptr;
    return d_.allocator_api.unmap(d_.handle, buffer_.plain_handle(), error);
  }

  const Buffer& buffer_;
  DeviceState& d_;
  void* pointer_ = nullptr;
};

void copy_in_pieces(Buffer& dst, std::uint64_t dst_offset, const Buffer& src,
                    std::uint64_t src_offset, std::uint64_t size) {
  std::vector<std::byte> host(std::min(size, kPieceBytes));
  for (std::uint64_t done = 0; done < size; done += host.size()) {
    const std::uint64_t piece = std::min<std::uint64_t>(host.size(), size - done);
    src.copy_out(host.data(), piece, src_offset + done);
    dst.copy_in(host.data(), piece, dst_offset + done);
  }
}

void copy_by_host(Buffer& dst, std::uint64_t dst_offset, const Buffer& src,
                  std::uint64_t src_offset, std::uint64_t size) {
  if (size < kWorthMapping) return copy_in_pieces(dst, dst_offset, src, src_offset, size);
  if (Mapping from(src); from) {
    dst.copy_in(from.bytes() + src_offset, size, dst_offset);
    return from.end();
  }
  if (Mapping to(dst); to) {
    src.copy_out(to.bytes() + dst_offset, size, src_offset);
    return to.end();
  }
  copy_in_pieces(dst, dst_offset, src, src_offset, size);
}

}  // namespace

void copy(Buffer& dst, std::uint64_t dst_offset_bytes, const Buffer& src,
          std::uint64_t src_offset_bytes, std::uint64_t size_bytes) {
  dst.require_range(dst_offset_bytes, size_bytes);
  src.require_range(src_offset_bytes, size_bytes);
  if (size_bytes == 0) return;
  DeviceState& d = dst.device().state();
  d.calls.require_usable("copy");
  src.device().state().calls.require_usable("copy");
  if (&dst.device() != &src.device() || !offered(d.allocator_api.copy))
    return copy_by_host(dst, dst_offset_bytes, src, src_offset_bytes, size_bytes);
  pgr_buffer *const to = dst.handle(), *const from = src.handle();
  d.on_queue("copy", {trace::Direction::Device, size_bytes}, [&](pgr_error* e) {
    return d.allocator_api.copy(d.handle, nullptr, to, dst_offset_bytes, from, src_offset_bytes,
                                size_bytes, e);
  });
}

}  // namespace plugrad::runtime
