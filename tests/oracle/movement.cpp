#include "oracle/movement.h"

#include <limits>

#include "base/check.h"
#include "ir/facts.h"
#include "ir/graph.h"

namespace plugrad::oracle {
namespace {

std::vector<int64_t> strides_of(List shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

// Calls visit(element, place) for every element of `shape` in row-major order; place = start + the
// sum of coordinate times step.
template <class Visit>
void each_place(List shape, int64_t start, List steps, Visit visit) {
  const int64_t count = element_count(shape);
  std::vector<int64_t> at(shape.size());
  int64_t place = start;
  for (int64_t i = 0; i < count; ++i) {
    visit(static_cast<size_t>(i), static_cast<size_t>(place));
    for (size_t axis = shape.size(); axis-- > 0;) {
      place += steps[axis];
      if (++at[axis] < shape[axis]) break;
      place -= steps[axis] * shape[axis];
      at[axis] = 0;
    }
  }
}

Array read_places(const Array& x, std::vector<int64_t> shape, int64_t start, List steps) {
  Array result{x.dtype, std::move(shape), {}};
  result.bits.resize(static_cast<size_t>(element_count(result.shape)));
  each_place(result.shape, start, steps,
             [&](size_t i, size_t place) { result.bits[i] = x.bits[place]; });
  return result;
}

}  // namespace

Array permute(const Array& x, List order) {
  const auto strides = strides_of(x.shape);
  std::vector<int64_t> shape, steps;
  for (int64_t axis : order) {
    shape.push_back(x.shape[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  return read_places(x, std::move(shape), 0, steps);
}

Array expand(const Array& x, List shape) {
  auto steps = strides_of(x.shape);
  for (size_t i = 0; i < steps.size(); ++i)
    if (x.shape[i] == 1) steps[i] = 0;
  return read_places(x, {shape.begin(), shape.end()}, 0, steps);
}

Array pad(const Array& x, List before_after) {
  Array result{x.dtype, x.shape, {}};
  for (size_t i = 0; i < x.shape.size(); ++i)
    result.shape[i] += before_after[2 * i] + before_after[2 * i + 1];
  result.bits.assign(static_cast<size_t>(element_count(result.shape)),
                     bits_of(int64_t{0}, x.dtype));
  const auto strides = strides_of(result.shape);
  int64_t start = 0;
  for (size_t i = 0; i < strides.size(); ++i) start += before_after[2 * i] * strides[i];
  each_place(x.shape, start, strides,
             [&](size_t i, size_t place) { result.bits[place] = x.bits[i]; });
  return result;
}

Array shrink(const Array& x, List begin_end) {
  const auto strides = strides_of(x.shape);
  std::vector<int64_t> shape;
  int64_t start = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    shape.push_back(begin_end[2 * i + 1] - begin_end[2 * i]);
    start += begin_end[2 * i] * strides[i];
  }
  return read_places(x, std::move(shape), start, strides);
}

Array flip(const Array& x, List flipped) {
  auto steps = strides_of(x.shape);
  int64_t start = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!flipped[i]) continue;
    start += (x.shape[i] - 1) * steps[i];
    steps[i] = -steps[i];
  }
  return read_places(x, x.shape, start, steps);
}

std::vector<size_t> places_when_reduced(List shape, List reduced) {
  auto steps = strides_of(reduced);
  for (size_t i = 0; i < steps.size(); ++i)
    if (reduced[i] == 1) steps[i] = 0;
  std::vector<size_t> places(static_cast<size_t>(element_count(shape)));
  each_place(shape, 0, steps, [&](size_t i, size_t place) { places[i] = place; });
  return places;
}

uint64_t identity_of(Op op, DType dtype, bool is_empty) {
  if (op == Op::Add && is_float(dtype) && !is_empty) return bits_of(-0.0, DType::F64);
  if (op == Op::Add) return bits_of(int64_t{0}, dtype);
  if (op == Op::Mul) return bits_of(int64_t{1}, dtype);
  ensure(op == Op::Max, "{} is no reduction", op_info(op).name);
  if (is_float(dtype)) return bits_of(-std::numeric_limits<double>::infinity(), DType::F64);
  if (is_unsigned(dtype)) return 0;
  if (dtype == DType::Index || dtype == DType::I64)
    return static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  return bits_of(-(int64_t{1} << (size_of(dtype) * 8 - 1)), dtype);
}

}  // namespace plugrad::oracle
