#include "run_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/facts.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "oracle/alu.h"

namespace plugrad::test {
namespace {

using Memory = std::vector<std::vector<uint64_t>>;

class KernelRun {
 public:
  KernelRun(const KernelAst& ast, const schedule::Step& step, Memory& memory)
      : g_(ast.graph),
        step_(step),
        memory_(memory),
        value_(g_.size()),
        known_(g_.size(), 0),
        changed_(g_.size(), 0),
        range_(g_.size()),
        open_(g_.size()) {
    for (Id id = 0; id < g_.size(); ++id) {
      if (g_[id].op == Op::Range) open_[id] = {id};
      for (Id s : g_.sources(id)) open_[id].insert(open_[s].begin(), open_[s].end());
      if (g_[id].op != Op::Reduce) continue;
      for (Id s : g_.sources(id).subspan(1)) open_[id].erase(s);
    }
  }

  void run(Id sink) {
    for (Id store : g_.sources(sink)) {
      loops_.clear();
      Reachable reachable;
      for (Id id : reachable.from(g_, std::vector<Id>{store}))
        if (g_[id].op == Op::Range && range_kind(g_[id]) == AxisKind::Loop) loops_.push_back(id);
      written_.assign(memory_[buffer(g_.sources(store)[0])].size(), 0);
      outer(store, 0);
      for (int times : written_) EXPECT_EQ(times, 1);
    }
  }

 private:
  uint32_t buffer(Id param) const { return step_.buffers.at(param_info(g_, param).slot); }

  void outer(Id store, size_t depth) {
    if (depth < loops_.size()) {
      const auto [begin, end] = bounds(loops_[depth]);
      for (int64_t i = begin; i < end; ++i) {
        set(loops_[depth], i);
        outer(store, depth + 1);
      }
      return;
    }
    const auto src = g_.sources(store);
    const int64_t at = integer(src[1]);
    auto& to = memory_[buffer(src[0])];
    ASSERT_GE(at, 0);
    ASSERT_LT(static_cast<size_t>(at), to.size());
    ++written_[static_cast<size_t>(at)];
    to[static_cast<size_t>(at)] = eval(src[2]);
  }

  std::pair<int64_t, int64_t> bounds(Id range) {
    if (!is_bounded(g_[range])) return {0, range_size(g_, range)};
    return {integer(g_.sources(range)[1]), integer(g_.sources(range)[2])};
  }

  int64_t integer(Id id) { return static_cast<int64_t>(eval(id)); }

  void set(Id range, int64_t value) {
    range_[range] = value;
    changed_[range] = ++now_;
  }

  /// A cached value is valid until a range that it depends on changes.
  uint64_t eval(Id id) {
    const auto holds = [&](Id range) { return changed_[range] <= known_[id]; };
    if (known_[id] != 0 && std::ranges::all_of(open_[id], holds)) return value_[id];
    const uint64_t v = compute(id);
    known_[id] = now_;
    return value_[id] = v;
  }

  uint64_t compute(Id id) {
    const Node& n = g_[id];
    const auto src = g_.sources(id);
    if (n.op == Op::Const) return n.arg;
    if (n.op == Op::Scalar) return step_.scalars.at(scalar_number(g_, id));
    if (n.op == Op::Range) return static_cast<uint64_t>(range_[id]);
    if (n.op == Op::Reduce) return reduce(id, 1);
    if (n.op == Op::Load) return load(src);
    if (n.op == Op::Keep) return eval(src[0]);
    if (n.op == Op::Cast) return oracle::cast_value(eval(src[0]), g_[src[0]].dtype, n.dtype);
    if (n.op == Op::Bitcast) return oracle::bitcast_value(eval(src[0]), g_[src[0]].dtype, n.dtype);
    std::vector<uint64_t> args;
    for (Id s : src) args.push_back(eval(s));
    return oracle::apply(n.op, n.dtype, g_[src[n.op == Op::Where ? 1 : 0]].dtype, args);
  }

  uint64_t load(std::span<const Id> src) {
    if (src.size() == 4 && eval(src[2]) == 0) return eval(src[3]);
    const auto& from = memory_[buffer(src[0])];
    const int64_t at = integer(src[1]);
    EXPECT_TRUE(at >= 0 && static_cast<size_t>(at) < from.size()) << at << " of " << from.size();
    return from.at(static_cast<size_t>(at));
  }

  uint64_t reduce(Id id, size_t depth) {
    const auto src = g_.sources(id);
    if (depth == src.size()) return eval(src[0]);
    const Op op = static_cast<Op>(g_.arg_list(id)[0]);
    uint64_t total = 0;
    const auto [begin, end] = bounds(src[depth]);
    for (int64_t i = begin; i < end; ++i) {
      set(src[depth], i);
      const uint64_t v = reduce(id, depth + 1);
      const std::vector<uint64_t> both = {total, v};
      total = i == begin ? v : oracle::apply(op, g_[id].dtype, g_[id].dtype, both);
    }
    return total;
  }

  const Graph& g_;
  const schedule::Step& step_;
  Memory& memory_;
  std::vector<uint64_t> value_;
  std::vector<uint64_t> known_, changed_;  // when
  std::vector<int64_t> range_;
  std::vector<std::set<Id>> open_;
  std::vector<Id> loops_;
  std::vector<int> written_;
  uint64_t now_ = 1;
};

}  // namespace

std::vector<std::vector<uint64_t>> run_plan(const schedule::Plan& plan,
                                            const std::vector<oracle::Array>& inputs) {
  Memory memory(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto& b = plan.buffers[i];
    memory[i].resize(static_cast<size_t>(b.elem_count));
    if (b.kind == schedule::PlannedBuffer::Kind::Input) memory[i] = inputs.at(b.number).bits;
    if (b.kind == schedule::PlannedBuffer::Kind::Constant) memory[i] = plan.constants.at(b.number);
  }
  for (const schedule::Step& step : plan.steps) {
    if (step.kind == schedule::Step::Kind::Copy) {
      memory[step.buffers[0]] = memory[step.buffers[1]];
      continue;
    }
    const KernelAst& ast = *plan.asts[step.ast];
    for (uint32_t b : step.buffers) EXPECT_EQ(plan.buffers[b].device, step.device);
    KernelRun(ast, step, memory).run(ast.sink);
  }
  std::vector<std::vector<uint64_t>> roots;
  for (uint32_t b : plan.root_buffers) roots.push_back(memory[b]);
  return roots;
}

}  // namespace plugrad::test
