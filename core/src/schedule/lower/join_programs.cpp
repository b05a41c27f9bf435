// Makes one program of kernels that differ only in constant offsets of their loads, as those of an
// unrolled loop over slices of one tensor do. The program takes the offsets at launch.
//   before   load p1 (%4*16 + %5 + 32)   load p1 (%4*16 + %5 + 48)   …
//   after    load p1 (%4*16 + %5 + scalar 0 * 16 + 32)               with 0, 1, … at launch
// Kernels that read the same parameters in another order become one program, too. Offsets become
// scalars only where at least kLeastKernels kernels become one: other kernels keep their constants.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "ir/kernel_ast.h"
#include "schedule/lower/read_order.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

// An offset that is passed at launch costs an addition for each load; a program costs 25 ms of
// compilation (LSTMCell with Adam over 128 steps, on two cores).
constexpr size_t kLeastKernels = 4;
constexpr size_t kMostScalars = 4;

using AstPtr = std::shared_ptr<KernelAst>;

/// Makes the index of load number `load` in the graph, from its index without the offset (kNoId for
/// none).
using NewIndex = std::function<Id(Graph& graph, size_t load, Id base)>;

/// A copy of the kernel with other load indices. The parameters `params` are renumbered in this
/// order.
AstPtr with_indices(const KernelAst& ast, std::span<const Id> loads, std::span<const Id> params,
                    const NewIndex& index_of) {
  const Graph& from = ast.graph;
  std::vector<uint32_t> number(from.size(), UINT32_MAX);  // of loads and parameters
  for (uint32_t i = 0; i < loads.size(); ++i) number[loads[i]] = i;
  for (uint32_t i = 0; i < params.size(); ++i) number[params[i]] = ast.param_count + i;
  return rebuilt(ast, [&](Graph& g, Id id, std::span<Id> sources, std::span<const Id> new_ids) {
    const Node& node = from[id];
    if (node.op == Op::Param && number[id] != UINT32_MAX) {
      ParamInfo info = param_info(from, id);
      info.slot = number[id];
      return make_param(g, node.dtype, info);
    }
    if (node.op == Op::Load) {
      const Id base = split_index(from, from.sources(node)[1]).base;
      sources[1] = index_of(g, number[id], base == kNoId ? kNoId : new_ids[base]);
    }
    return copied_node(g, from, id, sources);
  });
}

Id sum_of(Graph& g, Id base, Id more) {
  return base == kNoId ? more : g.binary(Op::Add, base, more);
}

/// An offset that differs among kernels: least + factor * scalar, where the scalar counts from 0.
struct Lifted {
  int64_t least, factor;
  size_t scalar;
};

struct Member {
  AstPtr ast;
  ReadOrder order;
  std::vector<size_t> steps;          // that run it
  std::vector<int64_t> offsets = {};  // of its loads
};

/// Kernels that differ only in offsets and parameter numbers.
using Alike = std::vector<Member>;

class Lifter {
 public:
  Lifter(const Alike& alike, uint32_t max_params) : alike_(alike), max_params_(max_params) {}

  /// Null if it would need too many scalars.
  AstPtr merged() {
    const Member& first = alike_[0];
    for (size_t load = 0; load < first.offsets.size(); ++load)
      if (!lift(load)) return nullptr;
    if (first.ast->param_count + scalars_.size() > max_params_) return nullptr;
    return with_indices(*first.ast, first.order.loads, {},
                        [&](Graph& g, size_t load, Id base) { return index(g, load, base); });
  }

  std::vector<uint64_t> scalars(size_t member) const {
    std::vector<uint64_t> out;
    for (const auto& values : scalars_) out.push_back(values[member]);
    return out;
  }

 private:
  bool lift(size_t load) {
    std::vector<int64_t> offsets;
    for (const Member& member : alike_) offsets.push_back(member.offsets[load]);
    const auto [least, most] = std::ranges::minmax(offsets);
    lifted_.push_back({least, 0, 0});
    if (least == most) return true;
    int64_t factor = 0;
    for (int64_t offset : offsets) factor = std::gcd(factor, offset - least);
    std::vector<uint64_t> up, down;
    for (int64_t offset : offsets) {
      up.push_back(static_cast<uint64_t>((offset - least) / factor));
      down.push_back(static_cast<uint64_t>((most - offset) / factor));
    }
    const auto known = std::ranges::find_if(
        scalars_, [&](const auto& values) { return values == up || values == down; });
    const auto scalar = static_cast<size_t>(known - scalars_.begin());
    const bool is_down = known != scalars_.end() && *known == down;
    lifted_.back() = is_down ? Lifted{most, -factor, scalar} : Lifted{least, factor, scalar};
    if (known == scalars_.end()) scalars_.push_back(std::move(up));
    return scalars_.size() <= kMostScalars &&
           std::ranges::max(scalars_[scalar]) <= uint64_t{INT32_MAX};
  }

