// Cuts a model's main graph where elements decide, and records the parts between.
//
//   scores = ...            segment 1: recorded, gives scores and boxes
//   kept = NMS(scores)      on the host, with the elements of scores
//   y = Gather(boxes, kept) segment 2: recorded for each shape of `kept`
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/file/messages.h"
#include "onnx/import/call.h"
#include "onnx/import/constants.h"
#include "onnx/import/value.h"
#include "plugrad/jit.h"

namespace plugrad::onnx {

inline constexpr int64_t kMostDeciding = 64;  // elements of a tensor that are part of a key

/// The nodes [first, last) of the main graph, which are recorded, or one node that the host computes.
class Segment {
 public:
  using Names = std::vector<std::string_view>;
  Segment(size_t first, size_t last, bool is_on_host)
      : first_(first), last_(last), is_on_host_(is_on_host) {}

  size_t first() const { return first_; }
  size_t last() const { return last_; }
  bool is_on_host() const { return is_on_host_; }

  /// The names that the nodes read without computing them, and those of their results that later
  /// nodes or the model's outputs read.
  Names in, out;

  /// The values of `out`; `given` has those of `in`, without names that inner graphs define. `varying`
  /// are those that are no constants of the file. Errors: as GraphRun has them.
  std::vector<Value> run(const ModelMessage& model, ModelFiles& files, std::string_view file_name,
                         const std::map<std::string_view, Value>& given, const Names& varying);

 private:
  struct Recording {
    std::unique_ptr<jit_detail::Calls> calls;
    std::vector<std::optional<Value>> results;  // that are no tensors of the recording
    std::vector<DataType> types;                // emulated ones, of all results
    uint64_t last_used = 0;
  };
  using Key = std::vector<uint64_t>;
  Recording* recording_of(const Key& key);

  size_t first_, last_;
  bool is_on_host_;
  std::map<Key, Recording> recordings_;
  std::vector<uint64_t> seen_;  // hashes of the last new keys, in a ring
  size_t seen_count_ = 0;
  int new_in_a_row_ = 0;  // calls with new keys
  uint64_t uses_ = 0;
};

/// The segments of one model. Not thread-safe.
class Segments {
 public:
  Segments(const ModelMessage& model, ModelFiles& files, std::string_view file_name);

  /// The model's outputs; nothing if it cannot be cut: a value that is no tensor of numbers crosses
  /// a cut, or there are too many of these. `values` are those of the inputs. Errors: as GraphRun
  /// has them.
  std::optional<std::vector<Value>> call(std::map<std::string_view, Value> values);

 private:
  bool cut(size_t segment, const NeedsHostValues& needs,
           const std::map<std::string_view, Value>& values);
  void find_names(Segment& segment) const;
  std::vector<Value> run(Segment& segment, std::map<std::string_view, Value>& values);

  const ModelMessage& model_;
  ModelFiles& files_;
  std::string_view file_name_;
  bool can_be_cut_ = true;
  std::unordered_map<std::string_view, Value> constants_;
  std::unordered_map<std::string_view, size_t> last_use_;  // node; past the last one: an output
  std::vector<Segment> segments_;
  std::set<std::string_view> deciding_;  // read by the host once they are there
};

}  // namespace plugrad::onnx
