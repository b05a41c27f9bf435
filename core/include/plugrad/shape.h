/// Small argument types of tensor functions: shapes, lists of axes, pairs, slices.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugrad/export.h"

namespace plugrad {

class Tensor;

/// Sizes of the axes, outermost first. () is a scalar; sizes of 0 are allowed.
using Shape = std::vector<int64_t>;

/// "(2, 3)"; "(2,)" for one axis.
PLUGRAD_API std::string to_string(const Shape& shape);

/// One axis or several. Negative ones count from the end; none at all means every axis.
class Axes {
 public:
  Axes() = default;
  template <std::integral T>
  Axes(T axis) : list_{static_cast<int64_t>(axis)} {}
  Axes(std::initializer_list<int64_t> axes) : list_(axes) {}
  Axes(std::vector<int64_t> axes) : list_(std::move(axes)) {}
  const std::vector<int64_t>& list() const { return list_; }

 private:
  std::vector<int64_t> list_;
};

/// Elements start, start + step, … before stop. Negative bounds count from the end and bounds
/// outside are clipped, as in Python; a negative step walks backwards.
struct Slice {
  Slice() = default;
  Slice(std::optional<int64_t> start_, std::optional<int64_t> stop_, int64_t step_ = 1)
      : start(start_), stop(stop_), step(step_) {}
  std::optional<int64_t> start, stop;
  int64_t step = 1;
};

/// Inserts an axis of size 1.
struct NewAxis {};
inline constexpr NewAxis kNewAxis{};
/// Stands for as many full slices as the index leaves open.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis{};

/// One place of an index expression: t[{0, Slice(1, 3), kEllipsis, rows}].
class Index {
 public:
  enum class Kind : uint8_t { Number, Slice, NewAxis, Ellipsis, Tensor };
  template <std::integral T>
  Index(T number_) : kind(Kind::Number), number(static_cast<int64_t>(number_)) {}
  Index(Slice slice_) : kind(Kind::Slice), slice(slice_) {}
  Index(NewAxis) : kind(Kind::NewAxis) {}
  Index(Ellipsis) : kind(Kind::Ellipsis) {}
  PLUGRAD_API Index(const Tensor& rows);

  Kind kind;
  int64_t number = 0;
  Slice slice;
  std::shared_ptr<const Tensor> tensor;  ///< integer tensor: takes these places of the axis
};

}  // namespace plugrad
