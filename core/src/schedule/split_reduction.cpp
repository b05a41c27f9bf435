// Splits large reductions with few results in two, so that all threads have work and repeated reads
// hit a cache.
//   before   reduce[add](x, axis)
//   after    reduce[add](store(reduce[add](x, chunk)), chunks)
#include <algorithm>
#include <numeric>

#include "schedule/simplify_tensors.h"

namespace plugrad::schedule {
namespace {

using DimList = TensorBuilder::Dims;

constexpr int64_t kLargeReduction = 32768;  // elements
constexpr int64_t kMostChunks = 4096;       // limit of the search
constexpr int64_t kVectorsInTile = 20;  // vectors of results that one pass over the terms computes
constexpr int64_t kFewTerms = 4;        // most results for each term; above, chunks cost too much
constexpr int64_t kReadAgain = 16;      // reads of each operand from which a cache helps
constexpr int64_t kVectorsInStrip =
    16;  // vectors of columns with which one thread reads memory in order
constexpr int64_t kTermsOfChunk = 16;  // terms; then the cost of storing a partial sum is small

/// Divides `size` elements into equal chunks: best a multiple of the threads and several for each,
/// so that one delayed thread delays the end by one chunk only. 1 where no number divides.
int64_t chunk_count(int64_t size, int64_t threads) {
  int64_t any = 1;
  for (int64_t c = threads; c <= std::min(size, kMostChunks); ++c) {
    if (size % c != 0) continue;
    if (c % threads == 0 && c >= 4 * threads) return c;
    if (any == 1 && c >= 2 * threads) any = c;
  }
  return any;
}

/// A shape with adjacent reduced axes merged.
struct Merged {
  DimList shape;
  std::vector<bool> reduced;
};

Merged merge(const DimList& shape, const DimList& axes) {
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

/// Elements in memory below the views of `x`.
int64_t elements_below(TensorBuilder& build, Id x) {
  const Graph& g = build.graph();
  while (is_movement(g[x].op)) x = g[x].src[0];
  return build.count(x);
}

/// Whether a reduced axis stands outside an axis that is not reduced.
bool has_columns(const Merged& merged) {
  const auto first = std::ranges::find(merged.reduced, true);
  const auto at = first - merged.reduced.begin();
  for (size_t i = static_cast<size_t>(at); i < merged.shape.size(); ++i)
    if (!merged.reduced[i] && merged.shape[i] > 1) return true;
  return false;
}

/// Whether `x` is a product whose operands are read repeatedly.
bool reads_again(TensorBuilder& build, Id x) {
  const Graph& g = build.graph();
  return g[x].op == Op::Mul && std::ranges::all_of(g.sources(x), [&](Id s) {
           return build.count(x) >= kReadAgain * elements_below(build, s);
         });
}

/// Results that one thread computes at once to read memory in order: one for rows; for columns a
/// subgroup, or a few vectors if each element is read once.
int64_t results_together(TensorBuilder& build, Id x, bool in_order, const Merged& merged,
                         const Options& options) {
  const int64_t items = in_order ? options.subgroup : 1;
  if (options.lanes < 2 || !has_columns(merged) || reads_again(build, x)) return items;
  return std::max<int64_t>(items, kVectorsInStrip * options.lanes);
}

/// Chunks of a sum of products whose reads fit the cache; 1 if operands are read too seldom, or if
/// the partial results would cost as much.
int64_t chunks_for_cache(TensorBuilder& build, Op op, Id x, int64_t outputs, int64_t axis_size,
                         const Options& options) {
  const Graph& g = build.graph();
  const auto cache = static_cast<int64_t>(options.cache_bytes),
             threads = std::max(int64_t{options.threads}, int64_t{1});
  if (cache == 0 || op != Op::Add || g[x].op != Op::Mul) return 1;
  const int64_t element = size_of(g[x].dtype);
  int64_t read = 0;
  for (Id s : g.sources(x)) {
    const int64_t elements = elements_below(build, s);
    if (build.count(x) < kReadAgain * elements) return 1;
    read += elements * element;
  }
  const int64_t tile = kVectorsInTile * options.lanes, terms = build.count(x) / outputs;
  if (read <= 2 * cache || 2 * outputs * element > cache || outputs < 2 * tile ||
      kFewTerms * terms < outputs)
    return 1;
  for (int64_t c = threads; c <= axis_size; c += threads)
    if (axis_size % c == 0 && 2 * read <= c * cache) return c;
  return 1;
}

}  // namespace

bool is_long_product(TensorBuilder& build, Id x, const DimList& axes) {
  int64_t terms = 1;
  for (int64_t axis : axes) terms *= build.shape(x)[static_cast<size_t>(axis)];
  return terms >= kTermsOfChunk && reads_again(build, x);
}

SplitReduction split_reduction(TensorBuilder& build, Op op, Id x, const DimList& axes,
                               const Options& options) {
  const DimList shape = build.shape(x);
  DimList result = shape;
  for (int64_t axis : axes) result[static_cast<size_t>(axis)] = 1;
  const int64_t outputs = element_count(result), size = build.count(x), threads = options.threads;
  if (outputs == 0 || axes.empty()) return {build.reduce(op, x, axes)};
  const Merged merged = merge(shape, axes);
  const bool in_order = !shape.empty() && result.back() == shape.back();
  const int64_t together = results_together(build, x, in_order, merged, options),
                terms = size / outputs;
  // Few columns are no parallel work: each thread would read a part of every cache line or page.
  const int64_t shares = together > options.subgroup ? std::min(outputs, 4 * threads) : outputs;
  const bool few =
      threads > 1 && outputs < 4 * threads * together && size >= shares * kLargeReduction;

  int64_t chunks = 1;
  size_t at = 0;
  for (size_t i = 0; i < merged.shape.size() && chunks == 1; ++i) {
    if (!merged.reduced[i]) continue;
    chunks = few ? chunk_count(merged.shape[i], threads)
                 : chunks_for_cache(build, op, x, outputs, merged.shape[i], options);
    if (few && outputs > 4 * threads && chunks * kTermsOfChunk > terms) chunks = 1;
    if (chunks != 1) at = i;
  }
  if (chunks == 1) return {build.reduce(op, x, axes)};

  DimList cut, inner;
  for (size_t i = 0; i < merged.shape.size(); ++i) {
    if (i == at) cut.push_back(chunks);
    cut.push_back(i == at ? merged.shape[i] / chunks : merged.shape[i]);
    if (merged.reduced[i]) inner.push_back(static_cast<int64_t>(cut.size() - 1));
  }
  auto chunk_axis = static_cast<int64_t>(at);
  Id parts = build.reshape(x, cut);
  if (!few) {
    // A chunk stays in the cache only if its loop is outside the loops of the results.
    DimList order(cut.size());
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + chunk_axis, order.begin() + chunk_axis + 1);
    parts = build.permute(parts, order);
    for (int64_t& axis : inner) axis += axis < chunk_axis ? 1 : 0;
    chunk_axis = 0;
  }
  const Id first = build.reduce(op, parts, inner);
  return {build.reshape(build.reduce(op, first, {chunk_axis}), result), first};
}

}  // namespace plugrad::schedule
