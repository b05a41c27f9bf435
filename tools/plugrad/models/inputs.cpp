#include "models/inputs.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <exception>
#include <optional>
#include <random>

#include "base/check.h"
#include "command.h"
#include "ir/facts.h"
#include "plugrad/numpy.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::tools {
namespace {

using Bits = std::vector<uint64_t>;  // of elements, in the dtype's storage form

Tensor tensor_of(const Bits& elements, const Shape& shape, DType dtype) {
  const size_t width = runtime::dtype_bytes(static_cast<uint32_t>(dtype));
  std::vector<std::byte> bytes(elements.size() * width);
  for (size_t i = 0; i < elements.size(); ++i)
    std::memcpy(bytes.data() + i * width, &elements[i], width);  // little-endian
  return Tensor::from_bytes(bytes, shape, dtype);
}

uint64_t bits_of_float(double number, DType dtype) {
  return runtime::bits_of(static_cast<uint32_t>(dtype), number);
}

// The number, if the text is one.
std::optional<double> parse_number(const std::string& text) {
  size_t end = 0;
  try {
    const double number = std::stod(text, &end);
    if (end == text.size()) return number;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

template <class T>
std::optional<T> parse_integer(const std::string& text) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// The text as an integer that the dtype has: "16000" or "16e3".
std::optional<uint64_t> bits_of_integer(const std::string& text, DType dtype) {
  if (dtype == DType::U64)
    if (const auto number = parse_integer<uint64_t>(text)) return number;
  std::optional<int64_t> number = parse_integer<int64_t>(text);
  if (!number) {
    const double real = parse_number(text).value_or(NAN);
    if (real != std::trunc(real) || !(std::abs(real) <= 0x1p53)) return {};
    number = static_cast<int64_t>(real);
  }
  const bool is_signed =
      dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
  const size_t bits = dtype == DType::Bool ? 1 : 8 * size_of(dtype) - (is_signed ? 1 : 0);
  const int64_t high = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  if (*number > high || *number < (is_signed ? -high - 1 : 0)) return {};
  return std::bit_cast<uint64_t>(*number);
}

// All elements are the number.
Tensor input_of_number(const onnx::ValueInfo& input, const Shape& shape, const std::string& text) {
  const DType dtype = *input.dtype;
  const auto bits = is_float(dtype) ? std::optional(bits_of_float(*parse_number(text), dtype))
                                    : bits_of_integer(text, dtype);
  if (!bits)
    throw UsageError(
        fmt::format("--input {}={}: its type {} has no such number", input.name, text, input.type));
  return tensor_of(Bits(static_cast<size_t>(element_count(shape)), *bits), shape, dtype);
}

Tensor random_input(const onnx::ValueInfo& input, const Shape& shape, std::mt19937_64& random) {
  const DType dtype = *input.dtype;
  Bits elements(static_cast<size_t>(element_count(shape)));
  for (uint64_t& bits : elements)
    bits = is_float(dtype) ? bits_of_float(0x1p-24 * static_cast<double>(random() >> 40), dtype)
                           : random() >> 63;
  return tensor_of(elements, shape, dtype);
}

void require_tensor(const onnx::ValueInfo& input) {
  require(input.dtype.has_value(), "[models] input \"{}\" is a {}; only tensors can be made",
          input.name, input.type);
}

}  // namespace

GivenInputs given_inputs(const std::vector<onnx::ValueInfo>& inputs, const Names& sizes,
                         const Names& given) {
  NamedTensors files;
  for (const onnx::ValueInfo& input : inputs) {
    const auto at = given.find(input.name);
    if (at == given.end()) continue;
    if (at->second.empty())
      throw UsageError(
          fmt::format("--input {0}= has no value; give {0}=FILE.npy or {0}=NUMBER", input.name));
    if (!parse_number(at->second)) files.emplace(input.name, load_npy(at->second));
  }
  Names known = sizes_with(inputs, sizes, files);
  const std::string assumed = assume_sizes(inputs, files, known);
  GivenInputs result{files, known, assumed};
  for (const onnx::ValueInfo& input : inputs) {
    const auto at = given.find(input.name);
    if (at == given.end() || files.contains(input.name)) continue;
    require_tensor(input);
    result.tensors.emplace(input.name, input_of_number(input, shape_of(input, known), at->second));
  }
  return result;
}

std::vector<Tensor> made_inputs(const std::vector<onnx::ValueInfo>& inputs,
                                const GivenInputs& given, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> tensors;
  for (const onnx::ValueInfo& input : inputs) {
    const auto at = given.tensors.find(input.name);
    const bool is_given = at != given.tensors.end();
    if (!is_given) require_tensor(input);
    tensors.push_back(is_given ? at->second
                               : random_input(input, shape_of(input, given.sizes), random));
  }
  return tensors;
}

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& value : values) names.push_back(value.name);
  return names;
}

}  // namespace plugrad::tools
