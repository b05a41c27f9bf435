#include "onnx/ops/random.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/import/emulated.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "tensor/sizes/sizes.h"

namespace plugrad::onnx {
namespace {

uint64_t seed_of(Call& call) {
  const AttributeMessage& seed = *call.attribute("seed");
  if (seed.integer) return static_cast<uint64_t>(*seed.integer);
  return std::bit_cast<uint32_t>(seed.number.value_or(0.0F));
}

int mantissa_bits(DType dtype) {
  return dtype == DType::F64 ? 52 : dtype == DType::F32 ? 23 : dtype == DType::F16 ? 10 : 7;
}

// Box and Muller, A note on the generation of random normal deviates, 1958.
Tensor normal_of(Call& call, const Shape& shape, DType dtype) {
  const double mean = call.number("mean", 0), scale = call.number("scale", 1);
  if (!call.attribute("seed")) return Tensor::normal(shape, mean, scale, dtype);
  Shape both = shape;
  both.insert(both.begin(), 2);
  const Tensor u = uniform_numbers(call, both, dtype == DType::F64 ? dtype : DType::F32);
  const Tensor angle = u[0] * (2 * std::numbers::pi), radius = ((1.0 - u[1]).log() * -2.0).sqrt();
  return (angle.cos() * radius * scale + mean).cast(dtype);
}
Tensor uniform_of(Call& call, const Shape& shape, DType dtype) {
  const double low = call.number("low", 0), high = call.number("high", 1);
  return uniform_numbers(call, shape, dtype) * (high - low) + low;
}

DType dtype_for(Call& call, DType otherwise) {
  const DType dtype = call.dtype("dtype").value_or(otherwise);
  if (!is_float(dtype) || is_emulated(call.type("dtype")))
    call.unsupported("random numbers are floats of 16 bits or more");
  return dtype;
}

Values random_normal(Call& call) {
  return {normal_of(call, call.integers("shape"), dtype_for(call, DType::F32))};
}
Values random_normal_like(Call& call) {
  return {normal_of(call, call[0].shape(), dtype_for(call, call[0].dtype()))};
}
Values random_uniform(Call& call) {
  return {uniform_of(call, call.integers("shape"), dtype_for(call, DType::F32))};
}
Values random_uniform_like(Call& call) {
  return {uniform_of(call, call[0].shape(), dtype_for(call, call[0].dtype()))};
}

Values bernoulli(Call& call) {
  const Tensor p = call[0];
  return {(uniform_numbers(call, p.shape(), p.dtype()) < p)
              .cast(call.dtype("dtype").value_or(p.dtype()))};
}

// With a seed, the number of classes whose cumulated probability is below a uniform number.
Values multinomial(Call& call) {
  const Tensor p = call[0].softmax(1);
  const int64_t count = call.integer("sample_size", 1), classes = p.size(1);
  Tensor numbers;
  if (call.attribute("seed")) {
    const Tensor u = uniform_numbers(call, {p.size(0), count}, DType::F32);
    const Tensor is_below = p.cumsum(1).unsqueeze(1) <= u.unsqueeze(2);
    numbers = is_below.cast(DType::I32).sum(2).minimum(classes - 1);
  } else {
    numbers = p.multinomial(count, true);
  }
  return {numbers.cast(call.dtype("dtype").value_or(DType::I32))};
}

constexpr OperatorRow kRandomRows[] = {
    {"Bernoulli", bernoulli, false, "", true},
    {"Multinomial", multinomial, false, "", true},
    {"RandomNormal", random_normal, false, "", true},
    {"RandomNormalLike", random_normal_like, false, "", true},
    {"RandomUniform", random_uniform, false, "", true},
    {"RandomUniformLike", random_uniform_like, false, "", true},
};

}  // namespace

Tensor uniform_numbers(Call& call, const Shape& shape, DType dtype) {
  if (!call.attribute("seed")) return Tensor::rand(shape, dtype);
  require_host_elements(shape);
  const int64_t count = tensor::checked_count("onnx", shape);
  std::mt19937_64 generator(seed_of(call));
  const int bits = mantissa_bits(dtype) + 1;  // so that the dtype does not round them up to 1
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    poll_interruption();
    numbers.push_back(std::ldexp(static_cast<double>(generator() >> (64 - bits)), -bits));
  }
  return Tensor::from(numbers, shape).cast(dtype);
}

std::span<const OperatorRow> random_operators() {
  return kRandomRows;
}

}  // namespace plugrad::onnx
