// Fuses reductions of rows into the kernel that reads the row again, while the row is in the cache:
// maximum and sum of softmax, mean and variance of layernorm. If a matmul reads rows that another
// matmul makes, as in attention, one kernel takes the rows in blocks: the scores of a block stay in
// local memory and are never stored.
#include <algorithm>
#include <functional>
#include <set>

#include "schedule/fusion/cost.h"

namespace plugrad::schedule {
namespace {

constexpr uint64_t kInner = uint64_t{1} << 63;  // index along loops of a Reduce
constexpr size_t kMostVisits = 400;
constexpr int64_t kRowsOfBlock = 16;     // rows; the least count for each thread
constexpr int64_t kFewRowsWork = 32768;  // elements; few rows of more elements are better split

/// By axis of a node: bits of the axes of the reader's output that its index depends on. A last
/// entry: those on which it depends whether the value is read at all, because of padding.
using Runs = std::vector<uint64_t>;

/// The access patterns of the kernel of `reader` for a value that it would compute itself.
class AccessPatterns {
 public:
  AccessPatterns(SchedulerState& state, Id reader)
      : state_(state), g_(state.graph), reader_(reader) {}

  /// The pattern of each read of `value`; none where unknown.
  std::vector<Runs> of(Id value) {
    const auto shape = shape_of(reader_);
    if (shape.size() > 60) return {};
    Runs runs;
    for (size_t i = 0; i < shape.size(); ++i) runs.push_back(shape[i] == 1 ? 0 : uint64_t{1} << i);
    runs.push_back(0);
    visit(reader_, std::move(runs));
    std::vector<Runs> patterns;
    for (size_t next = 0; next < found_.size(); ++next) {
      if (next == kMostVisits) return {};
      ++state_.visits;
      const auto [id, at] = found_[next];
      if (id == value)
        patterns.push_back(at);
      else if (id == reader_ || state_.stored[id] == 0)
        enter(id, at, value);
    }
    return patterns;
  }

 private:
  std::span<const int64_t> shape_of(Id id) const { return state_.shapes[id]; }

  void visit(Id id, Runs runs) {
    std::pair<Id, Runs> entry(id, std::move(runs));
    if (known_.insert(entry).second) found_.push_back(std::move(entry));
  }

  void enter(Id id, const Runs& at, Id value) {
    for (Id s : g_.sources(id)) {
      if (s < value) continue;  // sources have smaller ids: it cannot depend on `value`
      if (shape_of(s).empty())
        visit(s, {at.back()});
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
      for (size_t i = 0; i < from.size(); ++i) out[static_cast<size_t>(g_.arg_list(id)[i])] = at[i];
    if (g_[id].op == Op::Pad)
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] != shape_of(id)[i]) out.back() |= at[i];
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] == 1) out[i] = 0;
    return out;
  }

  /// Axes that a reshape splits or merges depend on all axes of their group.
  static Runs reshaped(const Runs& at, std::span<const int64_t> to, std::span<const int64_t> from) {
    Runs out(from.size() + 1, 0);
    out.back() = at.back();
    each_reshape_group(to, from, [&](size_t i, size_t i_end, size_t j, size_t j_end) {
      uint64_t runs = 0;
      for (; i < i_end; ++i) runs |= at[i];
      for (; j < j_end; ++j) out[j] = from[j] == 1 ? 0 : runs;
    });
    return out;
  }

  SchedulerState& state_;
  const Graph& g_;
  Id reader_;
  std::vector<std::pair<Id, Runs>> found_;
  std::set<std::pair<Id, Runs>> known_;
};

/// Elements of a row of `value`, if its reads depend on the reader's outermost loops, on all of
/// them up to one, and otherwise on loops of Reduces; 0 if not.
int64_t row_length(SchedulerState& state, Id reader, Id value) {
  const auto shape = state.shapes[reader], own = state.shapes[value];
  const std::vector<Runs> patterns = AccessPatterns(state, reader).of(value);
  if (patterns.empty()) return 0;
  int64_t rows = 1, length = 1, outer = 1;
  size_t inner_axes = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const auto is_inner = [&](const Runs& at) { return at[i] == kInner; };
    const bool inner = std::ranges::any_of(patterns, is_inner);
    for (const Runs& at : patterns)
      if ((at[i] & kInner) != 0 ? at[i] != kInner : inner) return 0;
    (inner ? length : rows) *= own[i];
    if (inner && own[i] > 1) ++inner_axes;
  }
  if (inner_axes > 1) return 0;  // codegen buffers rows that one loop covers
  uint64_t runs = 0, gates = 0;
  for (const Runs& at : patterns) {
    for (size_t i = 0; i < own.size(); ++i) runs |= at[i] & ~kInner;
    gates |= at.back();
  }
  if ((gates & ~runs) != 0) return 0;  // every inner loop would compute it behind a condition
  for (size_t i = 0; runs >> i != 0; ++i) outer *= shape[i];
  return outer == rows ? length : 0;
}

