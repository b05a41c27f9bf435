// Movement: shapes change, elements do not. Each function checks its arguments and records one or a
// few nodes.
#include <algorithm>
#include <numeric>

#include "plugrad/functional.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::checked_axes;
using tensor::checked_axis;
using tensor::Recorder;

namespace {

/// `shape` with its -1 replaced by what is left of `count` elements.
Shape resolve_shape(const Shape& from, const Shape& wanted) {
  const int64_t count = element_count(from);
  Shape shape = wanted;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) {
      require(shape[i] >= 0, "[reshape] size {} in {} is negative", shape[i], to_string(wanted));
      known *= shape[i];
      continue;
    }
    require(open < 0, "[reshape] {} has more than one -1", to_string(wanted));
    open = static_cast<int64_t>(i);
  }
  if (open >= 0 && known > 0 && count % known == 0)
    shape[static_cast<size_t>(open)] = count / known;
  else
    require(open < 0, "[reshape] {} does not fit the {} elements of {}", to_string(wanted), count,
            to_string(from));
  require(element_count(shape) == count, "[reshape] {} has {} elements, {} has {}", to_string(from),
          count, to_string(shape), element_count(shape));
  return shape;
}

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

void require_rank(std::string_view function, size_t given, const Shape& shape) {
  require(given == shape.size(), "[{}] {} entries given for shape {} of {} axes", function, given,
          to_string(shape), shape.size());
}

Id pad_node(Recorder& r, Id node, const Pairs& pads) {
  std::vector<int64_t> list;
  for (const auto& [before, after] : pads) list.insert(list.end(), {before, after});
  if (std::ranges::all_of(list, [](int64_t n) { return n == 0; })) return node;
  return r.graph().add(Op::Pad, r.dtype(node), {node}, r.graph().list(list));
}

Id shrink_node(Recorder& r, Id node, const Pairs& bounds) {
  const Shape shape = r.shape(node);
  std::vector<int64_t> list;
  bool whole = true;
  for (size_t i = 0; i < bounds.size(); ++i) {
    list.insert(list.end(), {bounds[i].first, bounds[i].second});
    whole &= bounds[i].first == 0 && bounds[i].second == shape[i];
  }
  return whole ? node : r.graph().add(Op::Shrink, r.dtype(node), {node}, r.graph().list(list));
}

}  // namespace

Tensor Tensor::reshape(const Shape& shape) const {
  Recorder r("reshape");
  const Id node = r.use(*this);
  return r.done(r.reshape(node, resolve_shape(r.shape(node), shape)));
}

Tensor Tensor::permute(const std::vector<int64_t>& order) const {
  Recorder r("permute");
  const Id node = r.use(*this);
  const int64_t rank = static_cast<int64_t>(r.shape(node).size());
  require_rank("permute", order.size(), r.shape(node));
  std::vector<int64_t> axes;
  for (int64_t axis : order) axes.push_back(checked_axis("permute", axis, rank));
  checked_axes("permute", Axes(axes), rank);  // none twice
  return r.done(r.permute(node, axes));
}

Tensor Tensor::transpose(int64_t axis0, int64_t axis1) const {
  std::vector<int64_t> order(static_cast<size_t>(ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(checked_axis("transpose", axis0, ndim()))],
            order[static_cast<size_t>(checked_axis("transpose", axis1, ndim()))]);
  return permute(order);
}

Tensor Tensor::expand(const Shape& wanted) const {
  Recorder r("expand");
  const Id node = r.use(*this);
  const Shape from = r.shape(node);
  require(wanted.size() >= from.size(), "[expand] {} has fewer axes than {}", to_string(wanted),
          to_string(from));
  Shape shape = wanted;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t added = wanted.size() - from.size();
    const int64_t old = i < added ? 1 : from[i - added];
    if (shape[i] == -1) shape[i] = old;
    require(shape[i] >= 0 && (shape[i] == old || old == 1),
            "[expand] {} does not expand to {}: only sizes of 1 repeat", to_string(from),
            to_string(wanted));
  }
  return r.done(r.broadcast_to(node, shape));
}

Tensor Tensor::pad(const Pairs& before_after, double value) const {
  Recorder r("pad");
  Id node = r.use(*this);
  const Shape shape = r.shape(node);
  require_rank("pad", before_after.size(), shape);
  Pairs pads, bounds;  // negative padding crops
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto [before, after] = before_after[i];
    bounds.emplace_back(std::max<int64_t>(-before, 0), shape[i] - std::max<int64_t>(-after, 0));
    require(bounds[i].first <= bounds[i].second,
            "[pad] ({}, {}) removes more than axis {} of {} has", before, after, i,
            to_string(shape));
    pads.emplace_back(std::max<int64_t>(before, 0), std::max<int64_t>(after, 0));
  }
  node = shrink_node(r, node, bounds);
  const Tensor padded = r.done(pad_node(r, node, pads));
  if (value == 0.0 || r.shape(node) == padded.shape()) return padded;
  const Id inside =
      r.expand(r.reshape(r.graph().constant(DType::Bool, int64_t{1}), Shape(shape.size(), 1)),
               r.shape(node));
  const Tensor fill = is_float(dtype()) ? Tensor(value) : Tensor(static_cast<int64_t>(value));
  return plugrad::where(r.done(pad_node(r, inside, pads)), padded, fill);
}

Tensor Tensor::shrink(const Pairs& begin_end) const {
  Recorder r("shrink");
  const Id node = r.use(*this);
  const Shape shape = r.shape(node);
  require_rank("shrink", begin_end.size(), shape);
  for (size_t i = 0; i < shape.size(); ++i)
    require(0 <= begin_end[i].first && begin_end[i].first <= begin_end[i].second &&
                begin_end[i].second <= shape[i],
            "[shrink] ({}, {}) is no part of axis {} of {}", begin_end[i].first,
            begin_end[i].second, i, to_string(shape));
  return r.done(shrink_node(r, node, begin_end));
}

