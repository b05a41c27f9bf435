// Sends and receives control messages.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/control.h"
#include "distributed/transport.h"

namespace plugrad::distributed {

class ControlLine {
 public:
  explicit ControlLine(Transport& transport) : transport_(transport), memory_(kControlBytes) {}

  void open();
  void tell(std::uint32_t rank, const Control& control);
  void tell_all(const Control& control);
  /// The next message, and the rank that sent it; nothing if none is there.
  /// Errors: User if that rank's messages are of another version or byte order.
  std::optional<std::pair<Control, std::uint32_t>> next();
  /// Frees what was sent; whether nothing is in transit.
  bool is_flushed();
  void close();

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    MessageId message;
  };
  Transport& transport_;
  std::vector<std::byte> memory_;
  MessageId receive_ = 0;
  bool is_open_ = false;
  std::deque<Sent> sent_;
};

}  // namespace plugrad::distributed
