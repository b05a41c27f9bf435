// Sorts by keys: unsigned integers in the order of the values. Short axes are sorted by counting
// the smaller keys of each element, long ones by Batcher's bitonic network over words of key and
// index, which is stable. topk takes the first few elements of a long axis one after another.
#include <bit>

#include "plugrad/functional.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/recording/remembered.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

using tensor::checked_axis;

namespace {

/// Elements of the longest axis that counting sorts: n² comparisons, but only two kernels.
constexpr int64_t kCounted = 256;
/// Elements of the rows that counting sorts before the network merges them.
constexpr int64_t kBlock = 64;
/// Steps of the network in one kernel: it reads 2^n elements for each element.
constexpr int kStepsAKernel = 2;

/// A key with NaN above all numbers and equal zeros. Bit operations give it on every device.
Tensor float_key(const Tensor& bits, int64_t sign, int64_t infinity) {
  const Tensor size = bits & (sign - 1), is_negative = (bits & sign) != 0;
  const Tensor number = where(is_negative, ~bits, bits | sign);
  return where(size > infinity, Tensor(-1).cast(number.dtype()),
               where(size == 0, static_cast<uint64_t>(sign), number));
}

/// The key of x: u32, or u64 for dtypes of 64 bits.
Tensor ascending_key(const Tensor& x) {
  const DType dtype = x.dtype();
  const bool has_64_bits = size_of(dtype) == 8;
  const DType bits = has_64_bits ? DType::U64 : DType::U32;
  const int64_t sign = has_64_bits ? std::numeric_limits<int64_t>::min() : int64_t{1} << 31;
  if (dtype == DType::Bool || is_unsigned(dtype)) return x.cast(bits);
  if (is_integer(dtype)) return x.cast(has_64_bits ? DType::I64 : DType::I32).bitcast(bits) ^ sign;
  if (has_64_bits) return float_key(x.bitcast(bits), sign, 0x7ff0000000000000);
  return float_key(x.cast(DType::F32).bitcast(bits), sign, 0x7f800000);
}

/// The number of keys of the last axis that come before each key.
Tensor ranks(const Tensor& key) {
  const int64_t n = key.size(-1);
  const Tensor mine = key.unsqueeze(-1), other = key.unsqueeze(-2), index = Tensor::arange(n);
  const Tensor first = (other < mine) | ((other == mine) & (index < index.reshape({n, 1})));
  return first.sum(-1, false, DType::I32).contiguous();
}

/// Moves `values` of the last axis to their ranks.
Tensor placed(const Tensor& rank, const Tensor& values) {
  const Tensor index = Tensor::arange(rank.size(-1)).unsqueeze(-1);
  return where(rank.unsqueeze(-2) == index, values.unsqueeze(-2), 0).sum(-1, false, values.dtype());
}

/// One step of the network: compares elements `distance` apart (mirrored: each with its mirror
/// image in a block of 2 · distance), and exchanges them if the first is larger.
Tensor exchanged(const Tensor& x, int64_t distance, bool mirrored) {
  const Shape shape = x.shape();
  const Tensor pairs = x.unflatten(-1, {-1, 2, distance});
  const Tensor other = pairs.flip(mirrored ? Axes{-2, -1} : Axes{-2});
  const Tensor is_second = Tensor::arange(2).reshape({2, 1}) == 1;
  return where((pairs < other) ^ is_second, pairs, other).reshape(shape);
}

/// Indices in the order of 32-bit keys. Sorts words of a key (high half) and its index (low half),
/// of which no two are equal.
Tensor network_order(const Tensor& key) {
  const int64_t n = key.size(-1);
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(key.ndim()));
  pads.back() = {0, padded - n};
  const Tensor keys = key.pad(pads, UINT32_MAX).cast(DType::U64);
  Tensor words = ((keys << 32) | Tensor::arange(padded, DType::U64)).contiguous();
  const Tensor blocks = words.unflatten(-1, {-1, kBlock});
  words = placed(ranks(blocks), blocks).flatten(-2).contiguous();
  int steps = 0;
  for (int64_t sorted = kBlock; sorted < padded; sorted *= 2)
    for (int64_t distance = sorted; distance > 0; distance /= 2) {
      words = exchanged(words, distance, distance == sorted);
      if (++steps % kStepsAKernel == 0) words = words.contiguous();
    }
  std::vector<std::pair<int64_t, int64_t>> bounds;
  for (int64_t size : words.shape()) bounds.emplace_back(0, size);
  bounds.back() = {0, n};
  return words.shrink(bounds).cast(DType::U32).cast(DType::I32).contiguous();
}

