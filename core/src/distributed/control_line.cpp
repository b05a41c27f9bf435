#include "distributed/control_line.h"

#include "base/check.h"

namespace plugrad::distributed {

void ControlLine::open() {
  if (!transport_.has_mpi()) return;
  receive_ = transport_.receive_from_any(kControlTag, memory_);
  is_open_ = true;
}

void ControlLine::tell(std::uint32_t rank, const Control& control) {
  Sent& sent = sent_.emplace_back(Sent{encode(control), 0});
  sent.message = transport_.send(rank, kControlTag, sent.bytes);
}

void ControlLine::tell_all(const Control& control) {
  for (std::uint32_t rank = 0; rank < transport_.size(); ++rank)
    if (rank != transport_.rank()) tell(rank, control);
}

std::optional<std::pair<Control, std::uint32_t>> ControlLine::next() {
  if (!is_open_) return std::nullopt;
  const std::optional<Arrival> arrival = transport_.test(receive_);
  if (!arrival) return std::nullopt;
  is_open_ = false;
  std::optional<Control> control = decode(std::span(memory_).first(arrival->size_bytes));
  open();
  require(control.has_value(),
          "rank {} sends messages that this rank cannot read: it runs another version "
          "of plugrad, or on a machine of another byte order; start one version on machines of one "
          "kind",
          arrival->source);
  return std::pair{std::move(*control), arrival->source};
}

bool ControlLine::is_flushed() {
  while (!sent_.empty() && transport_.test(sent_.front().message)) sent_.pop_front();
  return sent_.empty();
}

void ControlLine::close() {
  if (is_open_) transport_.cancel_receive(receive_);
  is_open_ = false;
}

}  // namespace plugrad::distributed
