// Operators that read and write elements by indices.
#include <algorithm>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

// `size`: a number, or a tensor of shape ().
Tensor counted_from_start(const Tensor& indices, const Tensor& size) {
  const Tensor wide = indices.cast(DType::I64);
  return (wide < 0).where(wide + size, wide);
}

// Errors: User for an index known to the host that the axis of x does not have; of the `depth`
// numbers of one place, each is of an axis of its own.
void require_places(Call& call, const Tensor& x, int64_t axis, int64_t depth = 1) {
  const auto* const known = call.value(1).known();
  if (!known) return;
  int64_t number = 0;
  for (const int64_t at : integers_of(*known)) {
    const int64_t of = axis + number++ % depth;
    if (at < -x.size(of) || at >= x.size(of))
      call.wrong(
          fmt::format("index {} is out of range for axis {} of {} elements", at, of, x.size(of)));
  }
}

Values gather(Call& call) {
  const Tensor x = call[0];
  const int64_t axis = call.axis_of(x, 0);
  require_places(call, x, axis);
  // Indices that the host knows become views instead of a kernel.
  if (const auto* known = call.value(1).known();
      known && known->bits.size() == 1 && !call.varies(x, axis)) {
    const auto at = static_cast<int64_t>(known->bits[0]);
    const int64_t begin = at < 0 ? at + x.size(axis) : at;
    Shape shape = x.shape();
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, known->shape.begin(), known->shape.end());
    return {x.slice(axis, {begin, begin + 1}).reshape(shape)};
  }
  return {x.index_select(axis, counted_from_start(call[1], call.size_of_axis(x, axis)))};
}

Values gather_elements(Call& call) {
  const Tensor x = call[0];
  const int64_t axis = call.axis_of(x, 0);
  require_places(call, x, axis);
  return {x.gather(axis, counted_from_start(call[1], call.size_of_axis(x, axis)))};
}

// Places in the flat tensor of the axes of x from `first` on that the last axis of `indices` names;
// behind its end for an index that x does not have.
Tensor flat_places(Call& call, const Tensor& indices, const Tensor& x, int64_t first) {
  require_places(call, x, first, indices.size(-1));
  Tensor place = Tensor(0).cast(DType::I64), is_inside = Tensor(true);
  for (int64_t i = 0; i < indices.size(-1); ++i) {
    const Tensor size = call.size_of_axis(x, first + i);
    const Tensor each = counted_from_start(indices.slice(-1, {i, i + 1}).squeeze(-1), size);
    is_inside = is_inside & (each >= 0) & (each < size);
    place = place * x.size(first + i) + each;
  }
  return is_inside.where(place, x.numel());
}

Values gather_nd(Call& call) {
  Tensor x = call[0];
  const Tensor indices = call[1];
  call.require_fixed(indices, indices.ndim() - 1);
  const int64_t batch = call.integer("batch_dims", 0), depth = indices.size(-1);
  const Shape shape = x.shape();
  if (batch + depth > x.ndim() || batch >= indices.ndim())
    call.wrong(fmt::format("indices of the shape {} behind {} batch axes are none of the shape {}",
                           to_string(indices.shape()), batch, to_string(shape)));
  const Shape sizes(shape.begin() + batch, shape.begin() + batch + depth);
  const Shape rest(shape.begin() + batch + depth, shape.end());
  int64_t batches = 1, rows = 1, width = 1;
  for (int64_t i = 0; i < batch; ++i) batches *= shape[static_cast<size_t>(i)];
  for (const int64_t size : sizes) rows *= size;
  for (const int64_t size : rest) width *= size;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i < batch || i >= batch + depth) call.require_fixed(x, i);
  Tensor place = flat_places(call, indices, x, batch);
  if (call.recording().sizes)
    x = tensor::whole(x, x.dtype() == DType::Bool ? Tensor(false) : Tensor(0));
  Shape result = place.shape();
  result.insert(result.end(), rest.begin(), rest.end());
  if (batch == 0) return {x.reshape({rows, width}).index_select(0, place).reshape(result)};
  place = place.reshape({batches, -1}) + (Tensor::arange(batches, DType::I64) * rows).unsqueeze(1);
  return {x.reshape({batches * rows, width}).index_select(0, place.flatten()).reshape(result)};
}