/// Indices of the last axis in the order of the keys.
Tensor order_of(const Tensor& key) {
  const int64_t n = key.size(-1);
  if (n <= 1) return Tensor::zeros(key.shape(), DType::I32, key.device());
  if (n <= kCounted) return placed(ranks(key), Tensor::arange(n)).contiguous();
  if (key.dtype() == DType::U32) return network_order(key);
  // Sorts by the low halves, then by the high halves; the second sort is stable.
  const Tensor low = network_order(key.cast(DType::U32));
  const Tensor high = (key >> 32).cast(DType::U32).gather(-1, low);
  return low.gather(-1, network_order(high));
}

/// Whether k passes take less time than sorting n elements in log2(n)² / 2 steps, of which each also
/// writes.
bool are_few(int64_t k, int64_t n) {
  const auto bits = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n)));
  return 3 * k <= bits * bits;
}

/// Indices of the k smallest keys of the last axis, in order. A few of 32 bits are found by as many
/// passes: each takes the smallest word of a key and its index that is larger than the word before.
Tensor first_indices(const Tensor& key, int64_t k) {
  const int64_t n = key.size(-1);
  if (key.dtype() != DType::U32 || n <= kCounted || !are_few(k, n) || k == 0)
    return order_of(key).slice(-1, Slice(0, k));
  const Tensor words = (key.cast(DType::U64) << 32) | Tensor::arange(n, DType::U64);
  std::vector<Tensor> found = {words.min(-1, true)};
  while (std::ssize(found) < k)
    found.push_back(where(words > found.back(), words, Tensor(UINT64_MAX)).min(-1, true));
  return cat(found, -1).cast(DType::U32).cast(DType::I32);
}

/// Keys of x with the axis moved to the end.
Tensor moved_key(std::string_view function, const Tensor& x, int64_t axis, bool descending) {
  require(x.size(axis) <= INT32_MAX, "[{}] axis {} of {} is longer than an i32 index can count",
          function, axis, tensor::lazy_text(x));
  Tensor key = ascending_key(tensor::stored_once(x.detach()).transpose(axis, -1));
  if (descending) key = ~key;
  // Elements beyond a variable size get the largest key; as the sort is stable, they follow its
  // equals.
  const Tensor last = size_of(key.dtype()) == 8 ? Tensor(UINT64_MAX) : Tensor(int64_t{UINT32_MAX});
  return tensor::whole(key, last);
}

Tensor moved_order(std::string_view function, const Tensor& x, int64_t axis, bool descending) {
  const Tensor order = order_of(moved_key(function, x, axis, descending)).transpose(axis, -1);
  return tensor::limited_as(order, x);
}

}  // namespace

Tensor Tensor::argsort(int64_t axis, bool descending) const {
  if (ndim() == 0) return reshape({1}).argsort(axis, descending).reshape({});
  const Tensor* const operands[] = {this};
  const int64_t options[] = {axis, descending};
  return tensor::remembered("argsort", options, operands, tensor::Operands::Stored, [&] {
    const int64_t at = checked_axis("argsort", axis, ndim());
    return tensor::own_handle(moved_order("argsort", *this, at, descending));
  });
}

std::pair<Tensor, Tensor> Tensor::sort(int64_t axis, bool descending) const {
  if (ndim() == 0) {
    auto [values, indices] = reshape({1}).sort(axis, descending);
    return {values.reshape({}), indices.reshape({})};
  }
  const Tensor* const operands[] = {this};
  const int64_t options[] = {axis, descending};
  return tensor::remembered_pair("sort", options, operands, tensor::Operands::Stored, [&] {
    const int64_t at = checked_axis("sort", axis, ndim());
    const Tensor indices = tensor::own_handle(moved_order("sort", *this, at, descending));
    return std::pair(gather(at, indices), indices);
  });
}

namespace {

std::pair<Tensor, Tensor> top(const Tensor& x, int64_t k, int64_t axis, bool largest, bool sorted) {
  const int64_t at = checked_axis("topk", axis, x.ndim());
  require(k >= 0 && k <= x.size(at), "[topk] {} elements of axis {} of {}", k, at,
          tensor::lazy_text(x));
  const tensor::AxisSize size = tensor::axis_size(x, at);
  require(k <= size.least,
          "[topk] {} elements of axis {} of {}, whose size may be {}: take {} at most, or sort()",
          k, at, tensor::shown_shape(x), size.least, size.least);
  Tensor indices = first_indices(moved_key("topk", x, at, largest), k).transpose(at, -1);
  if (!sorted) indices = indices.sort(at).first;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != at) indices = tensor::limited(indices, i, tensor::axis_size(x, i));
  indices = tensor::own_handle(indices);
  return {x.gather(at, indices), indices};
}

}  // namespace

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t axis, bool largest, bool sorted) const {
  const Tensor* const operands[] = {this};
  const int64_t options[] = {k, axis, largest, sorted};
  return tensor::remembered_pair("topk", options, operands, tensor::Operands::Stored,
                                 [&] { return top(*this, k, axis, largest, sorted); });
}

}  // namespace plugrad
