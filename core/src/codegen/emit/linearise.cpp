// Orders the graph's nodes as instructions. Each node goes into the innermost loop that it depends
// on. Stores that need the same loops share them, as do independent reductions over the same
// ranges. A nest is emitted level by level: first the nodes that do not depend on a loop, then the
// loop.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/emit/copy_writer.h"
#include "codegen/emit/emission.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/emit/reductions.h"
#include "codegen/emit/remainder.h"
#include "ir/facts.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

constexpr uint32_t kArrayAlign = 64;  // bytes: a cache line

class Lineariser {
 public:
  Lineariser(Kernel& kernel, Emission& emission) : kernel_(kernel), emission_(emission) {}

  void run() {
    group_reducer_.start(emission_.items, group_reduced_types());
    uint32_t block = kNoInst;
    if (emission_.inside) block = writer_.begin_if(*emission_.inside);
    for (const StoreGroup& group : store_groups(graph_, open_, kernel_.sink)) store_nest(group);
    if (block != kNoInst) writer_.end_if(block);
  }

 private:
  using Nodes = std::vector<Id>;

  uint16_t op_number(Op op) const { return static_cast<uint16_t>(op); }

  // The number of (dtype, lanes) pairs that work-items reduce together.
  size_t group_reduced_types() {
    std::set<std::pair<DType, uint32_t>> types;
    for (Id reduce : nodes_of(graph_, kernel_.sink, Op::Reduce))
      if (is_group_reduce(graph_, reduce)) types.emplace(graph_[reduce].dtype, lanes_[reduce]);
    return types.size();
  }

  // Iotas stand for lanes, not loops.
  bool is_loop(Id range) const {
    if (graph_[range].op != Op::Range) return false;
    const AxisKind kind = range_kind(graph_[range]);
    return kind != AxisKind::Global && !is_work_item_axis(kind);
  }

  // Loops of a set in nest order.
  Nodes loops_of(RangeSet set) {
    Nodes loops;
    for (Id r : open_.members(set))
      if (graph_[r].op == Op::Range && is_loop(r)) loops.push_back(r);
    std::ranges::sort(loops, {}, [&](Id r) { return range_axis(graph_[r]); });
    return loops;
  }

  void store_nest(const StoreGroup& group) {
    uint32_t block = kNoInst;
    const size_t scope = begin_scope();
    if (group.gate != kNoId) {
      emit_level({&group.gate, 1}, 0);
      block = writer_.begin_if(value_[group.gate]);
    }
    emit_store_loops(group);
    if (block != kNoInst) writer_.end_if(block);
    end_scope(scope);
  }

