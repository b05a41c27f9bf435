// Cuts a model's main graph where elements decide, and records the parts between.
//
//   scores = ...            segment 1: recorded, gives scores and boxes
//   kept = NMS(scores)      on the host, with the elements of scores
//   y = Gather(boxes, kept) segment 2: recorded for the number of boxes that are kept
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/segments/segment.h"
#include "plugrad/onnx.h"

namespace plugrad::onnx {

/// The segments of one model: first one for the whole graph. Not thread-safe.
class Segments {
 public:
  /// `declared`: the model's inputs, in order. Errors: User for bounds, as OpenSizes has them.
  Segments(const ModelMessage& model, ModelFiles& files, std::string_view file_name,
           const std::vector<const ValueMessage*>& declared, const SizeBounds& bounds);

  /// The model's outputs; nothing if it cannot be cut where it must be: too often, in a recording,
  /// where a value crosses the cut that is no tensor of numbers, or if inputs have variable sizes.
  /// `given` are the inputs. Errors: as GraphRun has them.
  std::optional<std::vector<Value>> call(const std::vector<Value>& given);
  /// How the calls went; see Model::explain.
  std::string explain() const;
  /// See OpenSizes::contradiction.
  std::string contradiction(const std::vector<Value>& given) const;

 private:
  using Values = std::map<std::string_view, Value>;
  void find_names(Segment& segment) const;
  std::vector<Value> run(Segment& segment, Values& values);
  bool decide(const Segment& segment, const NeedsHostValues& needs, const Values& values,
              std::set<std::string_view>& deciding) const;
  bool add_leaves(std::string_view name, const Segment& segment, const Values& values,
                  std::set<std::string_view>& leaves) const;
  bool cut(size_t segment, const NeedsHostValues& needs, const Values& values);
  std::optional<std::vector<Value>> run_all(const std::vector<Value>& given);
  std::string name_of(const Segment& segment) const;

  SegmentSource source_;
  std::vector<const ValueMessage*> declared_;
  OpenSizes open_sizes_;
  bool can_be_cut_ = true, is_given_up_ = false;
  std::unordered_map<std::string_view, size_t> last_use_;     // node; past the last one: an output
  std::unordered_map<std::string_view, size_t> computed_by_;  // node
  std::vector<Segment> segments_;
  std::set<std::string_view> deciding_;  // read by the host once they are there
  uint64_t whole_calls_ = 0;             // that could not run in segments
  std::string cuts_, given_up_because_;  // for explain()
};

}  // namespace plugrad::onnx
