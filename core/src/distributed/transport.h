// Messages between ranks by an adapter of MPI, with its failures as plugrad::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "distributed/mpi_adapter.h"

namespace plugrad::distributed {

/// A message in transit; 0 is none.
using MessageId = std::uint64_t;

struct Arrival {
  std::uint32_t source = 0;
  std::size_t size_bytes = 0;
};

/// Used by the communication thread alone. A transport without an adapter has one rank and no
/// messages. Errors of each function: Device, with MPI's own text. Callers add the operation.
class Transport {
 public:
  Transport() = default;
  explicit Transport(const plugrad_mpi_api& api) : api_(&api) {}

  /// Initialises MPI; blocks until every rank does.
  void open();
  bool has_mpi() const { return api_ != nullptr; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }
  const std::string& library() const { return library_; }

  MessageId send(std::uint32_t to, int tag, std::span<const std::byte> data);
  MessageId receive(std::uint32_t from, int tag, std::span<std::byte> data);
  MessageId receive_from_any(int tag, std::span<std::byte> data);
  /// What arrived, or an empty Arrival for a sent message; nothing while it is in transit.
  std::optional<Arrival> test(MessageId& message);
  void cancel_receive(MessageId& message);
  void close();
  void abort(int exit_code);

 private:
  const plugrad_mpi_api* api_ = nullptr;
  std::uint32_t rank_ = 0, size_ = 1;
  std::string library_ = "one process";
};

}  // namespace plugrad::distributed
