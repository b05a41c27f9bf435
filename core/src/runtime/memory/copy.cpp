// Copies between buffers: on the device if both belong to it, else through the host, which accesses
// mapped memory in place and copies other memory in pieces.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "runtime/device/device.h"
#include "runtime/device/device_state.h"
#include "runtime/memory/mapping.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint64_t kPieceBytes = 4u << 20;
constexpr std::uint64_t kWorthMapping = 1u << 20;

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
