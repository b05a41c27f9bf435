// Turns interpolate into reads and weighted sums, one axis after the other, last axis first. The
// host computes indices and weights.
#include <algorithm>
#include <cmath>

#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

namespace {

/// One axis, from `from` to `to` elements. A given scale replaces to / from.
struct Step {
  int64_t from, to;
  double scale;

  /// Whether every input element is repeated equally often.
  bool repeats() const {
    return to % from == 0 && (scale <= 0 || scale == static_cast<double>(to / from));
  }
  template <class Real>
  Real ratio() const {
    return scale > 0 ? static_cast<Real>(1.0 / scale)
                     : static_cast<Real>(from) / static_cast<Real>(to);
  }
};

template <class T>
Tensor values_along(const Tensor& x, int64_t axis, const std::vector<T>& values) {
  const Tensor list = Tensor::from(values, x.device());
  Shape shape(static_cast<size_t>(x.ndim()), 1);
  shape[static_cast<size_t>(axis)] = list.numel();
  return list.reshape(shape);
}

/// The elements of an axis at indices that are in range. index_select would add a kernel that
/// checks for negative indices.
Tensor read(const Tensor& x, int64_t axis, const std::vector<int32_t>& places) {
  const auto at = static_cast<size_t>(axis);
  Shape data = x.shape(), counter(data.size() + 1, 1), rows = counter;
  counter[at + 1] = data[at];
  rows[at] = static_cast<int64_t>(places.size());
  const Tensor hit =
      Tensor::from(places, x.device()).reshape(rows) == Tensor::arange(data[at]).reshape(counter);
  data.insert(data.begin() + axis, 1);
  const Tensor values = x.dtype() == DType::Bool ? x.cast(DType::U8) : x;
  return where(hit, values.reshape(data), 0)
      .sum(axis + 1, false, tensor::narrow_sum_dtype(x.dtype()))
      .cast(x.dtype());
}

Tensor nearest(const Tensor& x, int64_t axis, const Step& s, bool exact) {
  if (s.repeats()) {
    Shape split = x.shape(), repeated, merged = split;
    split.insert(split.begin() + axis + 1, 1);
    repeated = split;
    repeated[static_cast<size_t>(axis) + 1] = s.to / s.from;
    merged[static_cast<size_t>(axis)] = s.to;
    return x.reshape(split).expand(repeated).reshape(merged);
  }
  std::vector<int32_t> places;
  for (int64_t i = 0; i < s.to; ++i) {
    // f32 like PyTorch: f64 gives another index where a product is close to an integer.
    const float at = static_cast<float>(i) + (exact ? 0.5f : 0.0f);
    const auto place = static_cast<int64_t>(std::floor(at * s.ratio<float>()));
    places.push_back(static_cast<int32_t>(std::min(place, s.from - 1)));
  }
  return read(x, axis, places);
}

/// The two neighbours of each element, and the weight of the second.
struct Neighbours {
  std::vector<int32_t> low, high;
  std::vector<double> weight;
};

Neighbours neighbours_of(const Step& s, bool align_corners) {
  Neighbours n;
  const double corners =
      s.to > 1 ? static_cast<double>(s.from - 1) / static_cast<double>(s.to - 1) : 0.0;
  for (int64_t i = 0; i < s.to; ++i) {
    const auto place = static_cast<double>(i);
    const double at =
        align_corners ? place * corners : std::max((place + 0.5) * s.ratio<double>() - 0.5, 0.0);
    const int64_t low = std::min(static_cast<int64_t>(at), s.from - 1);
    n.low.push_back(static_cast<int32_t>(low));
    n.high.push_back(static_cast<int32_t>(std::min(low + 1, s.from - 1)));
    n.weight.push_back(std::clamp(at - static_cast<double>(low), 0.0, 1.0));
  }
  return n;
}

/// Fixed-point weights with as many fraction bits as fit i16, and one rounding, like PyTorch.
Tensor weigh_bytes(const Tensor& low, const Tensor& high, int64_t axis,
                   const std::vector<double>& weight) {
  double largest = 0.0;
  for (double w : weight) largest = std::max({largest, w, 1.0 - w});
  int bits = 0;
  while (bits < 22 && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < (1 << 15)) ++bits;
  std::vector<int32_t> first, second;
  for (double w : weight) {
    first.push_back(static_cast<int32_t>(0.5 + (1.0 - w) * (1 << bits)));
    second.push_back(static_cast<int32_t>(0.5 + w * (1 << bits)));
  }
  const Tensor sum = low.cast(DType::I32) * values_along(low, axis, first) +
                     high.cast(DType::I32) * values_along(low, axis, second);
  return ((sum + (1 << (bits - 1))) >> bits).clamp(0, 255).cast(DType::U8);
}

Tensor resize_linear(const Tensor& x, int64_t axis, const Step& s, bool align_corners) {
  if (s.from == s.to && s.scale <= 0) return x;
  const Neighbours n = neighbours_of(s, align_corners);
  const Tensor low = read(x, axis, n.low), high = read(x, axis, n.high);
  if (x.dtype() == DType::U8) return weigh_bytes(low, high, axis, n.weight);
  std::vector<double> rest;
  for (double w : n.weight) rest.push_back(1.0 - w);
  return low * values_along(x, axis, rest).cast(x.dtype()) +
         high * values_along(x, axis, n.weight).cast(x.dtype());
}

std::vector<Step> steps_of(const Tensor& x, const InterpolateOptions& o) {
  constexpr const char* kName = "interpolate";
  require(o.size.empty() != o.scale.empty(), "[{}] give either size or scale", kName);
  const int64_t others = std::max<int64_t>(x.ndim() - 2, 1);
  size_t count = std::max(o.size.size(), o.scale.size());
  if (count == 1 && o.size.empty()) count = static_cast<size_t>(others);
  require(static_cast<int64_t>(count) <= x.ndim(), "[{}] {} sizes for shape {}", kName, count,
          tensor::lazy_text(x));
  std::vector<Step> steps;
  for (size_t i = 0; i < count; ++i) {
    Step s{x.size(static_cast<int64_t>(i) - static_cast<int64_t>(count)), 0, 0.0};
    if (o.size.empty()) {
      s.scale = o.scale[o.scale.size() == 1 ? 0 : i];
      require(s.scale > 0 && std::isfinite(s.scale), "[{}] scale {} is not positive", kName,
              s.scale);
      s.to = static_cast<int64_t>(std::floor(static_cast<double>(s.from) * s.scale));
    } else {
      s.to = o.size[i];
    }
    require(s.from > 0 && s.to > 0 && s.from < INT32_MAX && s.to < INT32_MAX,
            "[{}] an axis of {} cannot become {}; sizes must be positive", kName, s.from, s.to);
    steps.push_back(s);
  }
  return steps;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  const std::vector<Step> steps = steps_of(x, o);
  tensor::require_fixed("interpolate", x);
  const bool weighs = o.mode == Interpolation::Linear;
  require(weighs || !o.align_corners, "[interpolate] align_corners means nothing to Nearest");
  Tensor y = x;
  if (weighs && x.dtype() != DType::U8)
    y = x.cast(x.dtype() == DType::F64 ? DType::F64 : DType::F32);
  for (size_t i = steps.size(); i-- > 0;) {
    const int64_t axis = x.ndim() - static_cast<int64_t>(steps.size() - i);
    y = weighs ? resize_linear(y, axis, steps[i], o.align_corners)
               : nearest(y, axis, steps[i], o.mode == Interpolation::NearestExact);
  }
  return is_float(x.dtype()) ? y.cast(strong(x.dtype())) : tensor::own_handle(y);
}

}  // namespace plugrad
