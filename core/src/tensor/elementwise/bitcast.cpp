// Casts and bitcasts.
#include "plugrad/functional.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

namespace {

DType unsigned_of(uint32_t size_bytes) {
  switch (size_bytes) {
    case 1:
      return DType::U8;
    case 2:
      return DType::U16;
    case 4:
      return DType::U32;
    default:
      return DType::U64;
  }
}

/// Bitcast to a dtype of the same size. The bits of bool are 0 and 1; all bits but 0 become true:
/// a write to them would not go back to the bits.
Tensor same_size(const Tensor& x, DType to) {
  if (x.dtype() == to) return x.reshape(x.shape());
  if (to == DType::Bool) return tensor::without_writes(same_size(x, DType::U8) != 0);
  if (x.dtype() == DType::Bool) return tensor::without_writes(same_size(x.cast(DType::U8), to));
  Recorder r("bitcast");
  const Id node = r.cast(r.use(x), x.dtype());
  return r.view_of(x, r.graph().add(Op::Bitcast, to, {node}));
}

/// Splits each word of the last axis into parts of `size` bytes, lowest first.
Tensor split_words(const Tensor& words, uint32_t size) {
  std::vector<Tensor> parts;
  for (uint32_t at = 0; at < size_of(words.dtype()); at += size)
    parts.push_back((words >> (8 * at)).cast(unsigned_of(size)));
  return stack(parts, -1).flatten(-2);
}

/// Joins parts of the last axis to words of `size` bytes, lowest first.
Tensor join_words(const Tensor& parts, uint32_t size) {
  const uint32_t part = size_of(parts.dtype());
  const int64_t count = size / part;
  const Tensor groups = parts.unflatten(-1, {-1, count}).cast(unsigned_of(size));
  const int64_t axis = groups.ndim() - 1;
  Tensor words;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor one = groups.slice(axis, Slice(i, i + 1)).squeeze(axis) << (8 * part * i);
    words = words.defined() ? words | one : one;
  }
  return words;
}

}  // namespace

Tensor Tensor::cast(DType to) const {
  Recorder r("cast");
  tensor::require_dtype("cast", strong(to));
  return r.done(r.cast(r.use(*this), strong(to)));
}

Tensor Tensor::bitcast(DType wanted) const {
  const DType to = strong(wanted);
  tensor::require_dtype("bitcast", to);
  const uint32_t from_size = size_of(dtype()), to_size = size_of(to);
  require(
      from_size == to_size || to != DType::Bool,
      "[bitcast] {} and {} differ in size, and only 0 and 1 are bits of a bool; compare with 0, "
      "or cast",
      name_of(dtype()), name_of(to));
  if (from_size == to_size) return same_size(*this, to);
  require(ndim() > 0,
          "[bitcast] {} and {} have elements of different size, and there is no axis to change",
          name_of(dtype()), name_of(to));
  const Tensor bits = same_size(*this, unsigned_of(from_size));
  if (from_size > to_size) return tensor::without_writes(same_size(split_words(bits, to_size), to));
  const int64_t count = to_size / from_size;
  require(size(-1) % count == 0,
          "[bitcast] the last axis of {} does not divide into {} of {} {} each",
          tensor::lazy_text(*this), name_of(to), count, name_of(dtype()));
  return tensor::without_writes(same_size(join_words(bits, to_size), to));
}

}  // namespace plugrad
