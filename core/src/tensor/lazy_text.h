// Shapes as text for messages: a check that holds formats nothing and asks no tensor for its shape.
#pragma once

#include <fmt/format.h>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Formats like to_string(shape). Valid as long as its argument.
struct LazyText {
  const Shape* shape = nullptr;
  const Tensor* tensor = nullptr;
};

inline LazyText lazy_text(const Shape& shape) {
  return {.shape = &shape};
}
inline LazyText lazy_text(const Tensor& tensor) {
  return {.tensor = &tensor};
}

}  // namespace plugrad::tensor

template <>
struct fmt::formatter<plugrad::tensor::LazyText> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const plugrad::tensor::LazyText& text, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(
        plugrad::to_string(text.shape ? *text.shape : text.tensor->shape()), context);
  }
};
