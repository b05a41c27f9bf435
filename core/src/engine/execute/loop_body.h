// Recorded loops: what one step of a loop computes, as a graph of its own, and the session's table
// of these bodies. A UserKernel node with kLoopBit runs the body once for each place of the first
// axis of the arrays that it steps along.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "ir/graph.h"

namespace plugrad::engine {

class Session;

/// Buffer nodes from this number on stand for what a step is given: they never have a value.
inline constexpr uint64_t kPlaceholder = uint64_t{1} << 62;

/// Places of a stepped array are as many elements apart as make this many bytes or a multiple.
inline constexpr int64_t kLoopAlignment = 256;

/// Elements from a place of a stepped array to the next, which has `elem_count` of them.
int64_t loop_stride(int64_t elem_count, DType dtype);

/// One step of a loop. What a step reads has a number: states, then stepped inputs, captured
/// values, sums. The node's sources: the length if it is counted, first states, stepped inputs,
/// captured values. Its outputs: the states after each step, stepped outputs, sums, and memory in
/// which sums change places.
struct LoopBody {
  struct Array {
    DType dtype;
    int64_t elem_count;  // of one step
    uint64_t size_bytes() const;
    uint64_t stride_bytes() const;
  };

  Graph graph;
  std::vector<Id> roots;            // next states, stepped outputs, next sums
  std::vector<Id> inputs;           // Buffer nodes 0, 1, …
  std::vector<uint32_t> number_of;  // by input: what it stands for
  std::vector<Array> arrays;        // by root
  std::vector<Array> stepped;       // inputs
  uint32_t states = 0, captured = 0, outputs = 0, sums = 0;
  bool is_counted = false;  // the length is data
  bool is_reversed = false;
  Hash128 hash;

  uint32_t output_count() const { return states + outputs + 2 * sums; }
  uint32_t count_param() const { return output_count(); }
  uint32_t first_input_param() const { return output_count() + (is_counted ? 1 : 0); }
};
using LoopBodyPtr = std::shared_ptr<const LoopBody>;

/// Nodes of the session's graph of which a body is made.
struct LoopNodes {
  std::vector<Id> states, stepped, captured, sums;  // what a step reads
  std::vector<Id> next_states, outputs, next_sums;  // what it gives
  bool is_counted = false, is_reversed = false;
};

/// The body as a graph of its own. Equal ones have equal hashes. Under a Session::Lock.
LoopBody make_loop_body(Session& session, const LoopNodes& nodes);

/// Equal bodies have one number. They stay: plans name them.
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
