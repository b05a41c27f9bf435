// Diagonals and windows as views.
#include <algorithm>

#include "plugrad/functional.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::checked_axis;

Tensor Tensor::diagonal(int64_t offset, int64_t axis0, int64_t axis1) const {
  tensor::require_fixed("diagonal", *this);
  require(ndim() >= 2, "[diagonal] shape {} has fewer than two axes", tensor::lazy_text(*this));
  const int64_t a = checked_axis("diagonal", axis0, ndim()),
                b = checked_axis("diagonal", axis1, ndim());
  require(a != b, "[diagonal] axes {} and {} are the same", axis0, axis1);
  std::vector<int64_t> order;
  for (int64_t axis = 0; axis < ndim(); ++axis)
    if (axis != a && axis != b) order.push_back(axis);
  order.insert(order.end(), {a, b});
  const int64_t n = size(a), m = size(b);
  const int64_t row = offset < 0 ? -std::max(offset, -n) : 0,
                column = std::clamp<int64_t>(offset, 0, m);
  const int64_t count = std::min(n - row, m - column);
  const Tensor square =
      permute(order).slice(-2, {row, row + count}).slice(-1, {column, column + count});
  // In rows of count + 1 elements, each diagonal element is the first of a row.
  Shape lead = square.shape();
  lead.resize(lead.size() - 2);
  Shape flat = lead, rows = lead;
  flat.push_back(count * count);
  rows.insert(rows.end(), {count, count + 1});
  const auto last = static_cast<int64_t>(flat.size()) - 1;
  const Tensor x = tensor::padded_view(square.reshape(flat), last, count);
  return x.reshape(rows).slice(-1, {0, 1}).squeeze(-1);
}

Tensor Tensor::diag(int64_t offset) const {
  require(ndim() == 1 || ndim() == 2, "[diag] shape {}: a vector or a matrix is needed",
          tensor::lazy_text(*this));
  if (ndim() == 2) return tensor::own_handle(diagonal(offset));
  tensor::require_fixed("diag", *this);
  require(std::abs(offset / 2) < (int64_t{1} << 30), "[diag] offset {} is too large", offset);
  const int64_t count = size(0), away = std::abs(offset);
  // The inverse of diagonal(): count zeros after each element.
  const Tensor square = unsqueeze(1).pad({{0, 0}, {0, count}}).flatten();
  const Tensor x = square.slice(0, {0, count * count}).reshape({count, count});
  return offset < 0 ? x.pad({{away, 0}, {0, away}}) : x.pad({{0, away}, {away, 0}});
}

Tensor Tensor::unfold(int64_t axis, int64_t window, int64_t step) const {
  const int64_t at = checked_axis("unfold", axis, ndim()), n = size(at);
  tensor::require_fixed("unfold", *this, at);
  require(step > 0, "[unfold] step {} is not positive", step);
  require(window >= 0 && window <= n, "[unfold] windows of {} do not fit axis {} of {}", window, at,
          tensor::lazy_text(*this));
  const int64_t count = (n - window) / step + 1;
  std::vector<int64_t> order;
  if (window > 0 && (window <= step || count == 1)) {  // windows do not overlap
    for (int64_t i = 0; i <= ndim(); ++i)
      if (i != at + 1) order.push_back(i);
    order.push_back(at + 1);
    const int64_t row = count == 1 ? window : step, missing = count * row - n;
    const Tensor whole =
        missing > 0 ? tensor::padded_view(*this, at, missing) : slice(at, {0, count * row});
    return whole.unflatten(at, {count, row}).slice(at + 1, {0, window}).permute(order);
  }
  for (int64_t i = 0; i < ndim(); ++i)
    if (i != at) order.push_back(i);
  order.push_back(at);
  const Tensor x = permute(order);  // (…, n)
  // Rows of n, repeated and concatenated, are cut into rows of n + 1: row k then starts at element
  // k.
  const int64_t repeats = n == 0 ? 1 : (window * (n + 1) + n - 1) / n;
  Shape rows = x.shape();
  rows.insert(rows.end() - 1, repeats);
  Tensor y = x.unsqueeze(-2).expand(rows).flatten(-2).slice(-1, {0, window * (n + 1)});
  y = y.unflatten(-1, {window, n + 1}).slice(-1, {0, (count - 1) * step + 1, step});
  // (…, window, count): moves the count to the position of the axis.
  order.clear();
  for (int64_t i = 0; i < ndim() - 1; ++i) order.push_back(i);
  order.insert(order.begin() + at, ndim());
  order.push_back(ndim() - 1);
  return y.permute(order);
}

}  // namespace plugrad
