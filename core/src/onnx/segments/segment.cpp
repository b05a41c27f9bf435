#include "onnx/segments/segment.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "jit/calls.h"
#include "onnx/import/graph_run.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

constexpr size_t kMostRecordings = 64;  // of one segment
constexpr size_t kMostSeenKeys = 64;    // of one segment, that may come again
constexpr int kMostNewInARow = 4;       // calls of a segment that are recorded anew

bool has_sizes(const Value& value) {
  return value.is_tensor() && !value.known() && tensor::has_variable_size(value.tensor());
}

// The elements of known values are constants of the recording.
void add_value(std::vector<uint64_t>& key, const Value& value) {
  key.push_back(static_cast<uint64_t>(value.emulated()));
  if (!value.is_given()) return key.push_back(0);
  const tensor::HostValues* const known = value.known();
  const Shape shape = known ? known->shape : value.tensor().shape();
  const DType dtype = known ? known->dtype : value.tensor().dtype();
  key.insert(key.end(), {known ? 1U : 2U, static_cast<uint64_t>(dtype), shape.size()});
  key.insert(key.end(), shape.begin(), shape.end());
  if (known) return void(key.insert(key.end(), known->bits.begin(), known->bits.end()));
  for (int64_t axis = 0; axis < std::ssize(shape); ++axis)
    key.push_back(tensor::has_variable_size(value.tensor(), axis));
}

void add_sums(std::vector<uint64_t>& key, const std::vector<SizeSum>& sums) {
  for (const SizeSum& sum : sums) {
    key.insert(key.end(), {sum.axis.first, sum.axis.second, sum.of.size()});
    for (const auto& [input, axis] : sum.of) key.insert(key.end(), {input, axis});
    key.push_back(static_cast<uint64_t>(sum.number));
  }
  key.push_back(sums.size());
}

// The input whose axis has a sum as its size: that of the sizes of others.
Value with_sum(const std::vector<Value>& given, const SizeSum& sum, tensor::SizeArithmetic& sizes) {
  Tensor total = Tensor(sum.number).cast(DType::I64);
  for (const auto& [input, axis] : sum.of) {
    const auto size = tensor::axis_size(given[input].tensor(), static_cast<int64_t>(axis));
    total = total + size.count.cast(DType::I64);
  }
  const auto [input, axis] = sum.axis;
  const auto size = sizes.elements(total);
  ensure(size.has_value(), "the sum of the sizes of inputs is no size");
  return Value(sizes.limited(given[input].tensor(), static_cast<int64_t>(axis), size->front()))
      .as(given[input].emulated());
}

std::vector<Value> realized(std::vector<Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values)
    if (value.is_tensor() && !value.known()) tensors.push_back(value.tensor());
  Tensor::realize(tensors);
  return values;
}

}  // namespace

std::vector<Value> Segment::compute(const SegmentSource& source, const std::vector<Value>& given,
                                    bool is_jitted, const Tensors& numbers) const {
  std::vector<Value> inputs = given;
  tensor::SizeArithmetic sizes;
  const bool has_variable_sizes = std::ranges::any_of(inputs, has_sizes);
  for (const Value& value : inputs)
    if (has_sizes(value)) sizes.add(value.tensor());
  for (const SizeSum& sum : numbers.sums) inputs[sum.axis.first] = with_sum(inputs, sum, sizes);
  std::map<std::string_view, Value> values;
  for (const std::string_view name : constants) values.emplace(name, source.constants.at(name));
  for (size_t i = 0; i < in.size(); ++i)
    if (inputs[i].is_given()) values.insert_or_assign(in[i], inputs[i]);
  GraphRun run(source.message, source.files, is_jitted, source.file_name,
               has_variable_sizes ? &sizes : nullptr,
               has_variable_sizes && numbers.sizes_are_inferred);
  return run.outputs_of_nodes(first, last, values, out);
}

// Null if the call is not recorded: the last ones all had new keys, and so has this one.
Segment::Recording* Segment::recording_of(const Key& key) {
  auto found = recordings_.find(key);
  if (found == recordings_.end()) {
    const uint64_t hash = hash_of(key);
    const bool was_seen = std::ranges::find(seen_, hash) != seen_.end();
    if (!was_seen && seen_.size() < kMostSeenKeys)
      seen_.push_back(hash);
    else if (!was_seen)
      seen_[seen_count_++ % kMostSeenKeys] = hash;
    if (++new_in_a_row_ > kMostNewInARow && !was_seen && kind != Kind::Whole) return nullptr;
    if (recordings_.size() >= kMostRecordings)
      recordings_.erase(std::ranges::min_element(
          recordings_, {}, [](const auto& entry) { return entry.second.last_used; }));
    found = recordings_.try_emplace(key).first;
    found->second.calls = std::make_unique<jit_detail::Calls>(/*is_pure=*/true);
  } else {
    new_in_a_row_ = 0;
  }
  found->second.last_used = ++uses_;
  return &found->second;
}

