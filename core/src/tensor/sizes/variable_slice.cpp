#include "tensor/sizes/variable_slice.h"

#include "tensor/index/index.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::tensor {
namespace {

// Counted from the front of an axis of `size` elements, and within it.
Tensor place_in_axis(const Place& given, const SizeValue& own, const Tensor& size) {
  const SizeValue& bound = given.value;
  if (bound.least >= own.most || (bound.varies() && bound.expression == own.expression))
    return size;
  if (bound.most <= -own.most) return Tensor(0);
  if (bound.least < 0 && bound.most >= 0)
    throw UndecidedSlice{"has a bound that counts from either end of the axis"};
  const Tensor place = bound.varies() ? given.place : Tensor(bound.most);
  if (bound.most < 0) return own.least + bound.least < 0 ? (size + place).maximum(0) : size + place;
  return bound.most > own.least ? size - (size - place).maximum(0) : place;
}

}  // namespace

VariableRange clipped_range(SizeArithmetic& sizes, const Tensor& x, int64_t axis,
                            const Place& start, const Place& stop, int64_t step) {
  const auto own = sizes.of_axis(x, axis);
  if (!own || step < 0) throw UndecidedSlice{"has negative steps along a variable size"};
  const Tensor size = own->varies() ? axis_size(x, axis).count.cast(DType::I64) : Tensor(own->most);
  const Tensor first =
      start.place.defined() ? place_in_axis(start, *own, size) : Tensor(int64_t{0});
  const Tensor end = stop.place.defined() ? place_in_axis(stop, *own, size) : size;
  const Tensor reach = (end - first + (step - 1)).cast(DType::I64).maximum(0);
  const auto starts = sizes.elements(first), counts = sizes.elements(reach.floor_div(step));
  if (!starts || !counts) throw UndecidedSlice{"has bounds that may be those of another size"};
  return {first, starts->front(), counts->front(), step};
}

Tensor elements_of(SizeArithmetic& sizes, const Tensor& x, int64_t axis,
                   const VariableRange& range) {
  const auto& [first, start, count, step] = range;
  const int64_t size = x.size(axis), begin = start.most;
  const auto own = sizes.of_axis(x, axis);
  if (step == 1 && !start.varies() && begin + count.most <= size) {  // views
    if (begin == 0 && count.varies() && count.expression == own->expression) return x;
    if (!own->varies() || begin + count.most <= own->least) {
      const Tensor part = x.slice(axis, {begin, begin + count.most});
      return count.varies() ? sizes.limited(part, axis, count) : part;
    }
    if (begin <= own->least && begin + count.most == size) {
      const Tensor part = x.slice(axis, {begin, {}});
      const auto rest = sizes.of_axis(part, axis);
      if (rest && rest->expression == count.expression) return part;
    }
  }
  const Tensor part = select(x, axis, (first + Tensor::arange(count.most) * step).cast(DType::I32));
  const bool is_open = count.varies() || SizeArithmetic::takes_any_size(part, axis);
  return is_open ? sizes.limited(part, axis, count) : part;
}

}  // namespace plugrad::tensor