/// The one kernel that reads the value; kNoId if there are several or it has no loops.
Id only_reader(const SchedulerState& state, const Demand& demand, Id node) {
  Id reader = kNoId;
  for (Id c : state.consumers.of(node)) {
    ++state.visits;
    const Id by = state.stored[c] != 0 ? c : demand.kernel[c];
    if (reader != kNoId && by != reader) return kNoId;
    reader = by;
  }
  if (reader == kNoId || reader == Demand::kMany) return kNoId;
  const Op op = state.graph[reader].op;
  const bool loops =
      op != Op::Copy && op != Op::Collective && op != Op::UserKernel && op != Op::Buffer;
  return loops && state.devices[reader] == state.devices[node] ? reader : kNoId;
}

/// The reductions in the kernel of a value.
struct Reductions {
  bool like_matmul = false;  // only fast alone
  int64_t elements = 0;      // of the longest one
};

Reductions reductions_of(const SchedulerState& state, Id node) {
  Reductions out;
  Reachable& reachable = state.reachable;
  const auto is_read = [&](Id id) { return id != node && state.stored[id] != 0; };
  for (Id id : reachable.from(state.graph, std::span(&node, 1), is_read)) {
    ++state.visits;
    if (is_read(id) || state.graph[id].op != Op::Reduce) continue;
    out.like_matmul = out.like_matmul || state.like_matmul[id] != 0;
    out.elements = std::max(out.elements, state.counts[state.graph[id].src[0]]);
  }
  return out;
}

/// Whether the kernel of `reader` has a reduction like a matmul. Nodes that kernels take over
/// during this stage add none.
bool has_product(const SchedulerState& state, Demand& demand, Id reader) {
  std::optional<bool>& known = demand.has_product[reader];
  if (!known) known = reductions_of(state, reader).like_matmul;
  return *known;
}

/// A tentative blocked-rows kernel: the value and the stored values below it that only this kernel
/// reads become rows. The destructor undoes it unless keep() was called.
class RowBlock {
 public:
  RowBlock(SchedulerState& state, Demand& demand, Id reader)
      : state_(state), demand_(demand), reader_(reader) {}
  RowBlock(const RowBlock&) = delete;
  RowBlock& operator=(const RowBlock&) = delete;
  ~RowBlock() {
    if (kept_) return;
    for (Id id : taken_) {
      set_stored(id, true);
      demand_.update(state_, id);
    }
  }

  void take_all(Id node) {
    take(node);
    std::set<Id, std::greater<>> waiting;  // consumers first
    std::set<Id> operands;                 // of products: they would be computed for each term
    const auto add_sources = [&](Id id) {
      const auto sources = state_.graph.sources(id);
      waiting.insert(sources.begin(), sources.end());
      if (state_.like_matmul[id] != 0 || operands.contains(id))
        operands.insert(sources.begin(), sources.end());
    };
    for (add_sources(node); !waiting.empty();) {
      const Id id = *waiting.begin();
      waiting.erase(waiting.begin());
      demand_.update(state_, id);
      if (state_.stored[id] != 0) {
        if (operands.contains(id) || !may_take(id)) continue;
        take(id);
      }
      add_sources(id);
    }
  }