std::vector<Value> Segment::replay(const SegmentSource& source, std::vector<Value> given,
                                   const Tensors& numbers) {
  for (size_t i = 0; i < numbers.inputs.size(); ++i) {
    Value& value = given[numbers.inputs[i]];
    value = Value(numbers.tensors[i]).as(value.emulated());
  }
  Key key;
  for (const Value& value : given) add_value(key, value);
  add_sums(key, numbers.sums);
  Recording unrecorded;
  Recording* const recording = recording_of(key);
  Recording& into = recording ? *recording : unrecorded;
  bool has_run = false;
  const auto record = [&] {
    jit_detail::Flat flat;
    has_run = true;
    into.fixed.clear();
    into.types.clear();
    for (const Value& value : compute(source, given, true, numbers)) {
      if (value.is_given() && !value.is_tensor()) throw NeedsHostValues();
      into.types.push_back(value.emulated());
      into.fixed.emplace_back();
      if (!value.is_given())
        into.fixed.back() = Value();
      else if (value.known() && kind != Kind::Whole)
        into.fixed.back() = Value::known(*value.known()).as(value.emulated());
      else
        flat.tensors.push_back(value.tensor());
    }
    return flat;
  };
  std::vector<Tensor> made;
  if (!recording) {
    made = record().tensors;
    Tensor::realize(made);
  } else {
    try {
      made = into.calls->call({numbers.tensors, {}}, record).tensors;
    } catch (...) {
      if (into.fixed.size() != out.size()) recordings_.erase(key);
      throw;
    }
  }
  if (!has_run) {
    history_.replayed();
  } else if (!jit_detail::is_part_of_recording()) {
    Key sums;
    add_sums(sums, numbers.sums);
    history_.ran(source.calls, in, given, hash_of(sums), recording != nullptr);
  }
  std::vector<Value> results;
  auto next = made.begin();
  for (size_t i = 0; i < out.size(); ++i)
    results.push_back(into.fixed[i] ? *into.fixed[i] : Value(*next++).as(into.types[i]));
  return results;
}

// Those of the sizes of all given tensors; null if these have another number of axes than in the
// first call.
OpenSizes* Segment::sizes_of(const std::vector<Value>& given) {
  if (!open_sizes_) {
    messages_.resize(in.size());
    std::vector<const ValueMessage*> messages;
    for (size_t i = 0; i < in.size(); ++i) {
      messages_[i].name = in[i];
      messages.push_back(&messages_[i]);
      if (!given[i].is_tensor() || given[i].known()) continue;
      messages_[i].type.kind = TypeMessage::Kind::Tensor;
      messages_[i].type.shape.emplace(static_cast<size_t>(given[i].tensor().ndim()));
    }
    open_sizes_.emplace(messages, SizeBounds(), /*warns=*/false);
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const auto& shape = messages_[i].type.shape;
    if (given[i].is_tensor() && !given[i].known() &&
        (!shape || std::ssize(*shape) != given[i].tensor().ndim()))
      return nullptr;
  }
  return &*open_sizes_;
}

// Replays the recording for all sizes, and copies the results at their sizes. Nothing if the
// segment cannot be recorded for these; an error if the caller gave the sizes bounds.
std::optional<std::vector<Value>> Segment::run_for_all_sizes(const SegmentSource& source,
                                                             const std::vector<Value>& given,
                                                             const Tensors& numbers,
                                                             OpenSizes& sizes,
                                                             const CanDecide& can_decide) {
  std::string reason;
  bool needs_elements = false;
  try {
    std::vector<Value> results = replay(source, given, numbers);
    for (Value& value : results)
      if (has_sizes(value)) value = Value(tensor::actual_part(value.tensor())).as(value.emulated());
    serves_all_sizes_ = true;
    sizes.succeeded();
    return results;
  } catch (const NeedsHostValues& needs) {
    if (can_decide(needs)) throw;
    needs_elements = true;
    reason = "a shape or a branch depends on elements";
  } catch (const NeedsExactSizes& needs) {
    reason = needs.reason;
  } catch (const Error& error) {
    if (serves_all_sizes_ && sizes.has_bounds()) throw;  // of the device, not the model
    reason = error.what();
  }
  if (sizes.has_bounds())
    fail(ErrorKind::Unsupported,
         "[onnx] one recording cannot serve all sizes of the bounds; load the model without "
         "them: {}",
         reason);
  if (needs_elements)
    sizes.give_up_all(reason);
  else
    sizes.give_up(reason);
  if (debugging(1)) debug_write(fmt::format("onnx: recorded for each size: {}\n", reason));
  return {};
}

std::vector<Value> Segment::run(const SegmentSource& source, const std::vector<Value>& given,
                                OpenSizes* declared, const CanDecide& can_decide) {
  Tensors numbers;
  numbers.sizes_are_inferred = !declared || declared->are_inferred();
  if (kind == Kind::Host) {
    std::vector<Value> results = compute(source, given, false, numbers);
    // Elements that differ from call to call must not become constants.
    for (Value& value : results)
      if (value.known()) value = Value(value.tensor()).as(value.emulated());
    return realized(std::move(results));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_tensor() || given[i].known()) continue;
    numbers.inputs.push_back(i);
    numbers.tensors.push_back(given[i].tensor());
  }
  OpenSizes* const sizes = jit_detail::is_part_of_recording() ? nullptr
                           : kind == Kind::Whole              ? declared
                                                              : sizes_of(given);
  if (sizes) {
    auto varied = sizes->varied(numbers.inputs, numbers.tensors);
    for (; varied; varied = sizes->varied_again(numbers.inputs, numbers.tensors)) {
      const Tensors all{numbers.inputs, std::move(varied->tensors), std::move(varied->sums),
                        numbers.sizes_are_inferred};
      if (auto results = run_for_all_sizes(source, given, all, *sizes, can_decide))
        return *std::move(results);
    }
  }
  try {
    return replay(source, given, numbers);
  } catch (const NeedsExactSizes& needs) {
    fail(ErrorKind::Unsupported, "[onnx] an input has a variable size, but {}", needs.reason);
  }
}

}  // namespace plugrad::onnx
