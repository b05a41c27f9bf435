// A part of a model's main graph, with its recordings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/file/messages.h"
#include "onnx/import/call.h"
#include "onnx/import/constants.h"
#include "onnx/import/value.h"
#include "onnx/segments/open_sizes.h"
#include "onnx/segments/segment_history.h"
#include "plugrad/jit.h"

namespace plugrad::onnx {

using ValueNames = std::vector<std::string_view>;

/// Shared by all segments of a model.
struct SegmentSource {
  const ModelMessage& message;
  ModelFiles& files;
  std::string_view file_name;
  std::unordered_map<std::string_view, Value> constants = {};  // of the main graph
  uint64_t calls = 0;                                          // of the model so far
};

/// The nodes [first, last) of the main graph, which are recorded, or one node that the host
/// computes.
class Segment {
 public:
  enum class Kind : uint8_t {
    Whole,  // the whole graph, for the sizes that the model leaves open
    Part,
    Host
  };
  using CanDecide = std::function<bool(const NeedsHostValues&)>;
  Segment(Kind of_kind, size_t from, size_t to) : kind(of_kind), first(from), last(to) {}
  Segment(Segment&&) = default;
  Segment& operator=(Segment&&) = default;

  Kind kind;
  size_t first, last;
  ValueNames in;         // read by the nodes, and not computed by them
  ValueNames constants;  // the same, of the file
  ValueNames out;        // computed, and read by later nodes or the caller

  /// The values of `out`, each a tensor with the sizes that it has or a known value. `given` are
  /// those of `in`; the elements of known ones are part of a recording's key. `can_decide`: whether
  /// the call can be repeated with elements that were needed. `declared` has the sizes of a whole
  /// graph. Errors: NeedsHostValues; as GraphRun has them.
  std::vector<Value> run(const SegmentSource& source, const std::vector<Value>& given,
                         OpenSizes* declared, const CanDecide& can_decide);

  /// How its calls went: lines of explain().
  std::string explain() const { return history_.text(recordings_.size()); }
  const SegmentHistory& history() const { return history_; }
  /// Lines on the sizes that differ; empty for a whole graph, whose sizes are the model's.
  std::string explain_sizes() const { return open_sizes_ ? open_sizes_->explain() : ""; }

 private:
  struct Recording {
    std::unique_ptr<jit_detail::Calls> calls{};
    std::vector<std::optional<Value>> fixed{};  // results that are no tensors of the recording
    std::vector<DataType> types{};              // emulated ones, of all results
    uint64_t last_used = 0;
  };
  // The given values that are tensors on the device, by their number in `in`.
  struct Tensors {
    std::vector<size_t> inputs{};
    std::vector<Tensor> tensors{};
    std::vector<SizeSum> sums{};
    bool sizes_are_inferred = true;
  };
  using Key = std::vector<uint64_t>;

  std::vector<Value> compute(const SegmentSource& source, const std::vector<Value>& given,
                             bool is_jitted, const Tensors& numbers) const;
  std::vector<Value> replay(const SegmentSource& source, std::vector<Value> given,
                            const Tensors& numbers);
  std::optional<std::vector<Value>> run_for_all_sizes(const SegmentSource& source,
                                                      const std::vector<Value>& given,
                                                      const Tensors& numbers, OpenSizes& sizes,
                                                      const CanDecide& can_decide);
  OpenSizes* sizes_of(const std::vector<Value>& given);
  Recording* recording_of(const Key& key);

  std::map<Key, Recording> recordings_;
  SegmentHistory history_;
  std::vector<uint64_t> seen_;  // hashes of the last new keys, in a ring
  size_t seen_count_ = 0;
  int new_in_a_row_ = 0;  // calls with new keys
  uint64_t uses_ = 0;
  std::vector<ValueMessage> messages_;  // of `in`: tensors whose sizes are open
  std::optional<OpenSizes> open_sizes_;
  bool serves_all_sizes_ = false;  // a recording with variable sizes has run
};

}  // namespace plugrad::onnx
