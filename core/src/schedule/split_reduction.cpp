#include "schedule/split_reduction.h"

#include <algorithm>

namespace plugrad::schedule {
namespace {

using Dims = TensorBuilder::Dims;

constexpr int64_t kLargeReduction = 32768;
constexpr int64_t kMostChunks = 4096;

/// A number of equal chunks of `size` elements: best a multiple of the threads and some for each,
/// so that a thread that is held up delays the end by one chunk only. 1 when there is none.
int64_t chunk_count(int64_t size, int64_t threads) {
  int64_t any = 1;
  for (int64_t c = threads; c <= std::min(size, kMostChunks); ++c) {
    if (size % c != 0) continue;
    if (c % threads == 0 && c >= 4 * threads) return c;
    if (any == 1 && c >= 2 * threads) any = c;
  }
  return any;
}

/// A shape in which neighbouring reduced axes are one.
struct Merged {
  Dims shape;
  std::vector<bool> reduced;
};

Merged merge(const Dims& shape, const Dims& axes) {
  Merged out;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (reduced && !out.reduced.empty() && out.reduced.back()) {
      out.shape.back() *= shape[i];
      continue;
    }
    out.shape.push_back(shape[i]);
    out.reduced.push_back(reduced);
  }
  return out;
}

}  // namespace

SplitReduction split_reduction(TensorBuilder& build, Op op, Id x, const Dims& axes,
                               const Options& options) {
  const Dims shape = build.shape(x);
  Dims result = shape;
  for (int64_t axis : axes) result[static_cast<size_t>(axis)] = 1;
  const int64_t outputs = element_count(result), size = build.count(x), threads = options.threads;
  // Of rows one is a thread's work at a time, of columns as many as its subgroup has items.
  const bool columns = !shape.empty() && result.back() == shape.back();
  const int64_t together = columns ? options.subgroup : 1;
  if (threads <= 1 || outputs == 0 || outputs >= 4 * threads * together ||
      size / outputs < kLargeReduction)
    return {build.reduce(op, x, axes)};

  const Merged merged = merge(shape, axes);
  int64_t chunks = 1;
  size_t at = 0;
  for (size_t i = 0; i < merged.shape.size() && chunks == 1; ++i)
    if (merged.reduced[i] && (chunks = chunk_count(merged.shape[i], threads)) != 1) at = i;
  if (chunks == 1) return {build.reduce(op, x, axes)};

  Dims cut, inner;
  for (size_t i = 0; i < merged.shape.size(); ++i) {
    if (i == at) cut.push_back(chunks);
    cut.push_back(i == at ? merged.shape[i] / chunks : merged.shape[i]);
    if (merged.reduced[i]) inner.push_back(static_cast<int64_t>(cut.size() - 1));
  }
  const Id first = build.reduce(op, build.reshape(x, cut), inner);
  return {build.reshape(build.reduce(op, first, {static_cast<int64_t>(at)}), result), first};
}

}  // namespace plugrad::schedule
