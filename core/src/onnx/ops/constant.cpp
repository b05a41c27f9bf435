// Operators that make tensors, and those that describe one.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

using Values = std::vector<Value>;

Value known_integers(std::vector<int64_t> numbers, Shape shape) {
  return Value::known({std::move(shape), DType::I64, {numbers.begin(), numbers.end()}});
}

Values constant(Call& call) {
  ModelFiles& files = *call.recording().files;
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
  const Shape shape = call.integers(0);
  const auto* given = call.attribute("value");
  if (!given || given->tensors.empty()) return {Tensor::zeros(shape)};
  const Value value = call.recording().files->constant(given->tensors[0]);
  return {Value(value.tensor().reshape({}).expand(shape)).as(value.emulated())};
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
  return {known_integers(part, {end - start})};
}

Values size(Call& call) {
  const Strings* const strings = call.value(0).strings();
  const int64_t count = strings ? static_cast<int64_t>(strings->elements.size()) : call[0].numel();
  return {known_integers({count}, {})};
}

Values range(Call& call) {
  const DType dtype = call[0].dtype();
  const auto start = call.numbers_input(0), limit = call.numbers_input(1),
             delta = call.numbers_input(2);
  const auto count =
      static_cast<int64_t>(std::max(0.0, std::ceil((limit.at(0) - start.at(0)) / delta.at(0))));
  const Tensor places = Tensor::arange(count, is_float(dtype) ? dtype : DType::I64);
  return {
      (places * call[2].reshape({}).cast(places.dtype()) + call[0].reshape({}).cast(places.dtype()))
          .cast(dtype)};
}

Values eye_like(Call& call) {
  const Tensor x = call[0];
  const int64_t rows = x.size(0), columns = x.size(1);
  const Tensor row = Tensor::arange(rows, DType::I64).reshape({rows, 1});
  const Tensor column = Tensor::arange(columns, DType::I64);
  return {(row + call.integer("k", 0) == column).cast(call.dtype("dtype").value_or(x.dtype()))};
}

// The depth's elements along the axis; negative indices count from its end.
Values one_hot(Call& call) {
  const Tensor values = call[2];
  const auto depth = static_cast<int64_t>(call.numbers_input(1).at(0));
  Tensor indices = call[0].cast(DType::I64);
  int64_t axis = call.integer("axis", -1);
  if (axis < 0) axis += indices.ndim() + 1;
  indices = (indices < 0).where(indices + depth, indices).unsqueeze(axis);
  Shape along(static_cast<size_t>(indices.ndim()), 1);
  along.at(static_cast<size_t>(axis)) = depth;
  const Tensor is_there = indices == Tensor::arange(depth, DType::I64).reshape(along);
  return {is_there.where(values[1], values[0])};
}

// A seed gives the same numbers at each call.
template <class Make>
Tensor drawn(Call& call, const Make& make) {
  if (!call.attribute("seed")) return make();
  const RandomState before = Tensor::random_state();
  Tensor::manual_seed(std::bit_cast<uint32_t>(static_cast<float>(call.number("seed", 0))));
  const Tensor numbers = make();
  Tensor::set_random_state(before);
  return numbers;
}

Tensor normal_of(Call& call, const Shape& shape, DType dtype) {
  return drawn(call, [&] {
    return Tensor::normal(shape, call.number("mean", 0), call.number("scale", 1), dtype);
  });
}
Tensor uniform_of(Call& call, const Shape& shape, DType dtype) {
  return drawn(call, [&] {
    return Tensor::uniform(shape, call.number("low", 0), call.number("high", 1), dtype);
  });
}
Values random_normal(Call& call) {
  return {normal_of(call, call.integers("shape"), call.dtype("dtype").value_or(DType::F32))};
}
Values random_normal_like(Call& call) {
  return {normal_of(call, call[0].shape(), call.dtype("dtype").value_or(call[0].dtype()))};
}
Values random_uniform(Call& call) {
  return {uniform_of(call, call.integers("shape"), call.dtype("dtype").value_or(DType::F32))};
}
Values random_uniform_like(Call& call) {
  return {uniform_of(call, call[0].shape(), call.dtype("dtype").value_or(call[0].dtype()))};
}
Values bernoulli(Call& call) {
  const Tensor p = call[0];
  const Tensor numbers = drawn(call, [&] { return Tensor::rand(p.shape(), p.dtype()); });
  return {(numbers < p).cast(call.dtype("dtype").value_or(p.dtype()))};
}
Values multinomial(Call& call) {
  const Tensor numbers = drawn(
      call, [&] { return call[0].softmax(1).multinomial(call.integer("sample_size", 1), true); });
  return {numbers.cast(call.dtype("dtype").value_or(DType::I32))};
}

constexpr OperatorRow kRows[] = {
    {"Bernoulli", bernoulli, true},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"EyeLike", eye_like},
    {"Multinomial", multinomial, true},
    {"OneHot", one_hot},
    {"RandomNormal", random_normal, true},
    {"RandomNormalLike", random_normal_like, true},
    {"RandomUniform", random_uniform, true},
    {"RandomUniformLike", random_uniform_like, true},
    {"Range", range},
    {"Shape", shape},
    {"Size", size},
};

}  // namespace

std::span<const OperatorRow> constant_operators() {
  return kRows;
}

}  // namespace plugrad::onnx
