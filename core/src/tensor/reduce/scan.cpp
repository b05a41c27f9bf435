// Scans. Up to kOneBlock elements are a masked reduction. Longer rows are split into blocks of 5 to
// 16 elements: masked reductions of the blocks, combined with the scan of the block totals. All
// values are ordinary nodes, which the scheduler can fuse with their neighbours.
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

using tensor::checked_axis;

namespace {

constexpr int64_t kOneBlock = 32;  // elements

enum class Kind : uint8_t { Sum, Product, Max, LogSumExp };

Tensor identity(Kind kind, DType dtype) {
  if (kind == Kind::Sum) return 0;
  return kind == Kind::Product ? Tensor(1) : tensor::lowest(dtype);
}

Tensor reduced_along(const Tensor& x, int64_t axis, Kind kind) {
  switch (kind) {
    case Kind::Sum:
      return x.sum(axis, false, x.dtype());
    case Kind::Product:
      return x.prod(axis, false, x.dtype());
    case Kind::Max:
      return x.max(axis);
    default:
      return x.logsumexp(axis);
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

/// Scans axis 2 of (outer, blocks, n, inner) by one reduction of axis 3 of (outer, blocks, n, n,
/// inner), which holds the elements up to the index in axis 2.
Tensor scan_blocks(const Tensor& x, Kind kind) {
  const int64_t n = x.size(2);
  const Tensor index = Tensor::arange(n);
  const Tensor is_before = index.reshape({n, 1}) <= index.reshape({n, 1, 1});
  return reduced_along(where(is_before, x.unsqueeze(2), identity(kind, x.dtype())), 3, kind);
}

/// Axis 1 of (outer, n, inner), padded with the identity; negative numbers crop.
Tensor extended(const Tensor& x, int64_t before, int64_t after, Kind kind) {
  if (before == 0 && after == 0) return x;
  return x.pad({{0, 0}, {before, after}, {0, 0}}, identity(kind, x.dtype()));
}

/// Elements of a block: a divisor of the length if one has a suitable size.
int64_t block_of(int64_t length) {
  for (int64_t size : {16, 8, 15, 14, 13, 12, 11, 10, 9, 7, 6, 5})
    if (length % size == 0) return size;
  return 8;
}

/// Scans axis 1 of (outer, n, inner).
Tensor scan_rows(const Tensor& x, Kind kind) {
  const int64_t outer = x.size(0), n = x.size(1), inner = x.size(2);
  if (n <= kOneBlock) return scan_blocks(x.unsqueeze(1), kind).squeeze(1);
  const int64_t block = block_of(n), blocks = (n + block - 1) / block;
  const Tensor grid =
      extended(x, 0, blocks * block - n, kind).reshape({outer, blocks, block, inner});
  const Tensor totals = scan_rows(reduced_along(grid, 2, kind), kind);
  const Tensor before = extended(totals, 1, -1, kind).unsqueeze(2);
  const Tensor all = combined(before, scan_blocks(grid, kind), kind);
  return extended(all.reshape({outer, blocks * block, inner}), 0, n - blocks * block, kind);
}

Tensor scan_along(std::string_view function, const Tensor& x, int64_t axis, Kind kind) {
  if (x.ndim() == 0) {
    checked_axis(function, axis, 1);
    return tensor::own_handle(x);
  }
  const int64_t at = checked_axis(function, axis, x.ndim());
  // No element depends on a later one, so the fill beyond a variable size only has to keep
  // gradients finite.
  if (tensor::has_variable_size(x))
    return tensor::limited_as(
        scan_along(function, tensor::whole(x, kind == Kind::Product ? 1 : 0), at, kind), x);
  if (x.numel() == 0) return tensor::own_handle(x);
  int64_t outer = 1;
  for (int64_t i = 0; i < at; ++i) outer *= x.size(i);
  return scan_rows(x.reshape({outer, x.size(at), -1}), kind).reshape(x.shape());
}

Tensor accumulated(std::string_view function, const Tensor& x, int64_t axis,
                   std::optional<DType> wanted, Kind kind) {
  const DType result = tensor::dtype_or(function, wanted, sum_dtype(x.dtype()));
  require_type(result != DType::Bool, "[{}] bool is no dtype to add up in", function);
  const DType compute = is_float(result) ? tensor::compute_dtype(result) : result;
  return scan_along(function, x.cast(result).cast(compute), axis, kind).cast(result);
}

/// The running maxima, and for each the last index at or before it that has its value.
std::pair<Tensor, Tensor> running_maximum(std::string_view function, const Tensor& x,
                                          int64_t axis) {
  const Tensor values = scan_along(function, x, axis, Kind::Max);
  if (x.ndim() == 0) return {values, Tensor(0).cast(DType::I32)};
  const int64_t at = checked_axis(function, axis, x.ndim());
  Shape along(static_cast<size_t>(x.ndim()), 1);
  along[static_cast<size_t>(at)] = x.size(at);
  const Tensor index = Tensor::arange(x.size(at)).reshape(along);
  const Tensor is_new = (x == values) | x.isnan();
  return {values, scan_along(function, where(is_new, index, 0), axis, Kind::Max)};
}

}  // namespace

Tensor Tensor::cumsum(int64_t axis, std::optional<DType> wanted) const {
  return accumulated("cumsum", *this, axis, wanted, Kind::Sum);
}

Tensor Tensor::cumprod(int64_t axis, std::optional<DType> wanted) const {
  return accumulated("cumprod", *this, axis, wanted, Kind::Product);
}

Tensor Tensor::logcumsumexp(int64_t axis) const {
  return tensor::in_compute_dtype(
      *this, [&](const Tensor& x) { return scan_along("logcumsumexp", x, axis, Kind::LogSumExp); });
}

std::pair<Tensor, Tensor> Tensor::cummax(int64_t axis) const {
  if (dtype() != DType::Bool) return running_maximum("cummax", *this, axis);
  auto [values, indices] = running_maximum("cummax", cast(DType::U8), axis);
  return {values != 0, indices};
}

// -x reverses the order of floats; ~x that of integers, without overflow.
std::pair<Tensor, Tensor> Tensor::cummin(int64_t axis) const {
  const bool real = is_float(dtype()), logic = dtype() == DType::Bool;
  const Tensor reversed = real ? -*this : ~*this;
  auto [values, indices] =
      running_maximum("cummin", logic ? reversed.cast(DType::U8) : reversed, axis);
  if (logic) return {values == 0, indices};
  return {real ? -values : ~values, indices};
}

}  // namespace plugrad