  // Opens the remaining loops of the stores, shared as far as they agree, and emits before each
  // loop the nodes that do not depend on it.
  void emit_store_loops(const StoreGroup& group) {
    std::vector<std::pair<Id, StoreGroup>> by_loop;  // next loop of the stores; kNoId for none
    Nodes roots;
    RangeSet inside = 0;
    for (Id store : group.stores) {
      const Nodes needs = copies_.needs(store);
      roots.insert(roots.end(), needs.begin(), needs.end());
      Nodes loops = loops_of(open_[store]);
      std::erase_if(loops, [&](Id loop) { return value_[loop] != kNoInst; });
      for (Id loop : loops) inside |= open_.bit(loop);
      const Id next = loops.empty() ? kNoId : loops[0];
      auto it = std::ranges::find(by_loop, next, &std::pair<Id, StoreGroup>::first);
      if (it == by_loop.end()) it = by_loop.insert(it, {next, {group.gate, {}}});
      it->second.stores.push_back(store);
    }
    emit_level(roots, inside);
    for (const auto& [loop, part] : by_loop) {
      if (loop == kNoId) {
        emit_stores(part);
        continue;
      }
      const size_t scope = begin_scope();
      emit_level(graph_.sources(loop), 0);
      const uint32_t opened = loops_.open(loop);
      define(loop, opened);
      ++loop_depth_;
      emit_store_loops(part);
      --loop_depth_;
      writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {opened});
      end_scope(scope);
    }
  }

  // Opens the loops in order, emits before each the nodes that do not depend on it, and updates the
  // sums in the innermost.
  void nest(const Nodes& loops, std::span<const Id> roots, const Nodes& reduces) {
    const size_t scope = begin_scope();
    const auto parts = blocks_of_sums(graph_, loops, reduces);
    std::vector<uint32_t> opened;
    uint32_t around = kNoInst;
    RangeSet inside = 0;
    for (Id loop : loops) inside |= open_.bit(loop);
    for (size_t i = 0; i < loops.size(); ++i) {
      emit_level(roots, inside);
      emit_level(graph_.sources(loops[i]), 0);
      start_copies(loops[i], roots);
      const bool is_part = parts && parts->loop == i, is_cut = is_part && parts->step > 0;
      if (is_cut) around = loops_.open_parts(loops[i], parts->step);
      if (is_part) accumulators_.begin_blocks(reduces);
      opened.push_back(is_cut ? loops_.open_part(loops[i], around, parts->step)
                              : loops_.open(loops[i]));
      define(loops[i], opened.back());
      ++loop_depth_;
      inside &= ~open_.bit(loops[i]);
    }
    emit_sums(roots, reduces);
    loop_depth_ -= opened.size();
    for (size_t i = loops.size(); i-- > 0;) {
      writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {opened[i]});
      if (!parts || parts->loop != i) continue;
      accumulators_.end_blocks(reduces);
      if (around != kNoInst) writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {around});
    }
    end_scope(scope);
  }

  // Terms behind a branch come first: a compiler moves other sums behind a later branch but not
  // their loads, so that all operands would be live across it.
  void emit_sums(std::span<const Id> roots, const Nodes& reduces) {
    const auto has_value = [&](Id id) { return value_[id] != kNoInst; };
    std::vector<TermBlock> blocks;
    if (!works_in_groups(*kernel_.caps)) blocks = term_blocks(graph_, lanes_, reduces, has_value);
    const auto waits = [&](Id id) {
      return std::ranges::any_of(blocks, [&](const TermBlock& block) { return block.has(id); });
    };
    Nodes always;
    std::ranges::copy_if(roots, std::back_inserter(always), [&](Id id) { return !waits(id); });
    emit_level(needed_by_blocks_too(graph_, blocks, always, has_value), 0);
    for (const TermBlock& block : blocks) {
      const size_t scope = begin_scope();
      const uint32_t opened = writer_.begin_if(value_[block.condition]);
      for (Id term : block.terms) {
        const Id chosen = graph_[term].src[1];
        emit_level({&chosen, 1}, 0);
        define(term, value_[chosen]);
      }
      for (Id reduce : reduces) update_accumulator(reduce, [&](Id id) { return block.has(id); });
      writer_.end_if(opened);
      end_scope(scope);
    }
    emit_level(always, 0);
    for (Id reduce : update_order(graph_, reduces)) update_accumulator(reduce, std::not_fn(waits));
  }

  // Emits all nodes that the roots need and that depend on none of `not_open`.
  void emit_level(std::span<const Id> roots, RangeSet not_open) {
    emit_arrays(roots, not_open);
    std::map<uint32_t, Nodes> phases;  // by the number of reductions that must precede
    for (Id id : needed(roots)) {
      if (value_[id] != kNoInst || (open_[id] & not_open) != 0 || !ready_here(id)) continue;
      const Id sum = sunk_loads_.sum(id);
      phases[phase(sum == kNoId ? id : sum)].push_back(id);
    }
    for (auto& [number, nodes] : phases) {
      Nodes reduces;
      for (Id id : nodes)
        if (graph_[id].op == Op::Reduce) reduces.push_back(id);
      emit_reduces(reduces);
      for (Id id : nodes)
        if (value_[id] == kNoInst) emit(id);
    }
  }

  // Arrays are filled in the outermost possible loop, wherever they are read.
  void emit_arrays(std::span<const Id> roots, RangeSet not_open) {
    Nodes arrays = unfilled(roots);
    std::erase_if(arrays, [&](Id id) { return (open_[id] & not_open) != 0 || !ready_here(id); });
    const auto behind =
        std::ranges::stable_partition(arrays, [&](Id id) { return copies_.loop(id) == kNoId; });
    const Nodes ahead(behind.begin(), behind.end());
    arrays.erase(behind.begin(), behind.end());
    const auto shared =
        std::ranges::stable_partition(arrays, [&](Id id) { return !is_local(graph_, id); });
    copies_.wait(ahead);
    if (!ahead.empty() || is_read_still(shared)) barrier();
    if (!ahead.empty()) go_on_copying(ahead);
    for (Id id : arrays) emit_filled(id);
    if (!shared.empty()) barrier();
  }

  Nodes unfilled(std::span<const Id> roots) {
    Nodes arrays;
    for (Id id : reachable_.from(graph_, roots, [&](Id node) { return value_[node] != kNoInst; }))
      if (graph_[id].op == Op::Filled && value_[id] == kNoInst) arrays.push_back(id);
    return arrays;
  }
  void barrier() { writer_.barrier(); }
  // Whether other work-items may still read the previous contents of the arrays.
  bool is_read_still(std::span<const Id> shared) const {
    return std::ranges::any_of(
        shared, [&](Id id) { return loop_depth_ > 0 || local_arrays_.contains(id); });
  }

  // Copies the first tiles of pipelined arrays before the loop.
  void start_copies(Id loop, std::span<const Id> roots) {
    Nodes arrays = unfilled(roots);
    std::erase_if(arrays, [&](Id id) { return copies_.loop(id) != loop; });
    if (arrays.empty()) return;
    if (is_read_still(arrays)) barrier();
    const auto [begin, end] = loops_.bounds(loop);
    copies_.start(arrays, begin, end,
                  [&](Id filled, uint32_t iteration) { copy_iteration(filled, iteration); });
  }

  // Starts the next copies; this iteration's tile has arrived.
  void go_on_copying(const Nodes& arrays) {
    const Id loop = copies_.loop(arrays[0]);
    copies_.go_on(arrays, value_[loop], loops_.bounds(loop).second,
                  [&](Id filled, uint32_t iteration) { copy_iteration(filled, iteration); });
    for (Id id : arrays) define(id, declare_array(id, filled_parts(graph_, id).array));
  }

  void copy_iteration(Id filled, uint32_t iteration) {
    uint32_t& value = value_[copies_.loop(filled)];
    const uint32_t now = std::exchange(value, iteration);
    fill(filled, declare_array(filled, filled_parts(graph_, filled).array));
    value = now;
  }

  // The nodes without a value that the roots need; nodes with loops of their own are not entered.
  const Nodes& needed(std::span<const Id> roots) {
    return reachable_.from(graph_, roots,
                           [&](Id id) { return has_loops(id) || value_[id] != kNoInst; });
  }
  bool has_loops(Id id) const { return graph_[id].op == Op::Reduce || graph_[id].op == Op::Filled; }

  // Whether all ranges of the node have values.
  bool ready_here(Id id) {
    for (Id r : open_.members(open_[id]))
      if (graph_[r].op == Op::Range && value_[r] == kNoInst) return false;
    return graph_[id].op != Op::Range;
  }

  // The number of reductions and arrays on the longest path below, including the node: those of one
  // phase are independent.
  uint32_t phase(Id id) {
    while (phase_.size() <= id) {
      const Id at = static_cast<Id>(phase_.size());
      uint32_t deepest = 0;
      for (Id s : graph_.sources(at)) deepest = std::max(deepest, phase_[s]);
      phase_.push_back(deepest + has_loops(at));
    }
    return phase_[id];
  }

  void emit_reduces(const Nodes& reduces) {
    std::vector<std::pair<Nodes, Nodes>> groups;  // loops, reductions
    for (Id reduce : reduces) {
      Nodes loops(reduce_parts(graph_, reduce).ranges.begin(),
                  reduce_parts(graph_, reduce).ranges.end());
      std::ranges::sort(loops, {}, [&](Id r) { return range_axis(graph_[r]); });
      auto it = std::ranges::find(groups, loops, &std::pair<Nodes, Nodes>::first);
      if (it == groups.end()) it = groups.insert(it, {loops, {}});
      it->second.push_back(reduce);
    }
    for (const auto& [loops, members] : groups) {
      if (is_group_reduce(graph_, members[0]))
        reduce_work_items(loops, members);
      else
        reduce_nest(loops, members);
    }
  }

  // Reductions over work-items need no loop: each work-item has a partial value.
  void reduce_work_items(const Nodes& ranges, const Nodes& reduces) {
    Nodes values;
    for (Id reduce : reduces) values.push_back(reduce_parts(graph_, reduce).values[0]);
    emit_level(values, 0);
    std::vector<GroupReducer::Partial> partials;
    for (size_t i = 0; i < reduces.size(); ++i) {
      const Op op = reduce_parts(graph_, reduces[i]).op;
      const Id identity = reduce_identity(graph_, op, graph_[reduces[i]].dtype);
      partials.push_back({op, value_[values[i]], ir_bits(graph_, identity)});
    }
    const std::vector<uint32_t> results = group_reducer_.reduce(partials, ranges, loop_depth_ > 0);
    for (size_t i = 0; i < reduces.size(); ++i) define(reduces[i], results[i]);
  }

  void reduce_nest(const Nodes& loops, const Nodes& reduces) {
    Nodes roots;
    for (Id reduce : reduces) {
      accumulators_.start(reduce);
      for (Id v : reduce_parts(graph_, reduce).values)
        if (is_tile(v))
          roots.insert(roots.end(), graph_.sources(v).begin(), graph_.sources(v).begin() + 2);
        else
          roots.push_back(v);
    }
    nest(loops, roots, reduces);
    for (Id reduce : reduces) define(reduce, accumulators_.load(reduce));
  }

  // Adds the selected terms.
  template <class Meant>
  void update_accumulator(Id reduce, const Meant& is_meant) {
    const ReduceParts parts = reduce_parts(graph_, reduce);
    if (std::ranges::none_of(parts.values, is_meant)) return;
    uint32_t sum = accumulators_.load(reduce);
    for (Id v : parts.values)
      if (is_meant(v))
        sum = is_tile(v) ? add_tile(v, sum)
                         : write_combined(writer_, *kernel_.caps, parts.op, sum, value_[v]);
    accumulators_.store(reduce, sum);
  }

  // A tensor core adds its product to the sum itself.
  bool is_tile(Id id) const {
    if (graph_[id].op != Op::Wmma) return false;
    const Id start = graph_.sources(id)[2];
    return graph_[start].op == Op::Vector && is_const(graph_, graph_.sources(start)[0]);
  }
  uint32_t add_tile(Id id, uint32_t sum) {
    const auto sources = graph_.sources(id);
    return writer_.inst(PGR_OP_WMMA, graph_[id].dtype, lanes_[id],
                        {value_[sources[0]], value_[sources[1]], sum}, graph_[id].arg);
  }

  // Each Filled has an array of its own, declared where it is first filled, unless it replaces the
  // contents of another Filled or is part of the output.
  void emit_filled(Id filled) {
    const Id array = filled_parts(graph_, filled).array;
    const uint32_t pointer =
        graph_[array].op == Op::Array ? array_below(filled, array) : value_[array];
    fill(filled, pointer);
    define(filled, pointer);
  }
  void fill(Id filled, uint32_t pointer) {
    const FilledParts parts = filled_parts(graph_, filled);
    const size_t scope = begin_scope();
    if (graph_[parts.array].op == Op::Array) define(parts.array, pointer);
    emit_store_loops({kNoId, {parts.stores.begin(), parts.stores.end()}});
    end_scope(scope);
  }

  // The array that the Filled shares with its source, or a new one.
  uint32_t array_below(Id filled, Id array) {
    for (Id id : nodes_of(graph_, filled, Op::Filled))
      if (id != filled && filled_parts(graph_, id).array == array) return value_[id];
    return declare_array(filled, array);
  }

  uint32_t declare_array(Id filled, Id id) {
    const DType dtype = graph_[id].dtype;
    const ArrayInfo info = array_info(graph_, id);
    const auto before = local_arrays_.find(filled);
    const auto count = static_cast<uint64_t>(info.elem_count);
    const uint32_t array =
        before != local_arrays_.end()
            ? before->second
            : writer_.array({info.space, static_cast<uint32_t>(dtype), kArrayAlign, 1, count});
    if (info.space == PGR_SPACE_LOCAL) local_arrays_[filled] = array;
    return writer_.inst(PGR_OP_ARRAY, dtype, 1, {}, array);
  }

  // Stores with the same work-item gate share one block.
  void emit_stores(const StoreGroup& group) {
    Id gate = kNoId;
    uint32_t block = kNoInst;
    for (Id store : group.stores) {
      const Id own = work_item_gate(store);
      if (block != kNoInst && own != gate) {
        writer_.end_if(block);
        block = kNoInst;
      }
      if (block == kNoInst && own != kNoId && own != group.gate)
        block = writer_.begin_if(value_[own]);
      gate = own;
      emit_store(store, block == kNoInst ? group.gate : own);
    }
    if (block != kNoInst) writer_.end_if(block);
  }

  // The store's gate if it depends on work-items; kNoId otherwise.
  Id work_item_gate(Id store) {
    const auto sources = graph_.sources(store);
    if (sources.size() < 4 || lanes_[sources[3]] != 1) return kNoId;
    const std::vector<Id> members = open_.members(open_[sources[3]]);
    const bool by_items = std::ranges::any_of(members, [&](Id r) {
      return graph_[r].op == Op::Range && is_work_item_axis(range_kind(graph_[r]));
    });
    return by_items ? sources[3] : kNoId;
  }

  void emit_store(Id store, Id enclosing_gate) {
    if (copies_.write(store, value_)) return;
    std::vector<uint32_t> sources;
    const auto ids = graph_.sources(store);
    for (size_t i = 0; i < ids.size(); ++i)
      if (i != 3 || ids[i] != enclosing_gate) sources.push_back(value_[ids[i]]);
    writer_.inst(PGR_OP_STORE, DType::Void, lanes_[ids[2]], sources);
  }

  void emit(Id id) {
    const Node& n = graph_[id];
    if (n.op == Op::Const) return define(id, writer_.constant(n.dtype, ir_bits(graph_, id)));
    if (n.op == Op::Iota) return emit_iota(id);
    std::vector<uint32_t> sources;
    for (Id s : graph_.sources(n)) {
      ensure(value_[s] != kNoInst, "[codegen] a value is used before it is made");
      sources.push_back(value_[s]);
    }
    if (is_remainder(n))
      return define(id, write_remainder(writer_, *kernel_.caps, n.dtype, sources[0], sources[1]));
    const uint64_t arg = n.op == Op::Lane                         ? n.arg & 0xffff
                         : n.op == Op::Load || n.op == Op::Vector ? 0
                                                                  : n.arg;
    define(id, writer_.inst(op_number(n.op), n.dtype, lanes_[id], sources, arg));
  }

  void emit_iota(Id id) {
    std::vector<uint32_t> lanes;
    for (uint64_t i = 0; i < graph_[id].arg; ++i)
      lanes.push_back(writer_.constant(graph_[id].dtype, i));
    define(id, writer_.inst(PGR_OP_VECTOR, graph_[id].dtype, static_cast<uint32_t>(lanes.size()),
                            lanes));
  }

  // Values defined inside a block are dropped at its end.
  void define(Id id, uint32_t number) {
    value_[id] = number;
    defined_.push_back(id);
  }
  size_t begin_scope() const { return defined_.size(); }
  void end_scope(size_t scope) {
    for (; defined_.size() > scope; defined_.pop_back()) value_[defined_.back()] = kNoInst;
  }

  Kernel& kernel_;
  Emission& emission_;
  Graph& graph_ = kernel_.graph;
  IrWriter& writer_ = emission_.writer;
  OpenRanges& open_ = *emission_.open;
  Lanes lanes_{graph_};
  const SunkLoads& sunk_loads_ = *emission_.sunk_loads;
  Accumulators accumulators_{graph_, writer_, lanes_, *kernel_.caps};
  GroupReducer group_reducer_{writer_, *kernel_.caps};
  CopyWriter copies_{graph_, *kernel_.caps, open_, lanes_, writer_};
  size_t loop_depth_ = 0;
  std::map<Id, uint32_t> local_arrays_;  // by Filled
  Reachable reachable_;
  std::vector<uint32_t>& value_ = emission_.value;
  std::vector<uint32_t> phase_;  // by node
  const LoopWriter loops_{graph_, writer_, value_};
  Nodes defined_;
};

}  // namespace

void linearise(Kernel& kernel, Emission& emission) {
  Lineariser(kernel, emission).run();
}

}  // namespace plugrad::codegen
