// Turns index tensors into one gather: merges the indexed axes, and their indices into one number.
#include <algorithm>
#include <numeric>

#include "plugrad/functional.h"
#include "tensor/index/index.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::tensor {

namespace {

void broadcast(std::vector<Tensor>& indices, Shape& common) {
  Recorder r("index");
  std::vector<Id> nodes;
  for (const Tensor& p : indices) nodes.push_back(r.use(p));
  r.match_dtypes(nodes, Takes::Bits);
  r.match_shapes(nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    common = r.shape(nodes[i]).size() >= common.size() ? r.shape(nodes[i]) : common;
    indices[i] = r.done(nodes[i]);
  }
}

/// Clamped to [0, size), as maxima, whose bounds range analysis derives.
Tensor clamped(const Tensor& indices, int64_t size) {
  return -(-indices.maximum(0)).maximum(1 - size);
}

}  // namespace

namespace {

/// For each of `size` rows the position of the last index that names it; negative if there is none.
Tensor last_index(const Tensor& indices, int64_t count, int64_t size) {
  const Tensor hit = indices.reshape({1, count}) == counter(size, 2, 0);
  return where(hit, counter(count, 2, 1), kNoIndex).max(1);
}

}  // namespace

TensorIndex::TensorIndex(const Tensor& x, const std::vector<IndexEntry>& entries) : x_(x) {
  int64_t axis = 0;
  for (const IndexEntry& e : entries) {
    if (e.kind == Index::Kind::Tensor) {
      axes_.push_back(axis);
      indices_.push_back(e.indices);
    }
    if (e.kind != Index::Kind::Number) ++axis;
  }
  if (axes_.empty()) return;
  broadcast(indices_, chosen_);
  const auto count = static_cast<int64_t>(axes_.size());
  at_ = axes_.back() - axes_.front() == count - 1 ? axes_.front() : 0;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (std::ranges::find(axes_, i) == axes_.end()) order_.push_back(i);
  order_.insert(order_.begin() + at_, axes_.begin(), axes_.end());
  if (count == 1) {
    flat_ = indices_[0];
    return;
  }
  int64_t total = 1;
  for (int64_t indexed : axes_) total *= x.size(indexed);
  const DType dtype = total > INT32_MAX ? DType::I64 : indices_[0].dtype();
  for (size_t i = 0; i < indices_.size(); ++i) {
    const int64_t size = x.size(axes_[i]);
    const Tensor inside = clamped(indices_[i], size), is_inside = inside == indices_[i];
    flat_ = flat_.defined() ? flat_ * size + inside.cast(dtype) : inside.cast(dtype);
    valid_ = valid_.defined() ? valid_ & is_inside : is_inside;
  }
}

Tensor TensorIndex::rows() const {
  const Tensor x = x_.permute(order_);
  return axes_.size() == 1 ? x : x.flatten(at_, at_ + static_cast<int64_t>(axes_.size()) - 1);
}

Tensor TensorIndex::read() const {
  const Tensor y = select(rows(), at_, flat_);
  if (!valid_.defined()) return y;
  Shape shape(chosen_);
  shape.resize(
      chosen_.size() + static_cast<size_t>(x_.ndim()) - axes_.size() - static_cast<size_t>(at_), 1);
  const Tensor valid = valid_.reshape(shape);
  return y.dtype() == DType::Bool ? y & valid : where(valid, y, 0);
}

Tensor TensorIndex::written(const Tensor& value) const {
  const Tensor x = rows();
  const Shape from = x.shape();
  const auto tail = from.begin() + at_ + 1;
  const int64_t size = from[static_cast<size_t>(at_)],
                count = std::accumulate(chosen_.begin(), chosen_.end(), int64_t{1},
                                        std::multiplies<>());
  // -1 names no row.
  const Tensor indices = whole(valid_.defined() ? where(valid_, flat_, -1) : flat_, -1);
  const Tensor last = last_index(indices, count, size);
  Shape full(from.begin(), from.begin() + at_);
  full.insert(full.end(), chosen_.begin(), chosen_.end());
  full.insert(full.end(), tail, from.end());
  Shape flat(from);
  flat[static_cast<size_t>(at_)] = count;
  const Tensor values = value.expand(full).reshape(flat);
  Shape along(static_cast<size_t>(from.end() - tail) + 1, 1);
  along[0] = size;
  Tensor y = where(last.reshape(along) >= 0, select(values, at_, last.maximum(0)), x);
  if (axes_.size() > 1) {
    Shape sizes;
    for (int64_t axis : axes_) sizes.push_back(x_.size(axis));
    y = y.unflatten(at_, sizes);
  }
  std::vector<int64_t> inverse(order_.size());
  for (size_t i = 0; i < order_.size(); ++i)
    inverse[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
  return y.permute(inverse);
}

}  // namespace plugrad::tensor
