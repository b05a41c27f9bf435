// Writing at places that are data: for each element of the result, what the places that name it
// bring. In short rows every element looks at every place; in long ones a kernel of their own walks
// the places (tensor/running.h).
#include <limits>

#include "plugrad/functional.h"
#include "tensor/index.h"
#include "tensor/record.h"
#include "tensor/running.h"
#include "tensor/variable_sizes.h"

namespace plugrad {

using tensor::checked_axis;

namespace {

/// scatter with its arguments checked.
struct Hits {
  Tensor x;  // like all others whole: none has a variable size
  int64_t axis;
  Tensor hit;     // (…, size of the axis, …, places of the row): whether it names the element
  Tensor values;  // (…, 1, …, places of the row)
  Shape missing;  // how many elements of each axis no row reaches
  Tensor places;  // from 0
  std::vector<Part> box;  // of x: where rows reach
  Tensor given;           // values where rows reach, or a number
  bool is_long() const { return tensor::is_long(places.size(axis), x.size(axis)); }
};

Tensor last_axis(const Tensor& x, int64_t axis) {
  return x.unsqueeze(-1).transpose(axis, -1);
}

void require_values(std::string_view function, const Tensor& x, const Tensor& places,
                    const Tensor& values) {
  require(is_float(x.dtype()) || !is_float(values.dtype()),
          "[{}] {} values into a {} tensor; cast them first", function, name_of(values.dtype()),
          name_of(x.dtype()));
  require(values.ndim() == 0 || values.ndim() == places.ndim(),
          "[{}] values {} and places {} have different numbers of axes", function,
          to_string(values.shape()), to_string(places.shape()));
  for (int64_t i = 0; i < values.ndim(); ++i) {
    require(places.size(i) <= values.size(i), "[{}] places {} are larger than values {} along {}",
            function, to_string(places.shape()), to_string(values.shape()), i);
    tensor::require_inside(function, places, values, i);
  }
}

Hits find_hits(std::string_view function, const Tensor& x, int64_t axis, const Tensor& places,
               const Tensor& values) {
  tensor::require_places(function, places);
  const Shape to = x.shape(), rows = places.shape();
  require(to.size() == rows.size(), "[{}] places {} and {} have different numbers of axes",
          function, to_string(rows), to_string(to));
  const int64_t at = checked_axis(function, axis, x.ndim());
  const Tensor inside = tensor::places_of(function, places, to[static_cast<size_t>(at)]);
  require_values(function, x, places, values);
  std::vector<Part> box;
  Shape missing;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool along = static_cast<int64_t>(i) == at;
    require(along || rows[i] <= to[i], "[{}] places {} are larger than {} along axis {}", function,
            to_string(rows), to_string(to), i);
    if (!along) tensor::require_inside(function, places, x, static_cast<int64_t>(i));
    missing.push_back(along ? 0 : to[i] - rows[i]);
    box.push_back(Part(0, rows[i]));
  }
  const int64_t size = x.size(at);
  // Behind sizes places name nothing.
  const Tensor wrapped = tensor::whole(tensor::wrapped_places(inside, x, at), -1);
  const Tensor hit = last_axis(wrapped, at) == tensor::counter(size, x.ndim() + 1, at);
  const bool number = values.ndim() == 0;
  const Tensor all = tensor::whole(values.cast(x.dtype()), 0);
  const Tensor given = number ? all : all.shrink(box);
  box[static_cast<size_t>(at)] = {0, size};
  return {tensor::whole(x, 0),
          at,
          hit,
          number ? given : last_axis(given, at),
          missing,
          wrapped,
          box,
          given};
}

/// `start` and `values` combined at the places, in the rows' part of x.
Tensor combined_at(const Hits& h, Op op, const Tensor& start, const Tensor& values) {
  const auto rows = [&](const Tensor& t) { return t.transpose(h.axis, -1); };
  const Tensor to = rows(start), from = rows(h.places);
  const Tensor y =
      tensor::combine_at(op, to.reshape({-1, to.size(-1), 1}), from.reshape({-1, from.size(-1)}),
                         rows(values).reshape({-1, from.size(-1), 1}));
  return rows(y.reshape(to.shape()));
}

/// One more than the last place that names the element, in the rows' part of x; 0 for none.
Tensor last_place(const Hits& h) {
  if (!h.is_long()) {
    const Tensor number = tensor::counter(h.hit.size(-1), h.hit.ndim(), -1 + h.hit.ndim());
    return plugrad::where(h.hit, number + 1, 0).max(-1);
  }
  const Tensor number = tensor::counter(h.places.size(h.axis), h.x.ndim(), h.axis) + 1;
  const Tensor none = Tensor(0).cast(DType::I32).expand(h.x.shrink(h.box).shape());
  return combined_at(h, Op::Max, none, number.expand(h.places.shape()));
}

/// To the shape of x, from what its rows have.
Tensor whole(const Hits& h, const Tensor& part) {
  std::vector<std::pair<int64_t, int64_t>> pads;
  for (int64_t n : h.missing) pads.emplace_back(0, n);
  return part.pad(pads);
}

Tensor is_hit(const Hits& h) {
  return whole(h, h.is_long() ? last_place(h) > 0 : h.hit.any(-1));
}

Tensor replace(const Hits& h) {
  if (h.values.ndim() == 0) return plugrad::where(is_hit(h), h.values, h.x);
  const Tensor last = whole(h, last_place(h));
  const Tensor rows = whole(h, h.values.transpose(h.axis, -1).squeeze(-1));
  return plugrad::where(last > 0, rows.gather(h.axis, last - 1), h.x);
}

Tensor lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  if (is_unsigned(dtype) || dtype == DType::Bool) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(dtype));
}

