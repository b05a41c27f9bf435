// Lays out the events of a trace in lanes within which they nest, as viewers of profiles require.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace plugrad::tools::trace {

enum class SliceKind : uint8_t { Launch, Copy, Wait, Collective, Span };

/// An event: element `index` of the trace's columns of this kind.
struct Slice {
  int64_t start = 0, end = 0;
  SliceKind kind = SliceKind::Launch;
  uint32_t index = 0;
};

/// Any two slices are either apart, or one contains the other. A container is before its contents.
struct Lane {
  int32_t track = kNone;
  std::string name;
  std::vector<Slice> slices;
};

/// In the order of the tracks. Events of one track that overlap, but do not nest, get several
/// lanes. Events of unknown tracks share a lane at the end.
std::vector<Lane> make_lanes(const Trace& trace);

/// The kernel's name, "copy host to device", "wait for CUDA:0", "wait for a collective",
/// "all-reduce", or the name of a span.
std::string slice_name(const Trace& trace, const Slice& slice);
/// "launch", "copy", "wait", "collective", or the category of a span.
const char* slice_category(const Trace& trace, const Slice& slice);
/// Equal for slices of equal name and category, below slice_key_count(). Dense.
size_t slice_key(const Trace& trace, const Slice& slice);
size_t slice_key_count(const Trace& trace);

/// Calls begin(slice) and end(slice, time) in the order of time.
template <class Begin, class End>
void walk(const Lane& lane, Begin begin, End end) {
  std::vector<const Slice*> open;
  const auto close_until = [&](int64_t time) {
    while (!open.empty() && open.back()->end <= time) {
      end(*open.back());
      open.pop_back();
    }
  };
  for (const Slice& slice : lane.slices) {
    close_until(slice.start);
    begin(slice);
    open.push_back(&slice);
  }
  close_until(INT64_MAX);
}

}  // namespace plugrad::tools::trace
