// Removes reduce loops whose terms differ from the identity at one index.
// Closed forms (arange, one-hot) and single elements (embedding, gather) lose the loop:
//   before   reduce add (where (%t == %r), %w[%r], 0), %r          after   %w[%t]
// Indexed reductions (scatter) store each term at its index. A cut, no local rewrite:
//   before   store %out[%r*64 + %b], (reduce add (where (%at == %r), %v, 0), %i)
//   after    store %out[%z*64 + %b], 0                                   %z: as %r, block
//            store %out[%at*64 + %b], (load %out[%at*64 + %b]) + %v, gate 0 <= %at < rows
//                                                                        %i: block
// The loops over %z and %i are serial and no axes of the schedule; both stores share all other
// loops. One work-item clears an element and adds its terms in the order of %i, so the result does
// not depend on the schedule.
#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/passes/passes.h"
#include "codegen/transforms/transforms.h"
#include "symbolic/reduction.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Ranges of size 1 are replaced by 0.
void drop_single_ranges(Kernel& kernel) {
  std::vector<RangeReplacement> single;
  for (Id axis : kernel.axes)
    if (range_size(kernel.graph, axis) == 1 && !is_bounded(kernel.graph[axis]))
      single.push_back({axis, kernel.graph.index(0), {}});
  kernel.sink = replace_ranges(kernel.graph, kernel.sink, single);
}

// Rows for each term from which threads share the rows, i.e. if clearing dominates: each thread
// walks all terms, and a mispredicted branch costs more than a store. A million terms into 1,000
// rows take 1.2 ms on one thread and took 8 ms shared by two; the factor itself is chosen
// (docs/decisions/indexed-sums-are-marked.md).
constexpr int64_t kRowsOfTerm = 4;
constexpr int64_t kRowsOfShare = 256;  // rows of a thread, at least; chosen, not measured

/// The parts of an indexed reduction.
struct Indexed {
  Id row;  // output range that the index is compared with
  Id index, gate, term;
  std::vector<Id> walked, summed;  // ranges that the index depends on, and the others
};

class IndexedStores {
 public:
  explicit IndexedStores(Kernel& kernel)
      : kernel_(kernel), g_(kernel.graph), algebra_(g_, kernel.rules()) {}

  void run() {
    const Id store = g_.sources(kernel_.sink)[0];
    const auto parts = split_into_parts(store);
    if (!parts) return;
    kernel_.sink = g_.add(Op::Sink, DType::Void, stores_of(store, *parts));
    replace(kernel_, {});
    put_in_order();
  }

 private:
  std::optional<Indexed> split_into_parts(Id store) {
    const Id reduce = g_.sources(store)[2];
    const ReduceParts parts = reduce_parts(g_, reduce);
    Id choice = parts.values[0];
    std::vector<DType> casts = {g_[reduce].dtype};
    for (; g_[choice].op == Op::Cast; choice = g_[choice].src[0]) casts.push_back(g_[choice].dtype);
    const bool counts = g_[choice].dtype == DType::Bool;
    if (!counts && g_[choice].op != Op::Where) return std::nullopt;
    const Id condition = counts ? choice : g_[choice].src[0];
    const std::vector<Id> ranges = to_vector(parts.ranges);
    for (Id row : kernel_.axes) {
      if (range_kind(g_[row]) != AxisKind::Loop || is_bounded(g_[row])) continue;
      RangeCondition found;
      if (!condition_on(g_, condition, false, row, algebra_, found) || !found.equal) continue;
      Indexed out{row, *found.equal, kNoId, kNoId, {}, {}};
      for (Id r : ranges)
        (algebra_.ranges.depends(out.index, r) ? out.walked : out.summed).push_back(r);
      if (out.walked.empty()) continue;
      out.gate = inside(out);
      out.term = counts ? g_.constant(DType::I32, int64_t{1}) : moved(g_[choice].src[1], out);
      for (size_t i = casts.size(); i-- > 0;) out.term = g_.cast(out.term, casts[i]);
      const Id zero = reduce_identity(g_, parts.op, g_[reduce].dtype);
      for (Id clause : clauses(found, out)) out.term = g_.where(clause, out.term, zero);
      if (!out.summed.empty()) out.term = make_reduce(g_, parts.op, {&out.term, 1}, out.summed);
      return out;
    }
    return std::nullopt;
  }

  Id moved(Id id, const Indexed& parts) {
    return algebra_.ranges.depends(id, parts.row)
               ? at_index(g_, id, parts.row, parts.index, inside(parts), algebra_)
               : id;
  }
  Id both(Id a, Id b) { return g_.binary(Op::And, a, b); }

  Id inside(const Indexed& parts) {
    return both(g_.binary(Op::CmpLt, g_.index(-1), parts.index),
                g_.binary(Op::CmpLt, parts.index, g_.index(range_size(g_, parts.row))));
  }

