// Recorded loops: the graph of one iteration, and the session's table of these bodies. A UserKernel
// node with kLoopBit runs the body once for each index of the first axis of its stepped arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/internal.h"
#include "ir/graph.h"

namespace plugrad::engine {

class Session;

/// Buffer nodes numbered from here on are the inputs of a body: they never have a value.
inline constexpr uint64_t kPlaceholder = uint64_t{1} << 62;

/// Alignment, in bytes, of consecutive iterations' slices in a stepped array.
inline constexpr int64_t kLoopAlignment = 256;

/// Elements between the slices of consecutive iterations; a slice has `elem_count` elements.
PLUGRAD_INTERNAL int64_t loop_stride(int64_t elem_count, DType dtype);

/// One iteration of a loop. Its inputs are numbered in the order: states, stepped inputs, captured
/// values, sums. Sources of the node: the length if it is counted, initial states, stepped inputs,
/// captured values. Outputs of the node: the states after each iteration, stepped outputs, sums,
/// and a second buffer for each sum, with which iterations alternate.
struct LoopBody {
  struct Array {
    DType dtype;
    int64_t elem_count;  // of one iteration
    uint64_t size_bytes() const;
    uint64_t stride_bytes() const;
  };

  Graph graph;
  std::vector<Id> roots;            // next states, stepped outputs, next sums
  std::vector<Id> inputs;           // Buffer nodes 0, 1, …
  std::vector<uint32_t> number_of;  // by input: its number in the order above
  std::vector<Array> arrays;        // by root
  std::vector<Array> stepped;       // inputs
  uint32_t states = 0, captured = 0, outputs = 0, sums = 0;
  bool is_counted = false;  // the length is a value computed at run time
  bool is_reversed = false;
  Hash128 hash;

  uint32_t output_count() const { return states + outputs + 2 * sums; }
  uint32_t count_param() const { return output_count(); }
  uint32_t first_input_param() const { return output_count() + (is_counted ? 1 : 0); }
};
using LoopBodyPtr = std::shared_ptr<const LoopBody>;

/// Nodes of the session's graph from which a body is made.
struct LoopNodes {
  std::vector<Id> states, stepped, captured, sums;  // inputs of an iteration
  std::vector<Id> next_states, outputs, next_sums;  // outputs of an iteration
  bool is_counted = false, is_reversed = false;
};

/// Copies the body into its own graph. Equal bodies have equal hashes. Requires a Session::Lock.
LoopBody make_loop_body(Session& session, const LoopNodes& nodes);

/// Bodies by number, equal ones once. Entries are never removed: plans refer to them.
class LoopTable {
 public:
  uint32_t add(LoopBody body);
  const LoopBodyPtr& operator[](uint32_t number) const { return bodies_.at(number); }
  size_t size() const { return bodies_.size(); }

 private:
  std::vector<LoopBodyPtr> bodies_;
  std::unordered_map<Hash128, uint32_t, Hash128Hasher> by_hash_;
};

}  // namespace plugrad::engine
