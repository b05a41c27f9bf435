#include "render/writer/loop_plan.h"

#include <algorithm>
#include <utility>

#include "render/writer/integer_ranges.h"

namespace plugrad::render {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;
constexpr uint64_t kVeryOften = uint64_t{1} << 40;
constexpr uint64_t kMostUnrolled = 64;
constexpr uint64_t kMostInstructions = 3000;  // maximum size of an unrolled loop

struct Loop {
  uint32_t number, parent;  // parent: index of the enclosing loop, or kNone
  uint64_t turns;           // kUnknown: not a constant
  uint64_t most;            // by the ranges of its bounds
  uint64_t size = 0;        // instructions in its body, after unrolling
  uint32_t unrolled = 1;
  bool is_whole() const { return turns != kUnknown && unrolled >= turns; }
};
constexpr uint32_t kNone = UINT32_MAX;
// Independent sums that hide the latency of an addition: two per cycle, four cycles each.
constexpr uint32_t kTile = 8;

uint64_t product(uint64_t a, uint64_t b) {
  return b != 0 && a > kVeryOften / b ? kVeryOften : a * b;
}

bool is_constant(const sdk::IrView& ir, uint32_t loop, uint32_t bound) {
  return ir.inst(ir.source(loop, bound)).op == PGR_OP_CONST;
}

std::vector<Loop> find_loops(const sdk::IrView& ir) {
  const std::vector<uint64_t> most = most_turns_of_loops(ir);
  std::vector<Loop> loops;
  uint32_t open = kNone;
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    if (ir.inst(i).op == PGR_OP_LOOP) {
      const bool is_known = is_constant(ir, i, 0) && is_constant(ir, i, 1);
      const Loop loop{
          .number = i, .parent = open, .turns = is_known ? most[i] : kUnknown, .most = most[i]};
      open = static_cast<uint32_t>(loops.size());
      loops.push_back(loop);
    } else if (ir.inst(i).op == PGR_OP_END_LOOP) {
      open = loops[open].parent;
    } else if (open != kNone) {
      ++loops[open].size;
    }
  }
  return loops;
}

// Total iterations of each loop for one work-item.
std::vector<uint64_t> count_turns(const std::vector<Loop>& loops) {
  std::vector<uint64_t> entered(loops.size()), counts(loops.size());
  for (size_t i = 0; i < loops.size(); ++i) {
    const Loop& loop = loops[i];
    const uint64_t most = std::min(loop.most, kVeryOften);
    const uint64_t before = loop.parent == kNone ? 1 : entered[loop.parent];
    entered[i] = product(before, most);  // executions of the loop's body
    counts[i] = loop.is_whole() ? 0 : product(before, (most + loop.unrolled - 1) / loop.unrolled);
  }
  return counts;
}

// The largest small divisor of the iteration count; 1: none.
uint32_t choose_part(const Loop& loop) {
  const uint64_t most =
      std::min(kMostUnrolled, kMostInstructions / std::max<uint64_t>(loop.size, 1));
  if (loop.turns <= most) return static_cast<uint32_t>(loop.turns);
  for (uint64_t part = most; part > 1; --part)
    if (loop.turns % part == 0) return static_cast<uint32_t>(part);
  return 1;
}

bool is_innermost(const std::vector<Loop>& loops, size_t which) {
  return std::none_of(loops.begin(), loops.end(), [&](const Loop& other) {
    return other.parent == which && !other.is_whole();
  });
}

// Unrolls the candidate with the most iterations; false if there is no candidate.
bool unroll_one(std::vector<Loop>& loops, const std::vector<uint64_t>& counts) {
  Loop* best = nullptr;
  uint64_t best_count = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    Loop& loop = loops[i];
    const bool can = loop.turns != kUnknown && loop.unrolled == 1 && is_innermost(loops, i);
    if (!can || counts[i] <= best_count || choose_part(loop) == 1) continue;
    best = &loop;
    best_count = counts[i];
  }
  if (!best) return false;
  best->unrolled = choose_part(*best);
  if (best->is_whole() && best->parent != kNone)
    loops[best->parent].size += best->size * best->unrolled;
  return true;
}

bool is_sum(const sdk::IrView& ir, uint32_t store) {
  const pgr_ir_inst& target = ir.inst(ir.source(store, 0));
  if (ir.inst(ir.source(store, 2)).lanes < 2 || target.op != PGR_OP_ARRAY) return false;
  const pgr_ir_array& array = ir.arrays()[target.arg];
  return array.space == PGR_SPACE_PRIVATE && array.elem_count == array.lanes;
}

// Per loop: the instructions in it but in no inner loop.
std::vector<bool> find_tiles(const sdk::IrView& ir) {
  std::vector<bool> holds_tile(ir.insts().size(), false);
  std::vector<std::pair<uint32_t, uint32_t>> open;  // LOOP, sums
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    const uint16_t op = ir.inst(i).op;
    if (op == PGR_OP_LOOP) open.emplace_back(i, 0);
    if (op == PGR_OP_STORE && !open.empty()) open.back().second += is_sum(ir, i);
    if (op != PGR_OP_END_LOOP) continue;
    holds_tile[open.back().first] = open.back().second >= kTile;
    open.pop_back();
  }
  return holds_tile;
}

}  // namespace

LoopPlan plan_loops(const sdk::IrView& ir, uint64_t most) {
  LoopPlan plan;
  plan.holds_tile = find_tiles(ir);
  plan.unrolled.assign(ir.insts().size(), 1);
  if (most == 0) return plan;
  std::vector<Loop> loops = find_loops(ir);
  for (;;) {
    const std::vector<uint64_t> counts = count_turns(loops);
    uint64_t all = 0;
    for (uint64_t count : counts) all += count;
    plan.may_turn_too_often = all > most;
    if (!plan.may_turn_too_often || !unroll_one(loops, counts)) break;
  }
  for (const Loop& loop : loops) plan.unrolled[loop.number] = loop.unrolled;
  return plan;
}

}  // namespace plugrad::render
