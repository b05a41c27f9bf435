// Creates tensors from numbers and host memory. A constant has no device: its handle keeps the
// requested device for the case that the constant is stored.
#include <algorithm>
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/exact_number.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"
#include "tensor/record.h"
#include "tensor/sizes/given_sizes.h"
#include "tensor/sizes/sizes.h"

namespace plugrad {

using tensor::checked_count;
using tensor::exact_number;
using tensor::ExactNumber;
using tensor::holds_exactly;
using tensor::Int128;
using tensor::Recorder;

namespace {

uint32_t device_number(Recorder& r, std::string_view device) {
  return device.empty() ? 0 : r.session().device_number(device);
}

ExactNumber bound_of(std::string_view function, const Tensor& scalar) {
  Recorder r(function);
  const Id node = r.use(scalar);
  require(is_const(r.graph(), node), "[{}] bounds are numbers, not tensors of computed values",
          function);
  return exact_number(r.graph(), node);
}

constexpr int64_t kTooMany = INT64_MAX;  // elements; checked_count refuses it

int64_t whole_steps(Int128 first, Int128 last, Int128 step) {
  const Int128 way = last - first;
  const Int128 count = way / step + (way % step != 0 ? 1 : 0);
  return (way < 0) != (step < 0) || way == 0
             ? 0
             : static_cast<int64_t>(std::min<Int128>(count, kTooMany));
}

int64_t real_steps(double first, double last, double by) {
  const double count = std::max(std::ceil((last - first) / by), 0.0);
  return count < 0x1p62 ? static_cast<int64_t>(count) : kTooMany;
}

// The dtype to compute whole numbers in: i32 if it holds all of them. i64 has their low 64 bits.
DType counter_for(std::initializer_list<Int128> numbers) {
  return std::ranges::all_of(numbers, [](Int128 n) { return holds_exactly(DType::I32, n); })
             ? DType::I32
             : DType::I64;
}

// Integers beside one beyond i64 make a range of u64: promotion would make it one of floats.
DType range_dtype(std::initializer_list<const Tensor*> bounds) {
  DType common = DType::Bool;
  bool has_float = false;
  for (const Tensor* bound : bounds) {
    common = promote(common, bound->dtype());
    has_float |= is_float(bound->dtype());
  }
  return is_float(common) && !has_float ? DType::U64 : strong(common);
}

Tensor whole_range(Recorder& r, Int128 first, Int128 by, int64_t count, DType stored) {
  const DType counter =
      counter_for({first, by, first + by * std::max<int64_t>(count - 1, 0), count});
  Tensor numbers = r.done(r.graph().add(Op::Iota, counter, {}, static_cast<uint64_t>(count)));
  if (by != 1) numbers = numbers * static_cast<int64_t>(by);
  if (first != 0) numbers = numbers + static_cast<int64_t>(first);
  return numbers.cast(stored);
}

// Exact numbers, truncated towards 0 like the cast of a fraction.
Tensor whole_line(Int128 first, Int128 last, int64_t count, DType dtype, std::string_view device) {
  const Int128 way = last - first, steps = count - 1;
  Int128 by = way / steps, rest = way % steps;
  if (rest < 0) {
    rest += steps;
    --by;
  }
  require(rest * steps <= INT64_MAX,
          "[linspace] {} integers from {} to {} are too many: take a float dtype", count,
          static_cast<double>(first), static_cast<double>(last));
  const DType counter = counter_for({first, last, way, by, steps, rest * steps});
  const Tensor number = Tensor::arange(count, counter, device);
  Tensor whole = number * static_cast<int64_t>(by) + static_cast<int64_t>(first);
  if (rest == 0) return whole.cast(dtype);
  const Tensor parts = number * static_cast<int64_t>(rest);
  whole = whole + parts.trunc_div(static_cast<int64_t>(steps));
  if (first >= 0 && last >= 0) return whole.cast(dtype);
  const Tensor is_below = (whole < 0) & (parts % static_cast<int64_t>(steps) != 0);
  return (whole + is_below.cast(counter)).cast(dtype);
}

}  // namespace

Tensor Tensor::full(const Sizes& sizes, const Tensor& scalar, std::optional<DType> dtype,
                    std::string_view device) {
  if (!sizes.list().empty())
    return tensor::with_given_sizes(
        "full", sizes, [&](const Shape& largest) { return full(largest, scalar, dtype, device); });
  const Shape& shape = sizes.numbers();
  Recorder r("full");
  checked_count("full", shape);
  r.place(device_number(r, device));
  const Id value = r.use(scalar);
  require(r.shape(value).empty(), "[{}] the value has shape {}, not one number", r.function(),
          tensor::lazy_text(scalar));
  const DType stored = tensor::dtype_or("full", dtype, strong_dtype(r.graph(), value));
  return r.done(r.broadcast_to(r.take(value, stored), shape));
}

Tensor Tensor::zeros(const Sizes& shape, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("zeros");
  return full(shape, 0, dtype, device);
}
Tensor Tensor::ones(const Sizes& shape, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("ones");
  return full(shape, 1, dtype, device);
}
Tensor Tensor::empty(const Sizes& shape, DType dtype, std::string_view device) {
  const tensor::NamedFunction named("empty");
  return full(shape, 0, dtype, device);
}

Tensor Tensor::full_like(const Tensor& scalar, std::optional<DType> dtype) const {
  const tensor::NamedFunction named("full_like");
  Recorder r("full_like");
  const Tensor filled = full(shape(), scalar, dtype.value_or(this->dtype()));
  const Id own = r.use(*this);
  return r.done(r.like(tensor::state_of(filled)->node, own));
}
Tensor Tensor::zeros_like(std::optional<DType> dtype) const {
  const tensor::NamedFunction named("zeros_like");
  return full_like(0, dtype);
}
Tensor Tensor::ones_like(std::optional<DType> dtype) const {
  const tensor::NamedFunction named("ones_like");
  return full_like(1, dtype);
}
Tensor Tensor::empty_like(std::optional<DType> dtype) const {
  const tensor::NamedFunction named("empty_like");
  return full_like(0, dtype);
}

Tensor Tensor::arange(const Tensor& stop, std::optional<DType> dtype, std::string_view device) {
  return arange(0, stop, 1, dtype, device);
}

namespace {

// start, start + step, … of integers that bound Variables decide; nothing for numbers.
std::optional<Tensor> variable_range(const Tensor& start, const Tensor& stop, const Tensor& step,
                                     std::optional<DType> wanted, std::string_view device) {
  tensor::SizeArithmetic sizes;
  const auto first = sizes.of_variables(start), last = sizes.of_variables(stop),
             by = sizes.of_variables(step);
  if (!first || !last || !by || (!first->varies() && !last->varies())) return {};
  require(!by->varies() && by->most > 0,
          "[arange] of variable bounds takes a positive step that does not vary");
  const Tensor reach = (stop - start + (by->most - 1)).maximum(0);
  const auto count = sizes.elements(reach.floor_div(by->most));
  require(count.has_value(), "[arange] the number of elements cannot be decided");
  require(!count->front().varies() || count->front().most >= 2,
          "[arange] the size is between {} and {}: a variable size may be 2 at least",
          count->front().least, count->front().most);
  const DType stored = wanted.value_or(DType::I32);
  Tensor x = Tensor::arange(count->front().most, DType::I32, device) * by->most;
  x = sizes.limited((x + start.cast(DType::I32)).cast(stored), 0, count->front());
  return x;
}

}  // namespace

Tensor Tensor::arange(const Tensor& start, const Tensor& stop, const Tensor& step,
                      std::optional<DType> wanted, std::string_view device) {
  if (auto made = variable_range(start, stop, step, wanted, device)) return *std::move(made);
  Recorder r("arange");
  const ExactNumber first = bound_of("arange", start), last = bound_of("arange", stop),
                    by = bound_of("arange", step);
  require(by.real != 0 && std::isfinite((last.real - first.real) / by.real),
          "[arange] from {} to {} by {} never ends", first.real, last.real, by.real);
  const DType stored = tensor::dtype_or("arange", wanted, range_dtype({&start, &stop, &step}));
  const bool to_whole = wanted && !is_float(stored);
  require(!to_whole || (std::trunc(first.real) == first.real && std::trunc(by.real) == by.real),
          "[arange] {} holds no steps of {} from {}; take a float dtype, or cast", name_of(stored),
          by.real, first.real);
  r.place(device_number(r, device));
  const bool are_whole = first.is_whole && by.is_whole;
  const int64_t count = are_whole && last.is_whole ? whole_steps(first.whole, last.whole, by.whole)
                                                   : real_steps(first.real, last.real, by.real);
  checked_count("arange", {count});
  const Int128 end = first.whole + by.whole * std::max<int64_t>(count - 1, 0);
  if (are_whole &&
      (count == 0 || (holds_exactly(stored, first.whole) && holds_exactly(stored, end))))
    return whole_range(r, first.whole, by.whole, count, stored);
  require(is_float(stored), "[arange] {} does not hold {} to {}; take a wider dtype",
          name_of(stored), first.real, first.real + by.real * static_cast<double>(count - 1));
  const DType counter = count > INT32_MAX ? DType::I64 : DType::I32;
  Tensor numbers = r.done(r.graph().add(Op::Iota, counter, {}, static_cast<uint64_t>(count)));
  numbers = numbers.cast(stored == DType::F64 ? DType::F64 : DType::F32);
  if (by.real != 1) numbers = numbers * by.real;
  if (first.real != 0) numbers = numbers + first.real;
  return numbers.cast(stored);
}

// Floats are counted from the nearer end, so that both ends are exact.
Tensor Tensor::linspace(const Tensor& start, const Tensor& stop, int64_t count, DType dtype,
                        std::string_view device) {
  const tensor::NamedFunction named("linspace");
  require(count >= 0, "[linspace] count {} is negative", count);
  require_type(dtype != DType::Bool && size_of(dtype) != 0, "[linspace] values are numbers, not {}",
               name_of(dtype));
  const ExactNumber first = bound_of("linspace", start), last = bound_of("linspace", stop);
  if (count == 1) return full({1}, start, dtype, device);
  if (is_integer(dtype) && first.is_whole && last.is_whole) {
    require(holds_exactly(dtype, first.whole) && holds_exactly(dtype, last.whole),
            "[linspace] {} does not hold {} to {}; take a wider dtype", name_of(dtype), first.real,
            last.real);
    return whole_line(first.whole, last.whole, count, dtype, device);
  }
  const double step = (last.real - first.real) / static_cast<double>(count - 1);
  const bool is_wide = dtype == DType::F64 || (is_integer(dtype) && size_of(dtype) >= 4);
  const DType computed = is_wide ? DType::F64 : DType::F32;
  const Tensor number = arange(count, counter_for({count}), device), to_end = count - 1 - number;
  return plugrad::where(number < count / 2, number.cast(computed) * step + first.real,
                        last.real - to_end.cast(computed) * step)
      .cast(dtype);
}

Tensor Tensor::eye(const Size& n, const std::optional<Size>& m, DType dtype,
                   std::string_view device) {
  const tensor::NamedFunction named("eye");
  return tensor::with_given_sizes("eye", {n, m.value_or(n)}, [&](const Shape& sizes) {
    for (const int64_t size : sizes) require(size >= 0, "[eye] size {} is negative", size);
    const Tensor rows = arange(sizes[0], DType::I32, device).unsqueeze(1),
                 columns = arange(sizes[1], DType::I32, device);
    return (rows == columns).cast(dtype);
  });
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
    grid.push_back(tensor::own_handle(axes[i].reshape(along).expand(shape)));
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
          bytes.size() / size, count, tensor::lazy_text(shape));
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