  /// Pays for matrix products with far more elements than their operands and than the reader's
  /// other operands, and with short rows. Other products are faster alone.
  bool pays(Id node) const {
    // A kernel of its own computes only the part within a variable size.
    const auto is_limited = [&](Id id) { return state_.limits.contains(id); };
    if (is_limited(reader_) || std::ranges::any_of(taken_, is_limited)) return false;
    if (longest_ <= 1 || row_bytes_ * kFewestRows > state_.options.scratch_bytes) return false;
    const std::vector<Id> products = products_below(node);
    const int64_t beside = elements_read(reader_);
    return !products.empty() && std::ranges::all_of(products, [&](Id product) {
      // Windows would be recomputed for each index that they cover.
      const bool is_matmul = state_.graph.arg_list(product).size() == 2;  // over one axis
      return is_matmul &&
             state_.counts[product] >= kMuchMore * std::max(elements_read(product), beside);
    });
  }
  void keep() { kept_ = true; }

 private:
  static constexpr uint64_t kFewestRows = 4;  // rows that a block must hold to pay
  static constexpr int64_t kMuchMore = 4;

  bool may_take(Id id) {
    const Op op = state_.graph[id].op;
    if (state_.requested[id] != 0 || (!is_alu(op) && op != Op::Reduce && !is_movement(op)))
      return false;
    return only_reader(state_, demand_, id) == reader_ && row_length(state_, reader_, id) != 0;
  }

  void take(Id id) {
    taken_.push_back(id);
    set_stored(id, false);
    const auto length = static_cast<uint64_t>(row_length(state_, reader_, id));
    longest_ = std::max(longest_, length);
    row_bytes_ = std::max(row_bytes_, length * size_of(strong(state_.graph[id].dtype)));
    demand_.update(state_, id);
  }

  void set_stored(Id id, bool stored) {
    state_.stored[id] = stored;
    state_.of_rows[id] = !stored;
  }

  std::vector<Id> products_below(Id node) const {
    std::vector<Id> found;
    Reachable& reachable = state_.reachable;
    const auto is_read = [&](Id id) { return state_.stored[id] != 0; };
    for (Id id : reachable.from(state_.graph, std::span(&node, 1), is_read)) {
      ++state_.visits;
      if (!is_read(id) && state_.graph[id].op == Op::Reduce && state_.like_matmul[id] != 0)
        found.push_back(id);
    }
    return found;
  }

  /// Without the elements that the rows are computed from.
  int64_t elements_read(Id node) const {
    int64_t elements = 0;
    Reachable& reachable = state_.reachable;
    const auto is_source = [&](Id id) {
      return id != node &&
             (state_.stored[id] != 0 || std::ranges::find(taken_, id) != taken_.end());
    };
    for (Id id : reachable.from(state_.graph, std::span(&node, 1), is_source)) {
      ++state_.visits;
      if (id != node && state_.stored[id] != 0) elements += state_.counts[id];
    }
    return elements;
  }

  SchedulerState& state_;
  Demand& demand_;
  Id reader_;
  std::vector<Id> taken_;
  uint64_t longest_ = 0, row_bytes_ = 0;  // of a row
  bool kept_ = false;
};

}  // namespace

bool computes_once(SchedulerState& state, Demand& demand, Id node) {
  if (state.requested[node] != 0) return false;
  const Op op = state.graph[node].op;
  if (!is_alu(op) && op != Op::Reduce && !is_movement(op)) return false;
  const Id reader = only_reader(state, demand, node);
  if (reader == kNoId) return false;
  const Reductions own = reductions_of(state, node);
  if (own.elements == 0 || own.like_matmul || has_product(state, demand, reader)) return false;
  const int64_t rows = state.counts[node];
  if (own.elements >= kFewRowsWork && rows < 4 * int64_t{state.options.threads}) return false;
  return row_length(state, reader, node) == 1;
}

bool computes_in_blocks(SchedulerState& state, Demand& demand, Id node) {
  if (state.options.scratch_bytes == 0 || state.requested[node] != 0) return false;
  if (!is_alu(state.graph[node].op) && state.graph[node].op != Op::Reduce) return false;
  const Id reader = only_reader(state, demand, node);
  if (reader == kNoId || !has_product(state, demand, reader)) return false;
  const int64_t length = row_length(state, reader, node);
  if (length == 0) return false;
  // Enough rows for the threads, and columns that read them again.
  const int64_t rows = state.counts[node] / length;
  if (rows < kRowsOfBlock * int64_t{state.options.threads} || rows == state.counts[reader])
    return false;
  RowBlock block(state, demand, reader);
  block.take_all(node);
  if (!block.pays(node)) return false;
  block.keep();
  state.in_blocks[reader] = 1;
  return true;
}

}  // namespace plugrad::schedule
