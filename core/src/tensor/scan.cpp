// Scans. Up to 64 elements are a masked reduction, which fuses with its surroundings. More are a
// kernel that keeps a total a row; few long rows are cut, and each part starts from the scan of the
// parts' totals: n steps, and 1/1024 more for the totals.
#include <limits>

#include "plugrad/function.h"
#include "plugrad/functional.h"
#include "tensor/record.h"
#include "tensor/running.h"
#include "tensor/variable_sizes.h"
#include "tensor/wide.h"

namespace plugrad {

using tensor::checked_axis;

namespace {

constexpr int64_t kRow = 64;
constexpr int64_t kLongRow = 16384, kPart = 1024;
constexpr int64_t kEnoughRows = 64;  // to run in parallel

enum class Kind : uint8_t { Sum, Product, Max, LogSumExp };

double identity(Kind kind, DType dtype) {
  if (kind == Kind::Sum) return 0.0;
  if (kind == Kind::Product) return 1.0;
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return is_unsigned(dtype) ? 0.0 : -std::ldexp(1.0, static_cast<int>(size_of(dtype)) * 8 - 1);
}

Tensor literal(double value, DType dtype) {
  return is_float(dtype) ? Tensor(value) : Tensor(static_cast<int64_t>(value));
}

/// Of the last axis.
Tensor reduced(const Tensor& x, Kind kind) {
  switch (kind) {
    case Kind::Sum:
      return x.sum(-1, false, x.dtype());
    case Kind::Product:
      return x.prod(-1, false, x.dtype());
    case Kind::Max:
      return x.max(-1);
    default:
      return x.logsumexp(-1);
  }
}

Tensor combined(const Tensor& a, const Tensor& b, Kind kind) {
  switch (kind) {
    case Kind::Sum:
      return a + b;
    case Kind::Product:
      return a * b;
    case Kind::Max:
      return a.maximum(b);
    default:
      return a.logaddexp(b);
  }
}

/// (…, n) as one reduction of (…, n, n), whose last axis shows the places up to the other's.
Tensor scan_row(const Tensor& x, Kind kind) {
  const int64_t n = x.size(-1);
  const Tensor place = Tensor::arange(n), is_before = place <= place.reshape({n, 1});
  return reduced(where(is_before, x.unsqueeze(-2), literal(identity(kind, x.dtype()), x.dtype())),
                 kind);
}

/// The last axis with `before` and `after` places more, or fewer.
Tensor extended(const Tensor& x, int64_t before, int64_t after, Kind kind) {
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(x.ndim()));
  pads.back() = {before, after};
  return x.pad(pads, identity(kind, x.dtype()));
}

Tensor scan_last(const Tensor& x, Kind kind) {
  const int64_t n = x.size(-1), rows = (n + kRow - 1) / kRow;
  if (n == 0) return tensor::own_handle(x);
  if (rows == 1) return scan_row(x, kind);
  const Tensor grid = extended(x, 0, rows * kRow - n, kind).unflatten(-1, {rows, kRow});
  const Tensor totals = scan_last(reduced(grid, kind), kind);
  const Tensor before = extended(totals, 1, -1, kind).unsqueeze(-1);
  return extended(combined(before, scan_row(grid, kind), kind).flatten(-2), 0, n - rows * kRow,
                  kind);
}

Op op_of(Kind kind) {
  return kind == Kind::Sum ? Op::Add : kind == Kind::Product ? Op::Mul : Op::Max;
}

/// Axis 1 of (outer, length, inner) with `before` and `after` places more, or fewer.
Tensor longer(const Tensor& x, int64_t before, int64_t after, Kind kind) {
  return x.pad({{0, 0}, {before, after}, {0, 0}}, identity(kind, x.dtype()));
}

/// Axis 1 of (outer, length, inner). No gradient.
Tensor running_totals(const Tensor& x, Kind kind) {
  const int64_t outer = x.size(0), length = x.size(1), inner = x.size(2);
  if (length <= kLongRow || outer * inner >= kEnoughRows)
    return tensor::run_scan(op_of(kind), x, {});
  const int64_t parts = (length + kPart - 1) / kPart;
  const Tensor grid =
      longer(x, 0, parts * kPart - length, kind).reshape({outer, parts, kPart, inner});
  const Tensor totals = running_totals(reduced(grid.transpose(2, 3), kind), kind);
  const Tensor before = longer(totals, 1, -1, kind);
  const Tensor all = tensor::run_scan(op_of(kind), grid.reshape({outer * parts, kPart, inner}),
                                      before.reshape({outer * parts, inner}));
  return longer(all.reshape({outer, parts * kPart, inner}), 0, length - parts * kPart, kind);
}

/// running_totals with a gradient.
Tensor long_scan(const Tensor& x, Kind kind) {
  if (!is_float(x.dtype())) return running_totals(x, kind);
  const CustomFunction function{
      "scan",
      [kind](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector{running_totals(in[0], kind)};
      },
      [kind](const FunctionContext& context, const std::vector<Tensor>& gradients) {
        const Tensor &in = context.inputs()[0], &g = gradients[0];
        if (kind == Kind::Sum) return std::vector{long_scan(g.flip(1), kind).flip(1)};
        const Tensor y = scan_last(in.transpose(1, 2), kind).transpose(1, 2);
        return gradient((y * g).sum(), {in});
      }};
  return function({x})[0];
}

/// Dtype in which a running kernel scans, exactly; Void for none.
DType carrier(DType dtype, Kind kind) {
  if (kind == Kind::LogSumExp || tensor::runs_on(dtype))
    return kind == Kind::LogSumExp ? DType::Void : dtype;
  if (size_of(dtype) < 4) return is_float(dtype) ? DType::F32 : DType::I32;
  if (dtype == DType::U64 && kind != Kind::Max) return DType::I64;  // the same bits
  return DType::Void;
}

Tensor scan(std::string_view function, const Tensor& x, int64_t axis, Kind kind) {
  if (x.ndim() == 0) {
    checked_axis(function, axis, 1);
    return tensor::own_handle(x);
  }
  const int64_t at = checked_axis(function, axis, x.ndim());
  // No element is computed of one behind it: what stands there is to be finite in gradients alone.
  if (tensor::has_variable_size(x))
    return tensor::limited_as(
        scan(function, tensor::whole(x, kind == Kind::Product ? 1 : 0), at, kind), x);
  const DType wide = carrier(x.dtype(), kind);
  if (x.size(at) > kRow && x.numel() > 0 && wide != DType::Void) {
    int64_t outer = 1;
    for (int64_t i = 0; i < at; ++i) outer *= x.size(i);
    const Tensor rows = x.cast(wide).reshape({outer, x.size(at), -1});
    return long_scan(rows, kind).reshape(x.shape()).cast(x.dtype());
  }
  if (at == x.ndim() - 1) return scan_last(x, kind);
  return scan_last(x.transpose(at, -1), kind).transpose(at, -1);
}

Tensor accumulated(std::string_view function, const Tensor& x, int64_t axis,
                   std::optional<DType> wanted, Kind kind) {
  const DType result = tensor::dtype_or(function, wanted, sum_dtype(x.dtype()));
  require(result != DType::Bool, "[{}] bool is no dtype to add up in", function);
  const DType wide = is_float(result) ? tensor::wide_dtype(result) : result;
  return scan(function, x.cast(result).cast(wide), axis, kind).cast(result);
}

/// Values, and the last place at or before each that has its value.
std::pair<Tensor, Tensor> running_maximum(std::string_view function, const Tensor& x,
                                          int64_t axis) {
  const Tensor values = scan(function, x, axis, Kind::Max);
  if (x.ndim() == 0) return {values, Tensor(0).cast(DType::I32)};
  const int64_t at = checked_axis(function, axis, x.ndim());
  Shape along(static_cast<size_t>(x.ndim()), 1);
  along[static_cast<size_t>(at)] = x.size(at);
  const Tensor place = Tensor::arange(x.size(at)).reshape(along);
  const Tensor is_new = (x == values) | x.isnan();
  return {values, scan(function, where(is_new, place, 0), axis, Kind::Max)};
}

}  // namespace

