#include "runtime/memory/mapping.h"

#include "runtime/device/device_state.h"

namespace plugrad::runtime {

Mapping::Mapping(const Buffer& buffer) : buffer_(buffer), d_(buffer.device().state()) {
  const bool can =
      d_.caps.unified_memory && offered(d_.allocator_api.map) && offered(d_.allocator_api.unmap);
  if (!can) return;
  d_.calls.require_usable("map");
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

Mapping::~Mapping() {
  if (pointer_ && d_.calls.is_reachable()) d_.calls.quietly("unmap", [&] { unmap(nullptr); });
}

void Mapping::end() {
  d_.calls.check("unmap", [&](pgr_error* e) { return unmap(e); });
}

pgr_status Mapping::unmap(pgr_error* error) {
  pointer_ = nullptr;
  return d_.allocator_api.unmap(d_.handle, buffer_.plain_handle(), error);
}

}  // namespace plugrad::runtime
