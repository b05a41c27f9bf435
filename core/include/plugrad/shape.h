/// Argument types of tensor functions: shapes, lists of axes, padding, slices, indices.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iterator>
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

/// A size of an axis or a place along it: an integer, or an integer tensor of shape (). One that is
/// computed from bound Variables (jit.h) alone stays variable: the axis then has the largest size
/// that it may have, and as many elements as the variables say. Others are read, which computes them.
class Size {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Size(T size) : number_(static_cast<int64_t>(size)) {}
  PLUGRAD_API Size(const Tensor& size);
  bool is_tensor() const { return tensor_ != nullptr; }
  int64_t number() const { return number_; }  ///< 0 of a tensor
  const Tensor& tensor() const { return *tensor_; }

 private:
  int64_t number_ = 0;
  std::shared_ptr<const Tensor> tensor_;
};

/// A shape whose sizes may be variable: {n, 3}.
class Sizes {
 public:
  Sizes() = default;
  Sizes(Shape shape) : numbers_(std::move(shape)) {}
  template <std::input_iterator It>
  Sizes(It begin, It end) : numbers_(begin, end) {}
  PLUGRAD_API Sizes(std::initializer_list<Size> sizes);
  PLUGRAD_API Sizes(std::vector<Size> sizes);
  const Shape& numbers() const { return numbers_; }        ///< 0 for a tensor
  const std::vector<Size>& list() const { return list_; }  ///< empty if all are numbers

 private:
  Shape numbers_;
  std::vector<Size> list_;
};

/// One or more axes. Negative ones count from the end; {} means every axis; an empty vector or
/// Axes::none() means no axis.
class Axes {
 public:
  Axes() = default;
  template <std::integral T>
  Axes(T axis) : list_{static_cast<int64_t>(axis)}, is_all_(false) {}
  Axes(std::initializer_list<int64_t> axes) : list_(axes), is_all_(false) {}
  Axes(std::vector<int64_t> axes) : list_(std::move(axes)), is_all_(false) {}
  static Axes none() { return Axes(std::vector<int64_t>()); }
  bool is_all() const { return is_all_; }  ///< then the list is empty
  const std::vector<int64_t>& list() const { return list_; }

 private:
  std::vector<int64_t> list_;
  bool is_all_ = true;
};

/// Values in the padding: a constant; the elements mirrored at the edge element, which is not
/// repeated; the edge element repeated; or the elements of the opposite end.
enum class PadMode : uint8_t { Constant, Reflect, Replicate, Circular };

/// Padding of axes: {before, after} for each axis; or one list of numbers for the last axes, the
/// last one first: {left, right, top, bottom, …}. Negative numbers crop.
class Pads {
 public:
  using Pair = std::pair<int64_t, int64_t>;
  Pads() = default;
  Pads(std::initializer_list<Pair> pairs) : pairs_(pairs) {}
  Pads(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {}
  Pads(std::initializer_list<int64_t> numbers) : numbers_(numbers), is_flat_(true) {}
  Pads(std::vector<int64_t> numbers) : numbers_(std::move(numbers)), is_flat_(true) {}
  const std::vector<Pair>& pairs() const { return pairs_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }
  bool is_flat() const { return is_flat_; }

 private:
  std::vector<Pair> pairs_;
  std::vector<int64_t> numbers_;
  bool is_flat_ = false;
};

/// The elements [begin, end) of an axis; std::nullopt stands for all.
struct Part : std::optional<std::pair<Size, Size>> {
  Part(std::nullopt_t = std::nullopt) {}
  Part(Size begin, Size end) : optional(std::pair(std::move(begin), std::move(end))) {}
  Part(const std::pair<int64_t, int64_t>& part) : optional(part) {}
};
/// A part of each axis: {{0, 2}, std::nullopt}.
class Box {
 public:
  Box(std::initializer_list<Part> parts) : parts_(parts) {}
  Box(std::vector<Part> parts) : parts_(std::move(parts)) {}
  Box(const std::vector<std::pair<int64_t, int64_t>>& parts) : parts_(parts.begin(), parts.end()) {}
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

/// How scatter combines an element with the values for its index: the last value replaces it, or
/// all are reduced with it.
enum class Combine : uint8_t { Replace, Sum, Prod, Mean, Max, Min };

/// Elements start, start + step, … before stop. Negative bounds count from the end and bounds
/// outside are clipped, as in Python; a negative step walks backwards. With variable bounds the
/// step is positive; of n to n + 3 there are three elements, which must lie within the axis.
struct Slice {
  Slice() = default;
  Slice(std::optional<Size> start_, std::optional<Size> stop_, int64_t step_ = 1)
      : start(std::move(start_)), stop(std::move(stop_)), step(step_) {}
  std::optional<Size> start, stop;
  int64_t step = 1;
};

/// Inserts an axis of size 1.
struct NewAxis {};
inline constexpr NewAxis kNewAxis{};
/// Replaced by full slices for the axes that the index does not list.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis{};

/// One entry of an index expression: t[{0, Slice(1, 3), kEllipsis, rows, {2, 0, 2}}].
class Index {
 public:
  enum class Kind : uint8_t { Number, Slice, NewAxis, Ellipsis, Tensor, List };
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Index(T number_) : kind(Kind::Number), number(static_cast<int64_t>(number_)) {}
  Index(Slice slice_) : kind(Kind::Slice), slice(std::move(slice_)) {}
  Index(NewAxis) : kind(Kind::NewAxis) {}
  Index(Ellipsis) : kind(Kind::Ellipsis) {}
  PLUGRAD_API Index(const Tensor& rows);
  Index(std::initializer_list<int64_t> rows) : kind(Kind::List), list(rows) {}
  Index(std::vector<int64_t> rows) : kind(Kind::List), list(std::move(rows)) {}

  Kind kind;
  int64_t number = 0;
  Slice slice;
  std::shared_ptr<const Tensor> tensor;  ///< integers: indices along the axis
  std::vector<int64_t> list;             ///< the same, as host numbers
};

}  // namespace plugrad
