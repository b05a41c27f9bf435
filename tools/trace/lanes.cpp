#include "trace/lanes.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/summary.h"

namespace plugrad::tools::trace {
namespace {

constexpr size_t kDirections = 4, kTraceCategories = 9;

void add_slices(const Events& events, SliceKind kind, std::vector<std::vector<Slice>>& of_tracks) {
  for (size_t i = 0; i < events.size(); ++i) {
    const auto track = static_cast<size_t>(events.track[i]);
    of_tracks[events.track[i] < 0 ? of_tracks.size() - 1 : track].push_back(
        {events.start[i], events.start[i] + events.duration[i], kind, static_cast<uint32_t>(i)});
  }
}

// A lane under construction and the ends of its open slices, the innermost last.
struct OpenLane {
  Lane lane;
  std::vector<int64_t> ends;

  bool takes(const Slice& slice) {
    while (!ends.empty() && ends.back() <= slice.start) ends.pop_back();
    return ends.empty() || slice.end <= ends.back();
  }
};

void lay_out(std::vector<Slice> slices, int32_t track, const std::string& name,
             std::vector<Lane>& out) {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<OpenLane> lanes;
  for (const Slice& slice : slices) {
    auto lane = std::ranges::find_if(lanes, [&](OpenLane& one) { return one.takes(slice); });
    if (lane == lanes.end()) {
      const std::string number = lanes.empty() ? "" : fmt::format(" ({})", lanes.size() + 1);
      lanes.push_back({{track, name + number, {}}, {}});
      lane = lanes.end() - 1;
    }
    lane->ends.push_back(slice.end);
    lane->lane.slices.push_back(slice);
  }
  for (OpenLane& lane : lanes) out.push_back(std::move(lane.lane));
}

const std::string* span_name(const Trace& trace, size_t span) {
  const int32_t name = trace.spans.name[span];
  return name < 0 ? nullptr : &trace.names[static_cast<size_t>(name)];
}

size_t slot(int32_t index) {  // kNone is 0
  return static_cast<size_t>(index + 1);
}

}  // namespace

std::vector<Lane> make_lanes(const Trace& trace) {
  std::vector<std::vector<Slice>> of_tracks(trace.tracks.size() + 1);
  add_slices(trace.launches, SliceKind::Launch, of_tracks);
  add_slices(trace.copies, SliceKind::Copy, of_tracks);
  add_slices(trace.waits, SliceKind::Wait, of_tracks);
  add_slices(trace.collectives, SliceKind::Collective, of_tracks);
  add_slices(trace.spans, SliceKind::Span, of_tracks);
  std::vector<Lane> lanes;
  for (size_t i = 0; i < of_tracks.size(); ++i) {
    const bool is_known = i < trace.tracks.size();
    lay_out(std::move(of_tracks[i]), is_known ? static_cast<int32_t>(i) : kNone,
            is_known ? trace.tracks[i].name : "unknown track", lanes);
  }
  return lanes;
}

std::string slice_name(const Trace& trace, const Slice& slice) {
  switch (slice.kind) {
    case SliceKind::Launch:
      return kernel_name(trace, trace.launches.kernel[slice.index]);
    case SliceKind::Copy:
      return trace.copies.direction[slice.index] == Direction::Fill
                 ? "fill"
                 : fmt::format("copy {}", to_string(trace.copies.direction[slice.index]));
    case SliceKind::Wait:
      return trace.waits.device[slice.index] == kNone
                 ? "wait for a collective"
                 : "wait for " + device_name(trace, trace.waits.device[slice.index]);
    case SliceKind::Collective:
      return std::string(name_of(trace.collectives.kind[slice.index]));
    case SliceKind::Span:
      break;
  }
  const std::string* name = span_name(trace, slice.index);
  return name && !name->empty() ? *name : slice_category(trace, slice);
}

const char* slice_category(const Trace& trace, const Slice& slice) {
  constexpr const char* kCategoryNames[] = {"plan",   "codegen", "compile", "run",  "stage",
                                            "search", "pool",    "jit",     "other"};
  switch (slice.kind) {
    case SliceKind::Launch:
      return "launch";
    case SliceKind::Copy:
      return "copy";
    case SliceKind::Wait:
      return "wait";
    case SliceKind::Collective:
      return "collective";
    case SliceKind::Span:
      break;
  }
  return kCategoryNames[static_cast<size_t>(trace.spans.category[slice.index])];
}

size_t slice_key_count(const Trace& trace) {
  return trace.kernels.size() + 1 + kDirections + trace.devices.size() + 1 + kCollectiveKinds +
         kTraceCategories * (trace.names.size() + 1);
}

size_t slice_key(const Trace& trace, const Slice& slice) {
  size_t first = 0;
  if (slice.kind == SliceKind::Launch) return slot(trace.launches.kernel[slice.index]);
  first += trace.kernels.size() + 1;
  if (slice.kind == SliceKind::Copy)
    return first + static_cast<size_t>(trace.copies.direction[slice.index]);
  first += kDirections;
  if (slice.kind == SliceKind::Wait) return first + slot(trace.waits.device[slice.index]);
  first += trace.devices.size() + 1;
  if (slice.kind == SliceKind::Collective)
    return first + static_cast<size_t>(trace.collectives.kind[slice.index]);
  first += kCollectiveKinds;
  return first + kTraceCategories * slot(trace.spans.name[slice.index]) +
         static_cast<size_t>(trace.spans.category[slice.index]);
}

}  // namespace plugrad::tools::trace