Combine combine_of(Call& call) {
  const std::string_view how = call.text("reduction", "none");
  if (how == "none") return Combine::Replace;
  if (how == "add") return Combine::Sum;
  if (how == "mul") return Combine::Prod;
  if (how == "max") return Combine::Max;
  return Combine::Min;
}

Values scatter_elements(Call& call) {
  const Tensor x = call[0];
  const int64_t axis = call.axis_of(x, 0);
  require_places(call, x, axis);
  return {x.scatter(axis, counted_from_start(call[1], call.size_of_axis(x, axis)), call[2],
                    combine_of(call))};
}

Values scatter_nd(Call& call) {
  const Tensor x = call[0], indices = call[1], updates = call[2];
  const int64_t depth = indices.size(-1);
  const Shape shape = x.shape();
  call.require_fixed(x);
  for (int64_t axis = indices.ndim() > 2 ? 0 : 1; axis < indices.ndim(); ++axis)
    call.require_fixed(indices, axis);
  for (int64_t axis = 1; axis < updates.ndim(); ++axis) call.require_fixed(updates, axis);
  if (depth > x.ndim())
    call.wrong(fmt::format("indices of the shape {} are none of the shape {}",
                           to_string(indices.shape()), to_string(shape)));
  const Shape sizes(shape.begin(), shape.begin() + depth);
  int64_t rows = 1, width = 1;
  for (const int64_t size : sizes) rows *= size;
  for (auto size = shape.begin() + depth; size != shape.end(); ++size) width *= *size;
  const Tensor place = flat_places(call, indices, x, 0).flatten();
  const Tensor rows_of_updates = updates.reshape({place.numel(), width});
  return {x.reshape({rows, width})
              .scatter(0, place.unsqueeze(1).expand({place.numel(), width}), rows_of_updates,
                       combine_of(call))
              .reshape(shape)};
}

// How many elements are left depends on the condition's values.
Values compress(Call& call) {
  Tensor x = call[0];
  const tensor::HostValues condition = call.data(1);
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition.bits.size(); ++i)
    if (condition.bits[i] != 0) kept.push_back(static_cast<int64_t>(i));
  if (!call.attribute("axis")) x = x.flatten();
  const int64_t axis = call.axis_of(x, 0);
  return {x.index_select(axis, Tensor::from(kept))};
}

Values non_zero(Call& call) {
  const tensor::HostValues values = call.data(0);
  const size_t rank = values.shape.size();
  std::vector<std::vector<int64_t>> places(rank);
  int64_t count = 0;
  for (size_t i = 0; i < values.bits.size(); ++i) {
    const bool is_zero = is_float(values.dtype) ? values.bits[i] << 1 == 0 : values.bits[i] == 0;
    if (is_zero) continue;
    ++count;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = rank; axis-- > 0; rest /= values.shape[axis])
      places[axis].push_back(rest % values.shape[axis]);
  }
  std::vector<uint64_t> bits;
  for (const auto& of_axis : places) bits.insert(bits.end(), of_axis.begin(), of_axis.end());
  return {Value::known({{static_cast<int64_t>(rank), count}, DType::I64, std::move(bits)})};
}

constexpr OperatorRow kIndexRows[] = {
    {"Compress", compress},
    {"Gather", gather, kVariableSizes},
    {"GatherElements", gather_elements, kVariableSizes},
    {"GatherND", gather_nd, kVariableSizes},
    {"NonZero", non_zero},
    {"Scatter", scatter_elements, kVariableSizes},
    {"ScatterElements", scatter_elements, kVariableSizes},
    {"ScatterND", scatter_nd, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> index_operators() {
  return kIndexRows;
}

}  // namespace plugrad::onnx
