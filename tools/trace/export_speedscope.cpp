// A launch lies within a frame of the operation that it computes and within those of its callers,
// so that the flame graph shows the time of the user's lines.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "trace/export.h"
#include "trace/lanes.h"
#include "trace/summary.h"

namespace plugrad::tools::trace {
namespace {

struct Frame {
  std::string name, file;
  int64_t line = 0;
  auto operator<=>(const Frame&) const = default;
};

class SpeedscopeWriter {
 public:
  explicit SpeedscopeWriter(const Trace& trace) : trace_(trace), stacks_(slice_key_count(trace)) {}

  std::string run() {
    const Summary summary = summarise(trace_);
    std::string profiles;
    for (const Lane& lane : make_lanes(trace_)) {
      if (!profiles.empty()) profiles += ",\n";
      profiles += profile(lane, summary);
    }
    if (profiles.empty())
      profiles = profile({.track = kNone, .name = "no events", .slices = {}}, summary);
    return fmt::format(R"({{"$schema":"https://www.speedscope.app/file-format-schema.json",)"
                       R"("exporter":"plugrad","name":{},)"
                       "\n\"shared\":{{\"frames\":{}}},\n\"profiles\":[{}]}}\n",
                       nlohmann::json(trace_.header.program).dump(), frames_.dump(), profiles);
  }

 private:
  size_t frame_index(const Frame& frame) {
    const auto [place, is_new] = indices_.emplace(frame, frames_.size());
    if (is_new) {
      nlohmann::ordered_json json = {{"name", frame.name}};
      if (!frame.file.empty()) {
        json["file"] = frame.file;
        json["line"] = frame.line;
      }
      frames_.push_back(std::move(json));
    }
    return place->second;
  }

  // Frames of a slice, outermost first.
  const std::vector<size_t>& stack_of(const Slice& slice) {
    std::vector<size_t>& stack = stacks_[slice_key(trace_, slice)];
    if (!stack.empty()) return stack;
    if (slice.kind == SliceKind::Launch) {
      const int32_t kernel = trace_.launches.kernel[slice.index];
      if (const Operation* operation = first_located(trace_, kernel)) {
        for (auto at = operation->stack.rbegin(); at != operation->stack.rend(); ++at)
          stack.push_back(frame_index({*at, "", 0}));
        stack.push_back(
            frame_index({operations_text(trace_, kernel), operation->file, operation->line}));
      }
    }
    stack.push_back(frame_index({slice_name(trace_, slice), "", 0}));
    return stack;
  }

  std::string profile(const Lane& lane, const Summary& summary) {
    std::string device;
    if (lane.track != kNone)
      if (const int32_t d = trace_.tracks[static_cast<size_t>(lane.track)].device; d != kNone)
        device = device_name(trace_, d) + " ";
    if (lane.name.starts_with(device.substr(0, device.size() - !device.empty()))) device.clear();
    std::string events;
    int64_t last = summary.end_ns;
    const auto add = [&](char type, size_t frame, int64_t time) {
      fmt::format_to(std::back_inserter(events), R"({}{{"type":"{}","frame":{},"at":{}}})",
                     events.empty() ? "" : ",", type, frame, time);
      last = std::max(last, time);
    };
    walk(
        lane,
        [&](const Slice& slice) {
          for (const size_t frame : stack_of(slice)) add('O', frame, slice.start);
        },
        [&](const Slice& slice) {
          const std::vector<size_t>& stack = stack_of(slice);
          for (size_t i = stack.size(); i > 0; --i) add('C', stack[i - 1], slice.end);
        });
    const int64_t first = lane.slices.empty() ? 0 : lane.slices.front().start;
    return fmt::format(
        R"({{"type":"evented","name":{},"unit":"nanoseconds","startValue":{},"endValue":{},"events":[{}]}})",
        nlohmann::json(device + lane.name).dump(), std::min(first, summary.begin_ns), last, events);
  }

  const Trace& trace_;
  std::vector<std::vector<size_t>> stacks_;
  nlohmann::ordered_json frames_ = nlohmann::ordered_json::array();
  std::map<Frame, size_t> indices_;
};

}  // namespace

std::string to_speedscope(const Trace& trace) {
  return SpeedscopeWriter(trace).run();
}

}  // namespace plugrad::tools::trace
