// Operators that make tensors of numbers that are not random, and those that describe one.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

Value known_integers(std::vector<int64_t> numbers, Shape shape) {
  return Value::known({std::move(shape), DType::I64, {numbers.begin(), numbers.end()}});
}

Values constant(Call& call) {
  ModelFiles& files = *call.recording().files;
  if (call.node().attributes.size() > 1) call.wrong("it has more than one value");
  if (const auto* given = call.attribute("value"); given && !given->tensors.empty())
    return {files.constant(given->tensors[0])};
  if (const auto* given = call.attribute("sparse_value"); given && !given->sparse_tensors.empty())
    return {files.constant(given->sparse_tensors[0])};
  const auto floats = [](const std::vector<double>& numbers, Shape shape) {
    std::vector<uint64_t> bits;
    for (const double number : numbers) bits.push_back(std::bit_cast<uint64_t>(number));
    return Value::known({std::move(shape), DType::F32, std::move(bits)});
  };
  if (call.attribute("value_float")) return {floats({call.number("value_float", 0)}, {})};
  if (call.attribute("value_floats")) {
    const auto numbers = call.numbers("value_floats");
    return {floats(numbers, {static_cast<int64_t>(numbers.size())})};
  }
  if (call.attribute("value_int")) return {known_integers({call.integer("value_int", 0)}, {})};
  if (call.attribute("value_ints")) {
    const auto numbers = call.integers("value_ints");
    return {known_integers(numbers, {static_cast<int64_t>(numbers.size())})};
  }
  if (call.attribute("value_string"))
    return {Strings{{}, {std::string(call.text("value_string", ""))}}};
  if (call.attribute("value_strings")) {
    const auto texts = call.texts("value_strings");
    return {Strings{{static_cast<int64_t>(texts.size())}, {texts.begin(), texts.end()}}};
  }
  call.wrong("it has no value");
}

Values constant_of_shape(Call& call) {
  const auto sizes = call.sizes(0);
  Shape shape;
  for (const auto& size : sizes) shape.push_back(size.most);
  const auto sized = [&](Tensor x) {
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i].varies()) x = call.with_size(x, static_cast<int64_t>(i), sizes[i]);
    return x;
  };
  const auto* given = call.attribute("value");
  if (!given || given->tensors.empty()) return {sized(Tensor::zeros(shape))};
  const Value value = call.recording().files->constant(given->tensors[0]);
  if (!value.known()) call.wrong("value is not one element");
  // Of the host, which may fold the node.
  return {Value(sized(value.host_tensor().reshape({}).expand(shape))).as(value.emulated())};
}

Values shape(Call& call) {
  const Value& given = call.value(0);
  const Shape all = given.strings() ? given.strings()->shape : call[0].shape();
  const auto rank = static_cast<int64_t>(all.size());
  const auto bound = [&](std::string_view name, int64_t otherwise) {
    const int64_t at = call.integer(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  const Shape part(all.begin() + start, all.begin() + end);
  if (call.recording().sizes && !given.strings() && tensor::has_variable_size(call[0])) {
    std::vector<Tensor> sizes;
    for (int64_t axis = start; axis < end; ++axis)
      sizes.push_back(call.size_of_axis(call[0], axis).cast(DType::I64).reshape({1}));
    if (!sizes.empty()) return {cat(sizes)};
  }
  return {known_integers(part, {end - start})};
}

Values size(Call& call) {
  const Strings* const strings = call.value(0).strings();
  if (!strings && call.recording().sizes && tensor::has_variable_size(call[0])) {
    Tensor count(1);
    for (int64_t axis = 0; axis < call[0].ndim(); ++axis)
      count = count * call.size_of_axis(call[0], axis);
    return {count.cast(DType::I64)};
  }
  const int64_t count = strings ? static_cast<int64_t>(strings->elements.size()) : call[0].numel();
  return {known_integers({count}, {})};
}

// From a number up to a variable size in steps of 1.
Values variable_range(Call& call) {
  const auto start = call.sizes(0).at(0), step = call.sizes(2).at(0);
  if (start.varies() || step.varies() || step.most != 1)
    call.needs_exact_sizes("has a variable start or step");
  const Tensor count = call[1].reshape({}).cast(DType::I64) - start.most;
  const auto size = call.recording().sizes->elements(count);
  if (!size) call.needs_exact_sizes("ends at a size that is computed of elements");
  const Tensor places = Tensor::arange(std::max<int64_t>(size->at(0).most, 0), DType::I64);
  return {(call.with_size(places, 0, size->at(0)) + start.most).cast(call[0].dtype())};
}

Values range(Call& call) {
  const DType dtype = call[0].dtype();
  if (call.recording().sizes && !is_float(dtype) && !call.value(1).known())
    return variable_range(call);
  const auto bound = [&](size_t input) {
    return is_float(dtype) ? Tensor(call.numbers_input(input).at(0))
                           : Tensor(call.integer_input(input));
  };
  const int64_t count = Tensor::arange(bound(0), bound(1), bound(2), DType::F64).size(0);
  const Tensor places = Tensor::arange(count, is_float(dtype) ? dtype : DType::I64);
  return {
      (places * call[2].reshape({}).cast(places.dtype()) + call[0].reshape({}).cast(places.dtype()))
          .cast(dtype)};
}

Values eye_like(Call& call) {
  const Tensor x = call[0];
  if (x.ndim() != 2)
    call.wrong(fmt::format("the input has the shape {}, not two axes", to_string(x.shape())));
  const int64_t rows = x.size(0), columns = x.size(1);
  const Tensor row = Tensor::arange(rows, DType::I64).reshape({rows, 1});
  const Tensor column = Tensor::arange(columns, DType::I64);
  return {(row + call.integer("k", 0) == column).cast(call.dtype("dtype").value_or(x.dtype()))};
}

// The depth's elements along the axis; negative indices count from its end.
Values one_hot(Call& call) {
  call.require_shape(2, "values", {2});
  const Tensor values = call[2];
  const auto depth = static_cast<int64_t>(call.numbers_input(1).at(0));
  Tensor indices = call[0].cast(DType::I64);
  const int64_t axis = call.axis(call.integer("axis", -1), indices.ndim() + 1);
  indices = (indices < 0).where(indices + depth, indices).unsqueeze(axis);
  Shape along(static_cast<size_t>(indices.ndim()), 1);
  along[static_cast<size_t>(axis)] = depth;
  const Tensor is_there = indices == Tensor::arange(depth, DType::I64).reshape(along);
  return {is_there.where(values[1], values[0])};
}

constexpr OperatorRow kConstantRows[] = {
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape, kVariableSizes},
    {"EyeLike", eye_like},
    {"OneHot", one_hot, kVariableSizes},
    {"Range", range, kVariableSizes},
    {"Shape", shape, kVariableSizes},
    {"Size", size, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> constant_operators() {
  return kConstantRows;
}

}  // namespace plugrad::onnx
