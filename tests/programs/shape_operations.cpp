// Movement, joining, indexing.
#include <algorithm>

#include "programs/operations.h"

namespace plugrad::programs {
namespace {

using Result = std::vector<Tensor>;

// Some way to write the number of elements as sizes.
Result reshape(Args& a) {
  const Tensor& x = a.tensor();
  int64_t rest = x.numel();
  Shape shape;
  for (int64_t axes = a.pick(0, 3); axes > 0 && rest > 0; --axes) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= rest; ++d)
      if (rest % d == 0) divisors.push_back(d);
    const auto count = static_cast<int64_t>(divisors.size());
    shape.push_back(divisors[static_cast<size_t>(a.pick(0, count - 1) % count)]);
    rest /= shape.back();
  }
  shape.push_back(rest);
  return {x.reshape(shape)};
}

Result permute(Args& a) {
  const Tensor& x = a.with_axes();
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.ndim(); ++i)
    order.insert(order.begin() + a.pick(0, static_cast<int64_t>(order.size())), i);
  return {x.permute(order)};
}

Result expand(Args& a) {
  const Tensor& x = a.tensor();
  Shape shape = x.shape();
  for (int64_t& size : shape)
    if (size == 1) size = a.pick(0, 10) == 0 ? 0 : a.pick(1, 4);
  if (a.chance(50)) shape.insert(shape.begin(), a.pick(1, 3));
  return {x.expand(shape)};
}

std::vector<std::pair<int64_t, int64_t>> margins(Args& a, const Tensor& x, int64_t low) {
  std::vector<std::pair<int64_t, int64_t>> list;
  for (int64_t i = 0; i < x.ndim(); ++i) list.push_back({a.pick(low, 2), a.pick(low, 2)});
  return list;
}

Result shrink_axes(Args& a) {
  const Tensor& x = a.with_axes();
  std::vector<std::pair<int64_t, int64_t>> list;
  for (int64_t size : x.shape()) {
    const int64_t begin = a.pick(0, size);
    list.emplace_back(begin, a.chance(10) ? begin : a.pick(begin, size));
  }
  return {x.shrink(list)};
}

Result index(Args& a) {
  const Tensor& x = a.with_axes();
  const int64_t size = x.shape()[0];
  switch (a.pick(0, 4)) {
    case 0:
      return {x[a.pick(-size, size - 1)]};
    case 1:
      return {x[{Slice{a.pick(-8, 8), a.pick(-8, 8), a.pick(1, 3)}}]};
    case 2:
      return {x[{Slice({}, {}, -a.pick(1, 3))}]};
    case 3:
      return {x[{kEllipsis, kNewAxis, Slice{a.pick(0, 2), {}, a.pick(1, 2)}}]};
    default:
      return {x[{kNewAxis, a.pick(-size, size - 1), kEllipsis}]};
  }
}

// Indices computed from a variable's values, usually in range.
Tensor places(Args& a, int64_t size) {
  const Tensor& from = a.whole();
  const Tensor wrapped = from.cast(DType::I64) % std::max<int64_t>(size, 1);
  return a.chance(25) ? wrapped * 2 - 1 : a.chance(30) ? wrapped - size : wrapped;
}

Result index_select(Args& a) {
  const Tensor& x = a.with_axes();
  const int64_t axis = a.axis(x);
  return {x.index_select(axis, places(a, x.size(axis)).flatten())};
}

Result gather(Args& a) {
  const Tensor& x = a.with_axes();
  const int64_t axis = a.axis(x);
  const Tensor& from = a.whole();
  return {x.gather(axis, from.cast(DType::I64) % std::max<int64_t>(x.size(axis), 1))};
}

// Joins a variable and values of matching shape.
Result join(Args& a, bool stacked) {
  const Tensor& x = a.tensor();
  std::vector<Tensor> list = {x};
  for (int64_t i = a.pick(0, 2); i > 0; --i)
    list.push_back(a.chance(50) ? a.like(x) : x.flip(Axes(std::vector<int64_t>{})));
  if (stacked) return {stack(list, a.pick(-1, x.ndim()))};
  require_fit(x.ndim() > 0);
  return {cat(list, a.axis(x))};
}

Result split(Args& a) {
  const Tensor& x = a.with_axes();
  const int64_t axis = a.axis(x), size = a.pick(1, 4);
  return a.chance(50) ? x.split(size, axis) : x.chunk(size, axis);
}

// clang-format off: a table
const Operation kShaping[] = {
    {"movement", "reshape", reshape},
    {"movement", "permute", permute},
    {"movement", "expand", expand},
    {"movement", "shrink", shrink_axes},
    {"movement", "transpose", [](Args& a) -> Result { const Tensor& x = a.with_axes(); const int64_t i = a.axis(x), j = a.axis(x); return {x.transpose(i, j)}; }},
    {"movement", "pad", [](Args& a) -> Result { const Tensor& x = a.with_axes(); return {x.pad(margins(a, x, 0))}; }},
    {"movement", "pad value", [](Args& a) -> Result { const Tensor& x = a.with_axes(); const DType d = x.dtype(); return {x.pad(margins(a, x, -1), a.pick(is_unsigned(d) ? 0 : -2, d == DType::Bool ? 1 : 2))}; }},
    {"movement", "flip", [](Args& a) -> Result { const Tensor& x = a.with_axes(); return {x.flip(a.axes(x))}; }},
    {"movement", "squeeze", [](Args& a) -> Result { return {a.tensor().squeeze()}; }},
    {"movement", "unsqueeze", [](Args& a) -> Result { const Tensor& x = a.tensor(); return {x.unsqueeze(a.pick(-1, x.ndim()))}; }},
    {"movement", "flatten", [](Args& a) -> Result { return {a.tensor().flatten()}; }},
    {"movement", "repeat", [](Args& a) -> Result { const Tensor& x = a.with_axes(); Shape times(static_cast<size_t>(x.ndim()), 1); times[0] = a.pick(0, 3); return {x.repeat(times)}; }},
    {"movement", "tril", [](Args& a) -> Result { const Tensor& x = a.tensor([](const Tensor& t) { return t.ndim() >= 2; }); return {x.tril(a.pick(-2, 2))}; }},
    {"movement", "triu", [](Args& a) -> Result { const Tensor& x = a.tensor([](const Tensor& t) { return t.ndim() >= 2; }); return {x.triu(a.pick(-2, 2))}; }},
    {"movement", "contiguous", [](Args& a) -> Result { return {a.tensor().contiguous()}; }},
    {"movement", "detach", [](Args& a) -> Result { return {a.tensor().detach()}; }},
    {"join", "cat", [](Args& a) { return join(a, false); }},
    {"join", "stack", [](Args& a) { return join(a, true); }},
    {"join", "split", split},
    {"index", "[]", index},
    {"index", "[tensor]", [](Args& a) -> Result { const Tensor& x = a.with_axes(); return {x[places(a, x.size(0))]}; }},
    {"index", "index_select", index_select},
    {"index", "gather", gather},
    {"index", "embedding", [](Args& a) -> Result {
       const Tensor& x = a.tensor([](const Tensor& t) { return t.ndim() == 2; });
       return {embedding(x, places(a, x.size(0)))}; }},
    {"index", "one_hot", [](Args& a) -> Result { const Tensor& x = a.whole(); return {x.one_hot(a.pick(1, 5))}; }},
};
// clang-format on

}  // namespace

std::span<const Operation> shape_operations() {
  return kShaping;
}

}  // namespace plugrad::programs