Tensor average(const Tensor& sum, const Tensor& count) {
  return is_float(sum.dtype()) ? sum / count.cast(sum.dtype()) : sum.floor_div(count);
}

/// Values summed up at the places, on top of `start`, in a dtype in which kernels of their own
/// compute; wraps as x's dtype does.
Tensor long_sum(const Hits& h, const Tensor& start, const Tensor& values) {
  const DType own = h.x.dtype(), wide = is_float(own)       ? (own == DType::F64 ? own : DType::F32)
                                        : size_of(own) == 8 ? DType::I64
                                                            : DType::I32;
  return combined_at(h, Op::Add, start.cast(wide), values.cast(wide).expand(h.places.shape()));
}

/// x with the sum or mean of what meets at each element, if x counts too.
Tensor long_combined(const Hits& h, Combine how, bool include_self) {
  const Tensor part = h.x.shrink(h.box), zero = part.zeros_like().detach();
  const Tensor sum = long_sum(h, include_self ? part : zero, h.given);
  if (how == Combine::Sum) return whole(h, sum);
  const Tensor one = Tensor(1).cast(DType::I32);
  const Tensor count = combined_at(h, Op::Add, zero.cast(DType::I32), one.expand(h.places.shape()));
  return whole(h, average(sum, (count + (include_self ? 1 : 0)).maximum(1)));
}

/// What the values that meet at an element make of it, in the dtype in which they are combined.
Tensor combine(const Hits& h, Combine how, bool include_self) {
  const DType dtype = h.x.dtype();
  const DType wide =
      is_float(dtype) && size_of(dtype) < 4 ? DType::F32 : tensor::narrow_sum_dtype(dtype);
  const Tensor x = h.x.cast(wide), values = h.values.cast(wide);
  const auto of_hits = [&](const Tensor& otherwise) {
    return plugrad::where(h.hit, values, otherwise);
  };
  if (how == Combine::Prod) {
    const Tensor product = whole(h, of_hits(1).prod(-1, false, wide));
    return include_self ? x * product : product;
  }
  if (how == Combine::Max) {
    const Tensor top = whole(h, of_hits(lowest(wide)).max(-1));
    return include_self ? x.maximum(top) : top;
  }
  Tensor sum = whole(h, of_hits(0).sum(-1, false, wide));
  if (include_self) sum = x + sum;
  if (how == Combine::Sum) return sum;
  const Tensor count = whole(h, h.hit.sum(-1, false, DType::I32)) + (include_self ? 1 : 0);
  return average(sum, count.maximum(1));
}

}  // namespace

Tensor Tensor::scatter(int64_t axis, const Tensor& places, const Tensor& values,
                       Combine how) const {
  return scatter_reduce(axis, places, values, how);
}

Tensor Tensor::scatter_reduce(int64_t axis, const Tensor& places, const Tensor& values, Combine how,
                              bool include_self) const {
  const std::string_view function = how == Combine::Replace ? "scatter" : "scatter_reduce";
  if (ndim() == 0)
    return unsqueeze(0)
        .scatter_reduce(0, places.reshape({1}), values.reshape({1}), how, include_self)
        .squeeze();
  if (how == Combine::Min) {  // the maximum of what is in the opposite order
    const auto opposite = [](const Tensor& t) {
      return t.dtype() == DType::Bool ? !t : is_float(t.dtype()) ? -t : ~t;
    };
    const Tensor given = is_float(values.dtype()) ? values : values.cast(dtype());
    return opposite(
        opposite(*this).scatter_reduce(axis, places, opposite(given), Combine::Max, include_self));
  }
  const Hits hits = find_hits(function, *this, axis, places, values);
  if (how == Combine::Replace) return tensor::limited_as(replace(hits), *this);
  const bool is_added = how == Combine::Sum ||
                        (how == Combine::Mean && dtype() != DType::U32 && dtype() != DType::U64);
  const Tensor combined = hits.is_long() && is_added ? long_combined(hits, how, include_self)
                                                     : combine(hits, how, include_self);
  return tensor::limited_as(plugrad::where(is_hit(hits), combined.cast(dtype()), hits.x), *this);
}

}  // namespace plugrad
