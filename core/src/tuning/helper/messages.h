// What the process and its measuring helper say to each other over a socket: frames of a kind, a
// size and bytes. Both ends are of one build, so the form may change with any version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "codegen/codegen.h"

namespace plugrad::tuning {

enum class MessageKind : uint32_t {
  // to the helper
  Params,  // the buffers that the kernels of later requests take
  Time,    // kernels to be timed side by side
  Check,   // a kernel to be compared with another one
  // from it
  Ready,      // a request begins, or the params are there
  Compiling,  // number of a kernel
  Compiled,   // number of a kernel
  Refused,    // number of a kernel, why
  Running,    // number of a kernel that is launched now
  Times,      // seconds by kernel
  Verdict,    // empty, or how the values differ
  Failed,     // why the request cannot be met
};

/// One parameter and what it is filled with.
struct ParamSpec {
  uint64_t elem_count = 0;
  uint32_t dtype = 0, flags = 0;  // PGR_PARAM_*
  uint64_t below = 0;             // integers are less than this; 0: any small ones. 1: zeros
  /// `below` of one number that may be the size of an axis: all loops run to their ends.
  static constexpr uint64_t kAllPlaces = UINT64_MAX;
};

struct KernelSpec {
  std::string name;
  std::vector<std::byte> ir;
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
};

struct TimeSpec {
  bool contract = true;
  double seconds = 1;  // after which no further round begins
  uint32_t least_rounds = 2, most_rounds = 9;
  double slower = 3;  // than the best so far: not timed any further
};

struct CheckSpec {
  bool contract = true;
  bool is_sample =
      false;  // the reference computes some elements: those it leaves are compared with `whole`
  double tolerance = 0;  // of floats, relative to the value and to the mean magnitude
};

void put_kernel(ByteWriter& out, const codegen::KernelCode& code);
KernelSpec get_kernel(ByteReader& in);

/// False when the other end is gone.
bool say(int socket, MessageKind kind, std::span<const std::byte> bytes = {});
enum class Received { Frame, Nothing, Gone };
/// Waits for one whole frame until `deadline_ns` of the monotonic clock.
Received hear(int socket, uint64_t deadline_ns, MessageKind& kind, std::vector<std::byte>& bytes);

}  // namespace plugrad::tuning