Tensor Tensor::flip(const Axes& axes) const {
  Recorder r("flip");
  const Id node = r.use(*this);
  std::vector<int64_t> flags(r.shape(node).size(), 0);
  for (int64_t axis : checked_axes("flip", axes, static_cast<int64_t>(flags.size())))
    flags[static_cast<size_t>(axis)] = 1;
  if (flags.empty()) return *this;
  return r.done(r.graph().add(Op::Flip, r.dtype(node), {node}, r.graph().list(flags)));
}

Tensor Tensor::squeeze() const {
  Shape shape = this->shape();
  std::erase(shape, 1);
  return reshape(shape);
}

Tensor Tensor::squeeze(int64_t axis) const {
  Shape shape = this->shape();
  const int64_t at = checked_axis("squeeze", axis, ndim());
  if (shape[static_cast<size_t>(at)] != 1) return *this;
  shape.erase(shape.begin() + at);
  return reshape(shape);
}

Tensor Tensor::unsqueeze(int64_t axis) const {
  Shape shape = this->shape();
  shape.insert(shape.begin() + checked_axis("unsqueeze", axis, ndim() + 1), 1);
  return reshape(shape);
}

Tensor Tensor::flatten(int64_t start, int64_t end) const {
  const Shape shape = this->shape();
  if (shape.empty()) return reshape({1});
  const int64_t first = checked_axis("flatten", start, ndim()),
                last = checked_axis("flatten", end, ndim());
  require(first <= last, "[flatten] start axis {} is after end axis {}", start, end);
  Shape result(shape.begin(), shape.begin() + first);
  result.push_back(element_count(
      std::span(shape).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first + 1))));
  result.insert(result.end(), shape.begin() + last + 1, shape.end());
  return reshape(result);
}

Tensor Tensor::unflatten(int64_t axis, const Shape& sizes) const {
  Shape shape = this->shape();
  const int64_t at = checked_axis("unflatten", axis, ndim());
  const Shape parts = resolve_shape({shape[static_cast<size_t>(at)]}, sizes);
  shape.erase(shape.begin() + at);
  shape.insert(shape.begin() + at, parts.begin(), parts.end());
  return reshape(shape);
}

std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int64_t axis) const {
  const int64_t at = checked_axis("split", axis, ndim());
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  require(total == size(at), "[split] sizes ({}) add up to {}, axis {} of {} has {}",
          fmt::join(sizes, ", "), total, at, to_string(shape()), size(at));
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t part : sizes) {
    require(part >= 0, "[split] size {} is negative", part);
    parts.push_back(slice(at, {begin, begin + part}));
    begin += part;
  }
  return parts;
}

std::vector<Tensor> Tensor::split(int64_t part, int64_t axis) const {
  require(part > 0, "[split] size {} is not positive", part);
  const int64_t total = size(axis);
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < total; begin += part)
    sizes.push_back(std::min(part, total - begin));
  if (sizes.empty()) sizes.push_back(0);
  return split(sizes, axis);
}

std::vector<Tensor> Tensor::chunk(int64_t count, int64_t axis) const {
  require(count > 0, "[chunk] count {} is not positive", count);
  return split(std::max<int64_t>((size(axis) + count - 1) / count, 1), axis);
}

Tensor Tensor::repeat(const Shape& repeats) const {
  Shape shape = this->shape();
  require(repeats.size() >= shape.size(), "[repeat] {} has fewer entries than {} has axes",
          to_string(repeats), to_string(shape));
  shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
  Shape split, expanded, result;
  for (size_t i = 0; i < shape.size(); ++i) {
    require(repeats[i] >= 0, "[repeat] {} is negative", repeats[i]);
    split.insert(split.end(), {1, shape[i]});
    expanded.insert(expanded.end(), {repeats[i], shape[i]});
    result.push_back(repeats[i] * shape[i]);
  }
  return reshape(split).expand(expanded).reshape(result);
}

Tensor cat(const std::vector<Tensor>& tensors, int64_t axis) {
  require(!tensors.empty(), "[cat] no tensors are given");
  const Shape first = tensors[0].shape();
  const auto at =
      static_cast<size_t>(checked_axis("cat", axis, static_cast<int64_t>(first.size())));
  int64_t total = 0;
  for (const Tensor& t : tensors) {
    Shape shape = t.shape();
    if (shape.size() == first.size()) shape[at] = first[at];
    require(shape == first, "[cat] {} and {} may differ along axis {} alone", to_string(first),
            to_string(t.shape()), at);
    total += t.size(static_cast<int64_t>(at));
  }
  // Each part in a frame of zeros, chosen by where it lies: adding would turn -0 into +0.
  Tensor result;
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    std::vector<std::pair<int64_t, int64_t>> frame(first.size());
    const int64_t end = begin + t.size(static_cast<int64_t>(at));
    frame[at] = {begin, total - end};
    Shape along(first.size(), 1);
    along[at] = total;
    const Tensor padded = t.pad(frame);
    if (!result.defined())
      result = padded;
    else if (end > begin)
      result = where(Tensor::arange(total).reshape(along) < begin, result, padded);
    begin = end;
  }
  return result;
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t axis) {
  require(!tensors.empty(), "[stack] no tensors are given");
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    require(t.shape() == tensors[0].shape(), "[stack] shapes {} and {} differ",
            to_string(tensors[0].shape()), to_string(t.shape()));
    rows.push_back(t.unsqueeze(axis));
  }
  return cat(rows, axis);
}

}  // namespace plugrad