Tensor Tensor::cumsum(int64_t axis, std::optional<DType> wanted) const {
  return accumulated("cumsum", *this, axis, wanted, Kind::Sum);
}

Tensor Tensor::cumprod(int64_t axis, std::optional<DType> wanted) const {
  return accumulated("cumprod", *this, axis, wanted, Kind::Product);
}

Tensor Tensor::logcumsumexp(int64_t axis) const {
  return tensor::widened(
      *this, [&](const Tensor& x) { return scan("logcumsumexp", x, axis, Kind::LogSumExp); });
}

std::pair<Tensor, Tensor> Tensor::cummax(int64_t axis) const {
  if (dtype() != DType::Bool) return running_maximum("cummax", *this, axis);
  auto [values, places] = running_maximum("cummax", cast(DType::U8), axis);
  return {values != 0, places};
}

// -x reverses the order of floats; ~x that of integers, without overflow.
std::pair<Tensor, Tensor> Tensor::cummin(int64_t axis) const {
  const bool real = is_float(dtype()), logic = dtype() == DType::Bool;
  const Tensor reversed = real ? -*this : ~*this;
  auto [values, places] =
      running_maximum("cummin", logic ? reversed.cast(DType::U8) : reversed, axis);
  if (logic) return {values == 0, places};
  return {real ? -values : ~values, places};
}

}  // namespace plugrad
