// Messages between the process and its timing helper over a socket: frames of kind, size and bytes.
// Both ends are of the same build, so the format may change with any version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "codegen/codegen.h"

namespace plugrad::tuning {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class MessageKind : uint32_t {
  // requests to the helper
  Params,  // buffers for the kernels of later requests
  Time,    // kernels to time side by side
  Check,   // a kernel to compare with another one
  // replies of the helper
  Ready,      // the helper has started, or the params are set
  Compiling,  // number of a kernel
  Compiled,   // number of a kernel
  Refused,    // number of a kernel, why
  Running,    // number of the kernel being launched
  Times,      // seconds by kernel
  Verdict,    // empty, or how the results differ
  Failed,     // why the request failed
};

/// One parameter and its contents.
struct ParamSpec {
  uint64_t elem_count = 0;
  uint32_t dtype = 0, flags = 0;  // PGR_PARAM_*
  uint64_t below = 0;             // integers are less than this; 0: small ones; 1: zeros
  /// `below` of a scalar that may be the size of an axis: all loops run to their full length.
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
  double seconds = 1;  // no round starts later than this
  uint32_t least_rounds = 2, most_rounds = 9;
  double slower = 3;  // x the best so far: stop timing the kernel
};

struct CheckSpec {
  bool contract = true;
  bool is_sample = false;  // the reference has a sample: compare all elements with `whole` too
  double tolerance = 0;    // of floats, relative to the larger of value and mean magnitude
};

void put_kernel(ByteWriter& out, const codegen::KernelCode& code);
KernelSpec get_kernel(ByteReader& in);

/// False if the other end has closed.
bool say(int socket, MessageKind kind, std::span<const std::byte> bytes = {});
enum class Received { Frame, Nothing, Gone };
/// Waits for a whole frame until `deadline_ns` of the monotonic clock.
Received hear(int socket, uint64_t deadline_ns, MessageKind& kind, std::vector<std::byte>& bytes);

}  // namespace plugrad::tuning
