// What the rows of a value have in common is computed in the kernel that reads the row again, while
// the row is in the cache: softmax's maximum and sum, layernorm's mean and variance.
#include <algorithm>

#include "schedule/cost.h"

namespace plugrad::schedule {
namespace {

constexpr uint64_t kInner = uint64_t{1} << 63;  // runs along loops of a Reduce
constexpr size_t kMostVisits = 400;
constexpr int64_t kFewRowsWork = 32768;  // elements from which on few rows are better split

/// By axis of a node, the axes of the reader's output along which its index runs, as bits.
using Runs = std::vector<uint64_t>;

/// How the kernel of `reader` reads a value that it would compute itself.
class Reading {
 public:
  Reading(Draft& draft, Id reader) : draft_(draft), g_(draft.graph), reader_(reader) {}

  /// The axes of the output along which `value` is read; kInner where inner loops count too, or
  /// where it is not known.
  uint64_t of(Id value) {
    const auto shape = shape_of(reader_);
    if (shape.size() > 60) return kInner;
    Runs runs;
    for (size_t i = 0; i < shape.size(); ++i) runs.push_back(shape[i] == 1 ? 0 : uint64_t{1} << i);
    visit(reader_, std::move(runs));
    for (size_t next = 0; next < found_.size(); ++next) {
      if (next == kMostVisits) return kInner;
      const auto [id, at] = found_[next];
      if (id == value) {
        for (uint64_t axis : at) read_ |= axis;
      } else if (id == reader_ || draft_.stored[id] == 0) {
        enter(id, at, value);
      }
    }
    return read_;
  }

 private:
  std::span<const int64_t> shape_of(Id id) const { return draft_.shapes[id]; }

  void visit(Id id, Runs runs) {
    const std::pair<Id, Runs> entry(id, std::move(runs));
    if (std::ranges::find(found_, entry) == found_.end()) found_.push_back(entry);
  }

  void enter(Id id, const Runs& at, Id value) {
    for (Id s : g_.sources(id)) {
      if (s < value) continue;  // sources come first, so that it cannot need the value
      if (shape_of(s).empty())
        visit(s, {});
      else
        visit(s, is_movement(g_[id].op)    ? moved(id, at)
                 : g_[id].op == Op::Reduce ? inside(id, at)
                                           : at);
    }
  }

  Runs inside(Id reduce, Runs at) const {
    for (int64_t axis : g_.arg_list(reduce).subspan(1)) at[static_cast<size_t>(axis)] = kInner;
    return at;
  }

  Runs moved(Id id, const Runs& at) const {
    const auto from = shape_of(g_[id].src[0]);
    if (g_[id].op == Op::Reshape) return reshaped(at, shape_of(id), from);
    Runs out = at;
    if (g_[id].op == Op::Permute)
      for (size_t i = 0; i < at.size(); ++i) out[static_cast<size_t>(g_.arg_list(id)[i])] = at[i];
    for (size_t i = 0; i < out.size(); ++i)
      if (from[i] == 1) out[i] = 0;
    return out;
  }

  /// Axes that are taken apart or joined together run along all that their group does.
  static Runs reshaped(const Runs& at, std::span<const int64_t> to, std::span<const int64_t> from) {
    Runs out(from.size(), 0);
    size_t i = 0, j = 0;
    while (i < to.size() || j < from.size()) {
      const size_t first = j;
      int64_t a = i < to.size() ? to[i] : 1, b = j < from.size() ? from[j] : 1;
      uint64_t runs = i < to.size() ? at[i] : 0;
      ++i, ++j;
      while (a != b) {
        if (a < b) {
          runs |= at[i];
          a *= to[i++];
        } else {
          b *= from[j++];
        }
      }
      for (size_t k = first; k < std::min(j, from.size()); ++k) out[k] = from[k] == 1 ? 0 : runs;
    }
    return out;
  }

  Draft& draft_;
  const Graph& g_;
  Id reader_;
  std::vector<std::pair<Id, Runs>> found_;
  uint64_t read_ = 0;
};

/// The one kernel that reads the value; kNoId for several, or for what is no kernel of loops.
Id only_reader(const Draft& draft, const Demand& demand, Id node) {
  Id reader = kNoId;
  for (Id c : draft.consumers.of(node)) {
    const Id by = draft.stored[c] != 0 ? c : demand.kernel[c];
    if (reader != kNoId && by != reader) return kNoId;
    reader = by;
  }
  if (reader == kNoId || reader == Demand::kMany) return kNoId;
  const Op op = draft.graph[reader].op;
  const bool loops = op != Op::Copy && op != Op::UserKernel && op != Op::Buffer;
  return loops && draft.devices[reader] == draft.devices[node] ? reader : kNoId;
}

/// What the reductions of a value's kernel are.
struct Reductions {
  bool like_matmul = false;  // fast alone only
  int64_t elements = 0;      // that the longest runs over
};

Reductions reductions_of(const Draft& draft, Id node) {
  Reductions out;
  Reachable reachable;
  const auto is_read = [&](Id id) { return id != node && draft.stored[id] != 0; };
  for (Id id : reachable.from(draft.graph, std::span(&node, 1), is_read)) {
    if (is_read(id) || draft.graph[id].op != Op::Reduce) continue;
    out.like_matmul = out.like_matmul || draft.like_matmul[id] != 0;
    out.elements = std::max(out.elements, draft.counts[draft.graph[id].src[0]]);
  }
  return out;
}

}  // namespace

bool computes_once(Draft& draft, const Demand& demand, Id node) {
  if (draft.requested[node] != 0) return false;
  const Op op = draft.graph[node].op;
  if (!is_alu(op) && op != Op::Reduce && !is_movement(op)) return false;
  const Id reader = only_reader(draft, demand, node);
  if (reader == kNoId) return false;
  const Reductions own = reductions_of(draft, node);
  if (own.elements == 0 || own.like_matmul || reductions_of(draft, reader).like_matmul)
    return false;
  const int64_t rows = draft.counts[node];
  if (own.elements >= kFewRowsWork && rows < 4 * int64_t{draft.options.threads}) return false;
  const uint64_t runs = Reading(draft, reader).of(node);
  if ((runs & kInner) != 0) return false;
  // The outermost loops of the reader, all of them up to one, and nothing else.
  const auto shape = draft.shapes[reader];
  int64_t outer = 1;
  for (size_t i = 0; runs >> i != 0; ++i) outer *= shape[i];
  return outer == rows;
}

}  // namespace plugrad::schedule
