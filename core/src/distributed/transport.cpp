#include "distributed/transport.h"

#include "base/check.h"

namespace plugrad::distributed {
namespace {

template <class Function, class... Args>
void call(Function function, Args... args) {
  plugrad_mpi_error error{};
  if (function(args..., &error) != 0)
    fail(ErrorKind::Device, "the MPI library reports an error: {}", error.text);
}

}  // namespace

void Transport::open() {
  if (!api_) return;
  plugrad_mpi_place place{};
  call(api_->open, &place);
  rank_ = static_cast<std::uint32_t>(place.rank);
  size_ = static_cast<std::uint32_t>(place.size);
  library_ = place.library;
}

MessageId Transport::send(std::uint32_t to, int tag, std::span<const std::byte> data) {
  MessageId message = 0;
  call(api_->send, static_cast<std::int32_t>(to), tag, data.data(), data.size(), &message);
  return message;
}

MessageId Transport::receive(std::uint32_t from, int tag, std::span<std::byte> data) {
  MessageId message = 0;
  call(api_->receive, static_cast<std::int32_t>(from), tag, data.data(), data.size(), &message);
  return message;
}

MessageId Transport::receive_from_any(int tag, std::span<std::byte> data) {
  MessageId message = 0;
  call(api_->receive, PLUGRAD_MPI_ANY_RANK, tag, data.data(), data.size(), &message);
  return message;
}

std::optional<Arrival> Transport::test(MessageId& message) {
  int done = 0;
  plugrad_mpi_arrival arrival{};
  call(api_->test, &message, &done, &arrival);
  if (!done) return std::nullopt;
  return Arrival{static_cast<std::uint32_t>(arrival.source), arrival.size_bytes};
}

void Transport::cancel_receive(MessageId& message) {
  call(api_->cancel_receive, &message);
}

void Transport::close() {
  if (api_) call(api_->close);
}

void Transport::abort(int exit_code) {
  if (api_) api_->abort(exit_code);
}

}  // namespace plugrad::distributed