  Id index(Graph& g, size_t load, Id base) const {
    const Lifted& own = lifted_[load];
    if (own.factor != 0) {
      const auto most = static_cast<int64_t>(std::ranges::max(scalars_[own.scalar]));
      const Id scalar = make_scalar(g, static_cast<uint32_t>(own.scalar), most);
      base = sum_of(g, base,
                    own.factor == 1 ? scalar : g.binary(Op::Mul, scalar, g.index(own.factor)));
    }
    return own.least == 0 && base != kNoId ? base : sum_of(g, base, g.index(own.least));
  }

  const Alike& alike_;
  const uint32_t max_params_;
  std::vector<Lifted> lifted_;                  // by load
  std::vector<std::vector<uint64_t>> scalars_;  // by number, then by kernel
};

uint32_t param_slot(const Member& member, size_t param) {
  return param_info(member.ast->graph, member.order.params[param]).slot;
}

/// Equal for kernels whose i-th load and i-th parameter correspond, whatever they read. Their
/// parameters have the same numbers in another order.
NodeHash hash_with_numbers(const Member& member) {
  const auto numbered = [](Graph& g, size_t load, Id base) {
    return sum_of(g, base, make_scalar(g, static_cast<uint32_t>(load), 0));
  };
  NodeHash hash =
      hash_of(*with_indices(*member.ast, member.order.loads, member.order.params, numbered));
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < member.order.params.size(); ++i) slots.push_back(param_slot(member, i));
  std::ranges::sort(slots);
  for (uint32_t slot : slots) hash.word[1] = mixed(hash.word[1], slot);
  return hash;
}

std::vector<int64_t> offsets_of(const Member& member) {
  const Graph& g = member.ast->graph;
  std::vector<int64_t> out;
  for (Id load : member.order.loads) out.push_back(split_index(g, g.sources(load)[1]).offset);
  return out;
}

class ProgramJoiner {
 public:
  ProgramJoiner(SchedulerState& state, StepKernels kernels)
      : plan_(state.plan), kernels_(kernels), options_(state.options), visits_(state.visits) {}

  void run() {
    std::map<uint64_t, Alike> likely;
    for (Member& member : different_kernels()) {
      const uint64_t key = member.order.hash;
      likely[key].push_back(std::move(member));
    }
    std::map<NodeHash, Alike> alike;
    for (auto& [hash, group] : likely)
      for (Member& member : group) {
        if (group.size() < 2) continue;
        visits_ += member.ast->graph.size();
        member.offsets = offsets_of(member);
        const NodeHash key = hash_with_numbers(member);
        alike[key].push_back(std::move(member));
      }
    for (const auto& [hash, group] : alike) share(group);
  }

 private:
  std::vector<Member> different_kernels() {
    std::map<NodeHash, size_t> number_of;
    std::vector<Member> out;
    for (size_t step = 0; step < kernels_.size(); ++step) {
      if (!kernels_[step] || !plan_.steps[step].numbers.empty()) continue;
      visits_ += kernels_[step]->graph.size();
      const auto [at, is_new] = number_of.try_emplace(hash_of(*kernels_[step]), out.size());
      if (is_new) out.push_back({kernels_[step], ReadOrder(*kernels_[step]), {}});
      out[at->second].steps.push_back(step);
    }
    return out;
  }

  /// Makes one program for all if that saves enough, otherwise one for each set of equal offsets.
  void share(const Alike& alike) {
    std::map<std::vector<int64_t>, std::vector<const Member*>> by_offsets;
    for (const Member& member : alike) by_offsets[member.offsets].push_back(&member);
    if (by_offsets.size() >= kLeastKernels) {
      Lifter lifter(alike, options_.max_params);
      if (const AstPtr merged = lifter.merged()) {
        for (size_t i = 0; i < alike.size(); ++i)
          give(alike[i], merged, alike[0], lifter.scalars(i));
        return;
      }
    }
    for (const auto& [offsets, members] : by_offsets)
      for (const Member* member : members) give(*member, members[0]->ast, *members[0], {});
  }

  /// Lets the steps of `member` run `kernel`, whose parameters are numbered as in `as`.
  void give(const Member& member, const AstPtr& kernel, const Member& as,
            const std::vector<uint64_t>& scalars) {
    for (size_t number : member.steps) {
      Step& step = plan_.steps[number];
      const std::vector<uint32_t> buffers = step.buffers;
      for (size_t i = 0; i < member.order.params.size(); ++i)
        step.buffers[param_slot(as, i)] = buffers[param_slot(member, i)];
      kernels_[number] = kernel;
      step.scalars = scalars;
    }
  }

  Plan& plan_;
  StepKernels kernels_;
  const Options& options_;
  VisitCount& visits_;
};

}  // namespace

void join_programs(SchedulerState& state, StepKernels kernels) {
  ProgramJoiner(state, kernels).run();
}

}  // namespace plugrad::schedule
