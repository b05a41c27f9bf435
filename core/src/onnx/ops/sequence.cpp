// Operators of sequences and optionals. A recorded call knows how many elements a sequence has.
#include <algorithm>

#include "base/check.h"
#include "onnx/file/graph_check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

// A position counted from the start; `most` is the last one that is allowed.
size_t position(Call& call, size_t input, size_t count, size_t most) {
  const int64_t given = call.integer_input(input), size = static_cast<int64_t>(count);
  const int64_t at = given < 0 ? given + size : given;
  if (at < 0 || at > static_cast<int64_t>(most))
    call.wrong(fmt::format("position {} is out of range for a sequence of {}", given, count));
  return static_cast<size_t>(at);
}

Values sequence_empty(Call&) {
  return {Value::sequence({})};
}

Values sequence_construct(Call& call) {
  Values elements;
  for (size_t i = 0; i < call.input_count(); ++i) elements.push_back(call.value(i));
  return {Value::sequence(std::move(elements))};
}

Values sequence_insert(Call& call) {
  Values elements = call.sequence(0);
  const size_t count = elements.size();
  const size_t at = call.has(2) && count > 0 ? position(call, 2, count, count) : count;
  elements.insert(elements.begin() + static_cast<int64_t>(at), call.value(1));
  return {Value::sequence(std::move(elements))};
}

Values sequence_at(Call& call) {
  const Values& elements = call.sequence(0);
  if (elements.empty()) call.wrong("the sequence is empty");
  return {elements[position(call, 1, elements.size(), elements.size() - 1)]};
}

Values sequence_erase(Call& call) {
  Values elements = call.sequence(0);
  if (elements.empty()) call.wrong("the sequence is empty");
  const size_t at =
      call.has(1) ? position(call, 1, elements.size(), elements.size() - 1) : elements.size() - 1;
  elements.erase(elements.begin() + static_cast<int64_t>(at));
  return {Value::sequence(std::move(elements))};
}

Values sequence_length(Call& call) {
  return {Value::known({{}, DType::I64, {call.sequence(0).size()}})};
}

// The graph sees each element of the first sequence with those of the other ones, and tensors as
// they are.
Values sequence_map(Call& call) {
  const GraphMessage& body = call.graph("body");
  const size_t count = call.sequence(0).size();
  std::vector<Values> collected(call.output_count());
  for (size_t i = 0; i < count; ++i) {
    Values given;
    for (size_t input = 0; input < call.input_count(); ++input) {
      const Values* const elements = call.value(input).elements();
      if (elements && elements->size() != count)
        call.wrong(fmt::format("input {} has {} elements, the first one has {}", input,
                               elements->size(), count));
      given.push_back(elements ? (*elements)[i] : call.value(input));
    }
    Values results = call.recording().run(body, given);
    if (results.size() < collected.size()) call.wrong("the body has too few outputs");
    for (size_t output = 0; output < collected.size(); ++output)
      collected[output].push_back(std::move(results[output]));
  }
  Values sequences;
  for (Values& elements : collected) sequences.push_back(Value::sequence(std::move(elements)));
  return sequences;
}

Values split_to_sequence(Call& call) {
  const Tensor x = call[0];
  const int64_t axis = call.axis_of(x, 0);
  const int64_t size = x.size(axis);
  std::vector<int64_t> sizes;
  if (call.has(1) && !call.host(1).shape.empty()) {
    sizes = call.integers(1);
  } else {
    const int64_t each = call.has(1) ? call.integer_input(1) : 1;
    if (each <= 0) call.wrong(fmt::format("split is {}, it must be positive", each));
    if (size / each >= kMostNodes)
      call.wrong(fmt::format("the sequence would have more than {} elements", kMostNodes));
    for (int64_t left = size; left > 0; left -= each) sizes.push_back(std::min(each, left));
  }
  const bool drops_axis = !call.has(1) && call.integer("keepdims", 1) == 0;
  Values parts;
  for (const Tensor& part : x.split(sizes, axis))
    parts.emplace_back(drops_axis ? part.squeeze(axis) : part);
  return {Value::sequence(std::move(parts))};
}

Values concat_from_sequence(Call& call) {
  std::vector<Tensor> parts;
  for (const Value& element : call.sequence(0)) {
    if (!element.is_tensor()) call.wrong("an element is no tensor");
    parts.push_back(element.tensor());
  }
  if (parts.empty()) call.wrong("the sequence is empty");
  const int64_t axis = call.integer("axis", 0);
  return {call.integer("new_axis", 0) != 0 ? stack(parts, axis) : cat(parts, axis)};
}

Values optional_of(Call& call) {
  return {call.has(0) ? call.value(0) : Value()};
}

Values optional_has_element(Call& call) {
  return {Value::known({{}, DType::Bool, {call.has(0) ? 1U : 0U}})};
}

Values optional_get_element(Call& call) {
  if (!call.has(0)) call.wrong("the optional is empty");
  return {call.value(0)};
}

constexpr OperatorRow kSequenceRows[] = {
    {"ConcatFromSequence", concat_from_sequence},
    {"Optional", optional_of},
    {"OptionalGetElement", optional_get_element},
    {"OptionalHasElement", optional_has_element},
    {"SequenceAt", sequence_at},
    {"SequenceConstruct", sequence_construct},
    {"SequenceEmpty", sequence_empty},
    {"SequenceErase", sequence_erase},
    {"SequenceInsert", sequence_insert},
    {"SequenceLength", sequence_length},
    {"SequenceMap", sequence_map},
    {"SplitToSequence", split_to_sequence},
};

}  // namespace

std::span<const OperatorRow> sequence_operators() {
  return kSequenceRows;
}

}  // namespace plugrad::onnx
