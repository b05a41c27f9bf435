#include "tuning/helper/messages.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace plugrad::tuning {
namespace {

constexpr uint64_t kLargestFrame = uint64_t{256} << 20;

struct FrameHead {
  uint32_t kind;
  uint32_t reserved;
  uint64_t size;
};

bool send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

Received receive_all(int socket, uint64_t deadline_ns, std::span<std::byte> into) {
  while (!into.empty()) {
    const uint64_t now = monotonic_ns();
    if (now >= deadline_ns) return Received::Nothing;
    const uint64_t left_ms = (deadline_ns - now) / 1'000'000 + 1;
    pollfd waited{socket, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<uint64_t>(left_ms, 60'000)));
    if (ready < 0 && errno != EINTR) return Received::Gone;
    if (ready <= 0) continue;
    const ssize_t got = recv(socket, into.data(), into.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Received::Gone;
    into = into.subspan(static_cast<size_t>(got));
  }
  return Received::Frame;
}

}  // namespace

void put_kernel(ByteWriter& out, const codegen::KernelCode& code) {
  out.put_text(code.name).put_bytes(code.ir).put(code.group_count).put(code.local_size);
}

KernelSpec get_kernel(ByteReader& in) {
  KernelSpec kernel;
  kernel.name = in.get_text();
  const auto ir = in.get_bytes();
  kernel.ir.assign(ir.begin(), ir.end());
  for (uint64_t& count : kernel.group_count) count = in.get<uint64_t>();
  for (uint32_t& size : kernel.local_size) size = in.get<uint32_t>();
  return kernel;
}

bool say(int socket, MessageKind kind, std::span<const std::byte> bytes) {
  const FrameHead head{static_cast<uint32_t>(kind), 0, bytes.size()};
  return send_all(socket, std::as_bytes(std::span(&head, 1))) && send_all(socket, bytes);
}

Received hear(int socket, uint64_t deadline_ns, MessageKind& kind, std::vector<std::byte>& bytes) {
  FrameHead head{};
  const Received heard =
      receive_all(socket, deadline_ns, std::as_writable_bytes(std::span(&head, 1)));
  if (heard != Received::Frame) return heard;
  if (head.size > kLargestFrame) return Received::Gone;
  kind = static_cast<MessageKind>(head.kind);
  bytes.resize(head.size);
  return receive_all(socket, deadline_ns, bytes);
}

}  // namespace plugrad::tuning
