/// Templates of tensor.h; included by it.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad {

template <class T>
Tensor Tensor::from(const std::vector<T>& values, Shape shape, std::string_view device) {
  if constexpr (std::is_same_v<T, bool>) {  // a vector<bool> has no addressable elements
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return from_bytes(std::as_bytes(std::span(bytes)), std::move(shape), DType::Bool, device);
  } else {
    return from(std::span<const T>(values), std::move(shape), device);
  }
}

template <class T>
Tensor Tensor::from(std::initializer_list<std::initializer_list<T>> rows, std::string_view device) {
  std::vector<T> values;
  const int64_t width = rows.size() == 0 ? 0 : static_cast<int64_t>(rows.begin()->size());
  for (const auto& row : rows) {
    require_row_length(static_cast<int64_t>(row.size()), width);
    values.insert(values.end(), row.begin(), row.end());
  }
  return from(values, {static_cast<int64_t>(rows.size()), width}, device);
}

template <class T>
  requires std::is_arithmetic_v<T>
std::vector<T> Tensor::to_vector() const {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(static_cast<size_t>(read_count()));
    read_as(bytes.data(), bytes.size(), DType::Bool);
    return {bytes.begin(), bytes.end()};
  } else {
    std::vector<T> values(static_cast<size_t>(read_count()));
    read_as(values.data(), values.size(), dtype_of<T>());
    return values;
  }
}

}  // namespace plugrad