  /// Further conditions of the term. A term that fails one is the identity.
  std::vector<Id> clauses(const RangeCondition& found, const Indexed& parts) {
    std::vector<Id> all;
    for (Id lower : found.lowers)
      all.push_back(g_.binary(Op::CmpLt, lower, g_.binary(Op::Add, parts.index, g_.index(1))));
    for (Id upper : found.uppers) all.push_back(g_.binary(Op::CmpLt, parts.index, upper));
    for (Id clause : found.other) all.push_back(moved(clause, parts));
    return all;
  }

  /// The number of parts that the rows are split into.
  int64_t shares(const Indexed& parts) const {
    int64_t others = 1;
    for (Id axis : kernel_.axes)
      if (range_kind(g_[axis]) == AxisKind::Loop &&
          range_axis(g_[axis]) < range_axis(g_[parts.row]))
        others *= range_size(g_, axis);
    int64_t terms = 1;
    for (Id range : parts.walked) terms *= range_size(g_, range);
    const int64_t rows = range_size(g_, parts.row);
    if (terms > rows / kRowsOfTerm) return 1;
    const auto threads = static_cast<int64_t>(kernel_.caps->threads);
    return std::clamp<int64_t>(threads / others, 1, std::max<int64_t>(1, rows / kRowsOfShare));
  }

  Id serial(int64_t size) {
    serial_.push_back(next_axis_);
    return make_range(g_, size, next_axis_++, AxisKind::Block);
  }

  std::vector<Id> stores_of(Id store, const Indexed& parts) {
    const auto sources = g_.sources(store);
    const Id memory = readable(g_, sources[0]), index = sources[1], reduce = sources[2];
    const Op op = reduce_parts(g_, reduce).op;
    const DType dtype = g_[reduce].dtype;
    const Id zero = reduce_identity(g_, op, dtype);
    const int64_t rows = range_size(g_, parts.row), count = shares(parts),
                  each = (rows + count - 1) / count;
    rows_axis_ = range_axis(g_[parts.row]);
    Id place = serial(each), gate = parts.gate;
    std::vector<Id> clear = {memory, kNoId, zero};
    if (count > 1) {
      const Id share = make_range(g_, count, next_axis_++, AxisKind::Global);
      const Id low = g_.binary(Op::Mul, share, g_.index(each)),
               high = g_.binary(Op::Add, low, g_.index(each));
      place = g_.binary(Op::Add, low, place);
      if (rows % count != 0) clear.push_back(g_.binary(Op::CmpLt, place, g_.index(rows)));
      const Id next = g_.binary(Op::Add, parts.index, g_.index(1));
      gate = both(gate,
                  both(g_.binary(Op::CmpLt, low, next), g_.binary(Op::CmpLt, parts.index, high)));
    }
    clear[1] = at(g_, index, parts.row, place);
    std::vector<std::pair<Id, Id>> blocks;
    for (Id range : parts.walked) blocks.emplace_back(range, serial(range_size(g_, range)));
    const Id to = substitute(g_, at(g_, index, parts.row, parts.index), blocks),
             condition = substitute(g_, gate, blocks), term = substitute(g_, parts.term, blocks);
    const Id before = g_.add(Op::Load, dtype, {memory, to, condition, zero});
    const Id sum = g_.add(op, dtype, {before, term});
    return {g_.add(Op::Store, DType::Void, clear),
            g_.add(Op::Store, DType::Void, {memory, to, sum, condition})};
  }

  /// Split rows outermost; the serial loops take the place of the rows.
  void put_in_order() {
    const auto rank = [&](Id r) {
      const AxisKind kind = range_kind(g_[r]);
      const uint32_t axis = range_axis(g_[r]);
      if (kind == AxisKind::Global) return std::tuple(0, axis, axis);
      const bool is_serial = std::ranges::find(serial_, axis) != serial_.end();
      return std::tuple(is_output_axis(kind) ? 1 : 2, is_serial ? rows_axis_ : axis, axis);
    };
    std::vector<Id> order = kernel_.axes;
    std::ranges::sort(order, {}, rank);
    renumber(kernel_, order);
  }

  Kernel& kernel_;
  Graph& g_;
  Algebra algebra_;
  uint32_t next_axis_ = new_axis(kernel_), rows_axis_ = 0;
  std::vector<uint32_t> serial_;  // axis numbers
};

}  // namespace

void eliminate_reductions(Kernel& kernel) {
  drop_single_ranges(kernel);
  kernel.sink = Simplifier(kernel.graph, kernel.rules())(kernel.sink);
  kernel.sink = collapse_reduces(kernel.graph, kernel.sink, kernel.rules());
  compact(kernel);
}

void index_stores(Kernel& kernel) {
  const Graph& g = kernel.graph;
  const auto stores = g.sources(kernel.sink);
  if (stores.size() == 1 && is_indexed(g, g.sources(stores[0])[2])) IndexedStores(kernel).run();
}

}  // namespace plugrad::codegen
