#include "engine/lengths/length_call.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "engine/views/leading_parts.h"

namespace plugrad::engine {
namespace {

constexpr int64_t kMostRows = 4096;

std::vector<int64_t> shape_at(const Lines& lines, int64_t length) {
  std::vector<int64_t> shape;
  for (const Line& line : lines) shape.push_back(line.at(length));
  return shape;
}

// The axes before the first that varies are 1: memory with room begins with the elements.
bool varies_first(const Lines& shape) {
  const auto first = std::ranges::find_if(shape, [](const Line& l) { return l != Line{0, 1}; });
  return first != shape.end() && first->varies() &&
         std::ranges::none_of(first + 1, shape.end(), &Line::varies);
}

ValuePtr empty_value(const Value& like, std::span<const int64_t> shape, runtime::Device& device) {
  auto made = std::make_shared<Value>();
  made->dtype = like.dtype;
  made->device = like.device;
  made->size_bytes = static_cast<uint64_t>(element_count(shape)) * size_of(like.dtype);
  made->pending_checks = like.pending_checks;
  made->buffer = device.allocate(made->size_bytes);
  return made;
}

ValuePtr number_value(int64_t number, uint32_t device) {
  auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(int32_t));
  const auto small = static_cast<int32_t>(number);
  std::memcpy(bytes->data(), &small, sizeof small);
  auto value = std::make_shared<Value>();
  value->dtype = DType::I32;
  value->device = device;
  value->size_bytes = bytes->size();
  value->host = *bytes;
  value->host_owner = std::move(bytes);
  return value;
}

// A row that is copied has the elements from the last axis that varies on.
bool has_few_rows(const Lines& shape, int64_t most) {
  size_t last = shape.size();
  while (last > 0 && !shape[last - 1].varies()) --last;
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < last; ++axis) rows *= shape[axis].at(most);
  return rows <= kMostRows;
}

}  // namespace

void LengthPlan::require_few_rows() const {
  const auto are_few = [&](const Lines& shape) { return has_few_rows(shape, form.bounds.most); };
  if (!std::ranges::all_of(inputs, are_few) || !std::ranges::all_of(roots, are_few))
    fail(ErrorKind::Unsupported, "an operand or a result has many rows, which were copied");
}

std::vector<ValuePtr> LengthCall::with_room(std::vector<ValuePtr> inputs,
                                            DeviceTable& devices) const {
  const int64_t most = plan->form.bounds.most;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Lines& lines = plan->inputs[i];
    if (!varies(lines)) continue;
    const std::vector<int64_t> own = shape_at(lines, length), room = shape_at(lines, most);
    runtime::Buffer& from = buffer_of(*inputs[i], devices);
    const ValuePtr whole = inputs[i]->with_room;
    if (varies_first(lines) && whole &&
        whole->size_bytes >= static_cast<uint64_t>(element_count(room)) * size_of(whole->dtype)) {
      inputs[i] = whole;
      continue;
    }
    ValuePtr made = empty_value(*inputs[i], room, from.device());
    copy_box(*made->buffer, room, from, own, own, size_of(made->dtype), kMostRows);
    inputs[i] = std::move(made);
  }
  inputs.push_back(number_value(length, plan->device));
  return inputs;
}

std::vector<ValuePtr> LengthCall::without_room(std::vector<ValuePtr> results) const {
  const int64_t most = plan->form.bounds.most;
  for (size_t i = 0; i < results.size(); ++i) {
    const Lines& lines = plan->roots[i];
    if (!varies(lines)) continue;
    const ValuePtr whole = results[i];
    const std::vector<int64_t> own = shape_at(lines, length), room = shape_at(lines, most);
    if (!varies_first(lines)) {
      results[i] = empty_value(*whole, own, whole->buffer->device());
      copy_box(*results[i]->buffer, own, *whole->buffer, room, own, size_of(whole->dtype),
               kMostRows);
      continue;
    }
    auto part = std::make_shared<Value>(*whole);
    part->size_bytes = static_cast<uint64_t>(element_count(own)) * size_of(whole->dtype);
    part->buffer = runtime::sub_buffer(whole->buffer, 0, part->size_bytes);
    if (part->buffer->is_part())
      part->with_room = whole;
    else
      runtime::copy(*part->buffer, 0, *whole->buffer, 0, part->size_bytes);
    results[i] = std::move(part);
  }
  return results;
}

}  // namespace plugrad::engine
