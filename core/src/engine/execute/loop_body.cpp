#include "engine/execute/loop_body.h"

#include <algorithm>

#include "engine/plan/canonical.h"
#include "engine/session.h"

namespace plugrad::engine {
namespace {

LoopBody::Array array_of(Session& session, Id node) {
  return {session.graph()[node].dtype, element_count(session.shape(node))};
}

Hash128 hash_of(const LoopBody& body, const Hash128& graph) {
  std::vector<uint64_t> words = {graph.high,   graph.low, body.states,     body.captured,
                                 body.outputs, body.sums, body.is_counted, body.is_reversed};
  words.insert(words.end(), body.number_of.begin(), body.number_of.end());
  for (const LoopBody::Array& array : body.stepped) {
    words.push_back(static_cast<uint64_t>(array.dtype));
    words.push_back(static_cast<uint64_t>(array.elem_count));
  }
  return hash128(std::as_bytes(std::span(words)));
}

}  // namespace

int64_t loop_stride(int64_t elem_count, DType dtype) {
  const int64_t unit = kLoopAlignment / static_cast<int64_t>(size_of(dtype));
  return std::max<int64_t>((elem_count + unit - 1) / unit, 1) * unit;
}

uint64_t LoopBody::Array::size_bytes() const {
  return static_cast<uint64_t>(elem_count) * size_of(dtype);
}

uint64_t LoopBody::Array::stride_bytes() const {
  return static_cast<uint64_t>(loop_stride(elem_count, dtype)) * size_of(dtype);
}

// Placeholder values stop the walk at the body's inputs; they own no buffer.
LoopBody make_loop_body(Session& session, const LoopNodes& nodes) {
  LoopBody body;
  body.states = static_cast<uint32_t>(nodes.states.size());
  body.captured = static_cast<uint32_t>(nodes.captured.size());
  body.outputs = static_cast<uint32_t>(nodes.outputs.size());
  body.sums = static_cast<uint32_t>(nodes.sums.size());
  body.is_counted = nodes.is_counted;
  body.is_reversed = nodes.is_reversed;
  ValueTable values;
  std::vector<ValuePtr> given;
  for (const auto* part : {&nodes.states, &nodes.stepped, &nodes.captured, &nodes.sums})
    for (const Id id : *part) {
      auto value = std::make_shared<Value>();
      value->dtype = session.graph()[id].dtype;
      values.set(id, value);
      given.push_back(std::move(value));
    }
  std::vector<Id> roots;
  for (const auto* part : {&nodes.next_states, &nodes.outputs, &nodes.next_sums})
    roots.insert(roots.end(), part->begin(), part->end());
  for (const Id id : roots) body.arrays.push_back(array_of(session, id));
  for (const Id id : nodes.stepped) body.stepped.push_back(array_of(session, id));
  CanonicalGraph walk;
  walk.walk(session.graph(), session.shapes(), session.devices(), 0, values, roots);
  CanonicalGraph::Scratch copy = walk.copy();
  for (const ValuePtr& input : walk.take_inputs())
    body.number_of.push_back(
        static_cast<uint32_t>(std::ranges::find(given, input) - given.begin()));
  body.graph = std::move(copy.graph);
  body.roots = std::move(copy.roots);
  body.inputs = std::move(copy.inputs);
  body.hash = hash_of(body, walk.key());
  return body;
}

uint32_t LoopTable::add(LoopBody body) {
  if (const auto known = by_hash_.find(body.hash); known != by_hash_.end()) return known->second;
  bodies_.push_back(std::make_shared<const LoopBody>(std::move(body)));
  const auto number = static_cast<uint32_t>(bodies_.size() - 1);
  by_hash_.emplace(bodies_.back()->hash, number);
  return number;
}

}  // namespace plugrad::engine
