// The graph of a computation for every length within bounds: axes have the largest size, and the
// length is data, as of a Variable (ir/extents.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/plan/canonical.h"
#include "ir/extents.h"

namespace plugrad::engine {

/// A size, or where a slice begins, by the length: by * length + plus.
struct Line {
  int64_t by = 0, plus = 0;
  int64_t at(int64_t length) const { return by * length + plus; }
  bool varies() const { return by != 0; }
  bool operator==(const Line&) const = default;
  Line operator+(const Line& other) const { return {by + other.by, plus + other.plus}; }
  Line operator-(const Line& other) const { return {by - other.by, plus - other.plus}; }
};
using Lines = std::vector<Line>;
inline bool varies(std::span<const Line> lines) {
  for (const Line& line : lines)
    if (line.varies()) return true;
  return false;
}

struct LengthBounds {
  int64_t least = 1, most = 1;
};

/// How a graph depends on the length.
struct LengthForm {
  Lines sizes;                    // CanonicalGraph::sizes_of_axes()
  size_t length = 0;              // index of the size that is the length
  std::vector<NumberSite> sites;  // constants
  std::vector<uint8_t> given;     // which of them are given at launch
  LengthBounds bounds;
};

struct AnyLength {
  CanonicalGraph::Scratch scratch;   // its last input is the length, an i32 of shape ()
  Lines starts;                      // given at launch, behind the numbers of the sites
  std::vector<Lines> inputs, roots;  // their shapes
};

/// The largest length, of at most `most`, for which the graph's slices end within what they cut.
/// Errors: Unsupported, saying why, if a node has no form for several lengths.
int64_t largest_length(const CanonicalGraph& walked, const Graph& graph, const LengthForm& form);

/// `device`: of the length. Errors: Unsupported, saying at which operation, if elements would be read
/// that a length has not.
AnyLength for_any_length(const CanonicalGraph& walked, const Graph& graph, const LengthForm& form,
                         uint32_t device);

}  // namespace plugrad::engine
