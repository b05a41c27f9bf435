// Small messages beside the data: who has arrived at which call, who is there, who gives up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "distributed/backend.h"
#include "distributed/processes.h"
#include "plugrad/error.h"

namespace plugrad::distributed {

inline constexpr int kControlTag = 1;
inline constexpr std::size_t kControlBytes = 4096;  // the longest control message

enum class ControlType : std::uint8_t {
  Hello,   ///< the first message of a rank: `text` is its program
  Arrive,  ///< the rank has started a call
  Ping,    ///< asks for a Pong
  Pong,    ///< `text` is the call that the rank has started last
  Broken,  ///< the rank gives up, because of `text`
  Bye,     ///< the rank starts no calls any more; `text` is its last error of a device
};

/// The fields of a call that members compare and that errors show.
struct Description {
  Kind kind = Kind::AllReduce;
  Reduction reduction = Reduction::Add;
  DType dtype = DType::F32;
  std::uint32_t root = 0;
  std::string counts;  ///< "10", or "[3, 4, 3]"
  std::string tensor;
  std::string program;
  std::int64_t to_reader = 0, from_reader = 0;  ///< of AllToAll: elements for who reads this
};
/// `all-reduce of "w" (f32, 10 elements, add)`
std::string to_text(const Description& description);
/// A name of at most 100 bytes, in quotation marks.
std::string quoted_name(const std::string& tensor);

struct Control {
  ControlType type = ControlType::Ping;
  std::string text = {};  // at most 2,000 bytes arrive
  ErrorKind kind = ErrorKind::Device;
  ProcessPlace place = {};                 // of Hello
  std::vector<std::uint32_t> silent = {};  // of Broken: ranks that do not answer
  // Of Arrive:
  Hash128 channel = {};       ///< the group, or the sender and receiver
  std::uint64_t number = 0;   ///< of the call among those of the channel, from 1
  std::uint64_t history = 0;  ///< hash of the channel's calls up to this one
  std::int32_t tag = 0;       ///< of the data that the rank sends
  Description description = {};
};

std::vector<std::byte> encode(const Control& control);
/// Nothing if the bytes are of another version or byte order.
std::optional<Control> decode(std::span<const std::byte> bytes);

/// The description of a rank's call that is sent to the member `reader`.
Description describe(const Call& call, std::uint32_t reader);
/// Hash of a channel's calls: of the former ones and this one. What differs between members of a
/// correct call does not enter.
std::uint64_t extend_history(std::uint64_t history, const Description& description);

/// "rank 3", or "ranks 1, 3, 4"
std::string ranks_text(std::span<const std::uint32_t> ranks);

}  // namespace plugrad::distributed
