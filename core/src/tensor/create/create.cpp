// Creates tensors from numbers and host memory. A constant has no device: its handle keeps the
// requested device for the case that the constant is stored.
#include <algorithm>
#include <array>
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/handles.h"
#include "tensor/record.h"
#include "tensor/sizes.h"

namespace plugrad {

using tensor::checked_count;
using tensor::Recorder;

namespace {

__extension__ using Int128 = __int128;

uint32_t device_number(Recorder& r, std::string_view device) {
  return device.empty() ? 0 : r.session().device_number(device);
}

// A bound of arange: an integer or a real number, by the dtype of its scalar.
struct Bound {
  bool is_whole = false;
  int64_t whole = 0;
  double real = 0;
};

Bound bound_of(const Tensor& scalar) {
  Recorder r("arange");
  const Id node = r.use(scalar);
  require(is_const(r.graph(), node), "[arange] bounds are numbers, not tensors of computed values");
  const DType dtype = r.dtype(node);
  const bool is_whole = !is_float(dtype) && dtype != DType::U64;
  const double real = const_float(r.graph(), node);
  if (is_whole) return {true, const_int(r.graph(), node), real};
  return {false, std::abs(real) < 0x1p63 ? static_cast<int64_t>(real) : 0, real};
}

constexpr int64_t kTooMany = INT64_MAX;  // elements; checked_count refuses it

int64_t whole_steps(int64_t first, int64_t last, int64_t by) {
  const Int128 way = static_cast<Int128>(last) - first, step = by;
  const Int128 count = way / step + (way % step != 0 ? 1 : 0);
  return (way < 0) != (step < 0) || way == 0
             ? 0
             : static_cast<int64_t>(std::min<Int128>(count, kTooMany));
}

int64_t real_steps(double first, double last, double by) {
  const double count = std::max(std::ceil((last - first) / by), 0.0);
  return count < 0x1p62 ? static_cast<int64_t>(count) : kTooMany;
}

// Counts in i32 if i32 holds the ends, the step and the count.
Tensor whole_range(Recorder& r, const Bound& first, const Bound& by, int64_t count, DType stored) {
  require(std::abs(first.real) <= 0x1p63 && std::abs(by.real) <= 0x1p63,
          "[arange] {} and steps of {} are beyond i64", first.real, by.real);
  const Int128 end = first.whole + static_cast<Int128>(by.whole) * std::max<int64_t>(count - 1, 0);
  const auto last = static_cast<int64_t>(end);
  if (count > 0)
    for (int64_t value : {first.whole, last})
      require(end == last && holds(stored, value),
              "[arange] {} does not hold {} to {}; take a wider dtype", name_of(stored),
              first.whole, static_cast<double>(end));
  const bool is_small = std::ranges::all_of(std::array{first.whole, by.whole, last, count},
                                            [](int64_t v) { return holds(DType::I32, v); });
  const DType counter = is_small ? DType::I32 : DType::I64;
  Tensor numbers = r.done(r.graph().add(Op::Iota, counter, {}, static_cast<uint64_t>(count)));
  if (by.whole != 1) numbers = numbers * by.whole;
  if (first.whole != 0) numbers = numbers + first.whole;
  return numbers.cast(stored);
}

}  // namespace

Tensor Tensor::full(const Shape& shape, const Tensor& scalar, std::optional<DType> dtype,
                    std::string_view device) {
  Recorder r("full");
  checked_count("full", shape);
  r.place(device_number(r, device));
  const Id value = r.use(scalar);
  require(r.shape(value).empty(), "[full] the value has shape {}, not one number",
          to_string(scalar.shape()));
  const DType stored = tensor::dtype_or("full", dtype, strong_dtype(r.graph(), value));
  return r.done(r.broadcast_to(r.take(value, stored), shape));
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, std::string_view device) {
  return full(shape, 0, dtype, device);
}
Tensor Tensor::ones(const Shape& shape, DType dtype, std::string_view device) {
  return full(shape, 1, dtype, device);
}
Tensor Tensor::empty(const Shape& shape, DType dtype, std::string_view device) {
  return full(shape, 0, dtype, device);
}

Tensor Tensor::full_like(const Tensor& scalar, std::optional<DType> dtype) const {
  Recorder r("full_like");
  const Tensor filled = full(shape(), scalar, dtype.value_or(this->dtype()));
  const Id own = r.use(*this);
  return r.done(r.like(tensor::state_of(filled)->node, own));
}
Tensor Tensor::zeros_like(std::optional<DType> dtype) const {
  return full_like(0, dtype);
}
Tensor Tensor::ones_like(std::optional<DType> dtype) const {
  return full_like(1, dtype);
}
Tensor Tensor::empty_like(std::optional<DType> dtype) const {
  return full_like(0, dtype);
}

Tensor Tensor::arange(const Tensor& stop, std::optional<DType> dtype, std::string_view device) {
  return arange(0, stop, 1, dtype, device);
}

Tensor Tensor::arange(const Tensor& start, const Tensor& stop, const Tensor& step,
                      std::optional<DType> wanted, std::string_view device) {
  Recorder r("arange");
  const Bound first = bound_of(start), last = bound_of(stop), by = bound_of(step);
  require(by.real != 0 && std::isfinite((last.real - first.real) / by.real),
          "[arange] from {} to {} by {} never ends", first.real, last.real, by.real);
  const DType stored = tensor::dtype_or(
      "arange", wanted, strong(promote(promote(start.dtype(), stop.dtype()), step.dtype())));
  const bool to_whole = wanted && !is_float(stored);
  require(!to_whole || (std::trunc(first.real) == first.real && std::trunc(by.real) == by.real),
          "[arange] {} holds no steps of {} from {}; take a float dtype, or cast", name_of(stored),
          by.real, first.real);
  r.place(device_number(r, device));
  const bool are_whole = first.is_whole && last.is_whole && by.is_whole;
  const int64_t count = are_whole ? whole_steps(first.whole, last.whole, by.whole)
                                  : real_steps(first.real, last.real, by.real);
  checked_count("arange", {count});
  if (!is_float(stored)) return whole_range(r, first, by, count, stored);
  const DType counter = count > INT32_MAX ? DType::I64 : DType::I32;
  Tensor numbers = r.done(r.graph().add(Op::Iota, counter, {}, static_cast<uint64_t>(count)));
  numbers = numbers.cast(stored == DType::F64 ? DType::F64 : DType::F32);
  if (by.real != 1) numbers = numbers * by.real;
  if (first.real != 0) numbers = numbers + first.real;
  return numbers.cast(stored);
}

// Counts from the nearer end, so that both ends are exact.
Tensor Tensor::linspace(double start, double stop, int64_t count, DType dtype,
                        std::string_view device) {
  require(count >= 0, "[linspace] count {} is negative", count);
  require_type(dtype != DType::Bool && size_of(dtype) != 0, "[linspace] values are numbers, not {}",
               name_of(dtype));
  if (count == 1) return full({1}, start, DType::F64, device).cast(dtype);
  const double step = (stop - start) / static_cast<double>(count - 1);
  const DType counter = dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor number = arange(0, count, 1, counter, device), to_end = count - 1 - number;
  return plugrad::where(number < count / 2, number * step + start, stop - to_end * step)
      .cast(dtype);
}

Tensor Tensor::eye(int64_t n, int64_t m, DType dtype, std::string_view device) {
  if (m < 0) m = n;
  require(n >= 0, "[eye] size {} is negative", n);
  const Tensor rows = arange(n, DType::I32, device).reshape({n, 1}),
               columns = arange(m, DType::I32, device);
  return (rows == columns).cast(dtype);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, std::string_view indexing) {
  require(indexing == "ij" || indexing == "xy",
          "[meshgrid] indexing is \"{}\"; known are \"ij\" and \"xy\"", indexing);
  const size_t rank = axes.size();
  const bool swapped = indexing == "xy" && rank > 1;
  const auto axis_of = [&](size_t i) { return swapped && i < 2 ? 1 - i : i; };
  Shape shape(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    require(axes[i].defined() && axes[i].ndim() <= 1,
            "[meshgrid] tensor {} has shape {}; one axis or none is wanted", i,
            axes[i].defined() ? to_string(axes[i].shape()) : "none");
    shape[axis_of(i)] = axes[i].numel();
  }
  std::vector<Tensor> grid;
  for (size_t i = 0; i < rank; ++i) {
    Shape along(rank, 1);
    along[axis_of(i)] = axes[i].numel();
    grid.push_back(axes[i].reshape(along).expand(shape));
  }
  return grid;
}

namespace {

std::vector<double> doubles_of(std::initializer_list<MixedNumber> values) {
  std::vector<double> numbers;
  for (const MixedNumber& number : values) numbers.push_back(number.value);
  return numbers;
}

}  // namespace

Tensor Tensor::from(std::initializer_list<MixedNumber> values, std::string_view device) {
  return from(doubles_of(values), device);
}

Tensor Tensor::from(std::initializer_list<MixedNumber> values, Shape shape,
                    std::string_view device) {
  return from(doubles_of(values), std::move(shape), device);
}

Tensor Tensor::from(std::initializer_list<std::initializer_list<MixedNumber>> rows,
                    std::string_view device) {
  std::vector<double> values;
  const int64_t width = rows.size() == 0 ? 0 : static_cast<int64_t>(rows.begin()->size());
  for (const auto& row : rows) {
    require_row_length(static_cast<int64_t>(row.size()), width);
    for (double number : doubles_of(row)) values.push_back(number);
  }
  return from(values, {static_cast<int64_t>(rows.size()), width}, device);
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Shape shape, DType dtype,
                          std::string_view device, std::shared_ptr<const void> owner) {
  Recorder r("from");
  const int64_t count = checked_count("from", shape);
  const uint64_t size = size_of(dtype), needed = static_cast<uint64_t>(count) * size;
  require_type(size != 0, "[from] {} is no dtype that memory holds", name_of(dtype));
  require(bytes.size() == needed, "[from] {} values for the {} elements of shape {}",
          bytes.size() / size, count, to_string(shape));
  uint32_t number = device_number(r, device);
  if (device.empty() && r.session().mesh(r.session().default_device()) != nullptr)
    number = r.session().default_device();
  const uint32_t first = r.session().device_of(number);
  const Id node = owner ? r.session().store_shared(shape, dtype, first, bytes, std::move(owner))
                        : r.session().store_host(shape, dtype, first, bytes);
  if (first == number) return r.done(node);
  r.place(number);
  return r.done(r.graph().add(Op::Copy, dtype, {node}, number));  // to all devices of a mesh
}

}  // namespace plugrad
