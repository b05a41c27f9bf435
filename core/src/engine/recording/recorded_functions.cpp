#include "engine/recording/recorded_functions.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace plugrad::engine {
namespace {

constexpr size_t kMostText = 100;  // that a control message has room for

}  // namespace

RecordedFunctions& RecordedFunctions::of_this_thread() {
  thread_local RecordedFunctions all;
  return all;
}

void RecordedFunctions::add(std::string_view function, uint64_t numbers, DType dtype,
                            std::span<const int64_t> shape, const sharding::Spec& spec) {
  ++count_;
  last_ = function;
  const uint64_t words[] = {hash_,
                            hash64(std::as_bytes(std::span(function))),
                            numbers,
                            static_cast<uint64_t>(dtype),
                            hash64(std::as_bytes(shape)),
                            hash64(std::as_bytes(std::span(spec.dims))),
                            spec.partial,
                            static_cast<uint64_t>(spec.reduction)};
  hash_ = hash64(std::as_bytes(std::span(words)));
}

void RecordedFunctions::read(uint64_t number) {
  read_ = number;
  const uint64_t words[] = {hash_, number};
  hash_ = hash64(std::as_bytes(std::span(words)));
}

std::string RecordedFunctions::text() const {
  if (count_ == 0) return "none on a mesh";
  const std::string read = read_ == 0 ? "" : fmt::format(", result {} read last", read_);
  return fmt::format("{} on meshes, hash {:08x}{}, the last one {}", count_,
                     static_cast<uint32_t>(hash_), read, last_)
      .substr(0, kMostText);
}

}  // namespace plugrad::engine
