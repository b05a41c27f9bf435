// Counts vector instructions. An instruction is issued once for each element (or vector) of the
// axes that it depends on, and again in each pass of surrounding loops that it does not depend on;
// expanding such a loop by n divides the passes by n. This is the whole model of register reuse.
#include "codegen/tiling/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/analysis/predication.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

// Copies of one instruction in a reduce loop. Chosen, not measured.
constexpr double kMostCode = 160;

// The costs below are counts of instructions, not measured alone; the model as a whole is compared
// with measured times in docs/performance.md, "The model against the clock".

// Vector instructions for an operation on integers or conditions, which run on other ports.
constexpr double kScalarCost = 0.25;
constexpr double kBranchCost = 0.5;  // vector instructions: a scalar comparison and a jump
constexpr double kGateCost = 1.5;    // instructions of a gated copy: making and using a lane mask
constexpr double kCopyCost = 1.5;    // instructions: load and store of a vector
constexpr double kPickCost = 8;      // instructions: loads and shuffles for each vector
constexpr double kPackCost = 1.5;    // instructions: load and store of a lane
// Uses of each element by other loops from which packing pays. Chosen, not measured.
constexpr double kPackReuse = 32;
// Weight of a store's copies in kMostCode relative to copies inside the loops. Chosen, not
// measured.
constexpr double kStoreCode = 0.5;
constexpr double kTogether = 2;          // instructions that a CPU issues per cycle beside others
constexpr double kHorizontalCost = 1.5;  // instructions: one halving of a vector

}  // namespace

CostModel::CostModel(Kernel& kernel)
    : kernel_(kernel), open_(kernel.graph), simplify_(kernel.graph, kernel.rules()) {
  const Graph& g = kernel.graph;
  for (Id axis : kernel.axes) {
    sizes_.push_back(range_size(g, axis));
    reduces_.push_back(is_reduce_axis(range_kind(g[axis])));
  }
  uint32_t widest_bytes = 1;
  Reachable reachable;
  const auto is_hint = [&](Id id) { return g[id].op == Op::Bounded; };
  for (Id id : reachable.from(g, std::span(&kernel.sink, 1), is_hint)) {
    const Node& n = g[id];
    if (n.op == Op::Load)
      add_operation(Operation::Kind::Load, id, g.sources(n)[1]);
    else if (n.op == Op::Store)
      add_operation(Operation::Kind::Store, id, g.sources(n)[1]);
    else if (n.op == Op::Reduce)
      add_operation(Operation::Kind::Accumulate, g.sources(n)[0], kNoId);
    else if (is_alu(n.op) && n.dtype != DType::Index)
      add_operation(Operation::Kind::Alu, id, kNoId);
    if (n.op == Op::Reduce) add_bounds(id);
    if (n.op == Op::Load || n.op == Op::Reduce)
      widest_bytes = std::max(widest_bytes, size_of(n.dtype));
    has_reduce_ |= n.op == Op::Reduce;
  }
  const bool fuses = kernel.options.contract && kernel.caps->contract_supported != 0;
  if (!works_in_groups(*kernel.caps)) {
    find_conditional_terms();
    find_variable_sizes();
  }
  if (fuses && !works_in_groups(*kernel.caps)) find_fused_products();
  element_bytes_ = widest_bytes;
  const DType widest = widest_bytes == 8 ? DType::F64 : DType::F32;
  lanes_ = std::max(1u, kernel.caps->vector_lanes[static_cast<size_t>(widest)]);
  for (Id axis : kernel.axes)
    repeats_.push_back(may_repeat(kernel.graph, open_, kernel.graph.sources(kernel.sink), axis));
}

bool CostModel::is_of_indices(Id condition) const {
  Reachable reachable;
  return std::ranges::none_of(reachable.from(kernel_.graph, std::span(&condition, 1)), [&](Id id) {
    return kernel_.graph[id].op == Op::Load || kernel_.graph[id].op == Op::Reduce;
  });
}

// Both words of a hash are computed together.
double CostModel::instructions_of_hash(Id id) const {
  const Graph& g = kernel_.graph;
  const bool is_second = std::ranges::any_of(operations_, [&](const Operation& other) {
    return other.kind == Operation::Kind::Alu && op_info(g[other.id].op).cost == OpCost::Hash &&
           std::ranges::equal(g.sources(other.id), g.sources(id));
  });
  return is_second ? 0 : 2.0 * cost_facts(OpCost::Hash).instructions;
}

void CostModel::add_operation(Operation::Kind kind, Id id, Id index) {
  const Node& n = kernel_.graph[id];
  Operation operation{.kind = kind,
                      .id = id,
                      .is_condition = kind == Operation::Kind::Alu &&
                                      (n.op == Op::Where || n.dtype == DType::Bool)};
  if (kind == Operation::Kind::Alu && op_info(n.op).cost == OpCost::Hash)
    operation.instructions = instructions_of_hash(id);
  operation.is_of_indices =
      operation.is_condition && is_of_indices(n.op == Op::Where ? n.src[0] : id);
  for (size_t a = 0; a < kernel_.axes.size(); ++a) {
    int64_t stride = open_.depends(id, kernel_.axes[a]) ? 1 : 0;
    if (index != kNoId) stride = memory_stride(kind, id, index, kernel_.axes[a]);
    operation.stride.push_back(stride);
    operation.borders.push_back(stride == kNear ? borders_of(id, kernel_.axes[a]).value_or(0) : 0);
    if (stride != 0) operation.last = a + 1;
  }
  if (kind == Operation::Kind::Load) add_windows(operation, index);
  operations_.push_back(std::move(operation));
}

void CostModel::find_conditional_terms() {
  for (const Operation& sum : operations_) {
    if (sum.kind != Operation::Kind::Accumulate || kernel_.graph[sum.id].op != Op::Where) continue;
    for (Operation& operation : operations_) {
      if (operation.kind != Operation::Kind::Alu || operation.id != sum.id) continue;
      operation.decided_by.clear();
      for (Id axis : kernel_.axes)
        operation.decided_by.push_back(open_.depends(kernel_.graph[sum.id].src[0], axis));
    }
  }
}

// A product that is added is fused with the addition, also through a condition.
void CostModel::find_fused_products() {
  const Graph& g = kernel_.graph;
  for (const Operation& sum : operations_) {
    if (sum.kind != Operation::Kind::Accumulate) continue;
    const bool where = g[sum.id].op == Op::Where;
    const Id product = where ? g[sum.id].src[1] : sum.id;
    if (g[product].op != Op::Mul || !is_float(g[product].dtype)) continue;
    for (Operation& operation : operations_)
      if (operation.kind == Operation::Kind::Alu && operation.id == product)
        operation.is_fused = true;
  }
}

int64_t CostModel::memory_stride(Operation::Kind kind, Id id, Id index, Id axis) {
  Graph& g = kernel_.graph;
  const int64_t stride = stride_of(g, index, axis).value_or(kIrregular);
  const size_t gate = kind == Operation::Kind::Load ? 2 : 3;
  const bool has_gate =
      kind == Operation::Kind::Load ? g.sources(id).size() > gate : has_strict_gate(g, id);
  const bool gated = has_gate && open_.depends(g.sources(id)[gate], axis);
  if (gated && kind == Operation::Kind::Load && stride == 1 && gates_lanes(*kernel_.caps, 2))
    return 1;
  // A value or a gate may vary along an axis that the address does not vary along. Inside its
  // borders a loop has no gate (passes/partition_loops.cpp).
  const bool is_open = gated && (kind == Operation::Kind::Store || !borders_of(id, axis));
  if (is_open || (stride == 0 && open_.depends(id, axis))) return kIrregular;
  const int64_t otherwise = gated ? kIrregular : stride;
  if (kind == Operation::Kind::Store || stride == 0 || stride == 1) return otherwise;
  const int64_t count = std::min<int64_t>(range_size(g, axis), 8);
  const auto steps = index_steps(g, simplify_, index, axis, count);
  if (!steps) return otherwise;
  const auto [low, high] = std::ranges::minmax(*steps);
  return high - low < 4 * count ? kNear : otherwise;
}

// Whether consecutive vectors that a sum reads are on different cache lines.
bool CostModel::rows_lie_apart(const Operation& operation, const Tile& tile) const {
  for (size_t a = 0; a < sizes_.size(); ++a)
    if (is_reduce(a) && operation.stride[a] != 0 &&
        (operation.stride[a] == kNear ||
         std::abs(operation.stride[a]) < tile.amounts[tile.vector_axis]))
      return false;
  return true;
}

// The cost of packing an operand that is read repeatedly, so that its elements are consecutive
// along the lanes; infinity if packing does not pay.
double CostModel::pack_cost(const Operation& operation, const Tile& tile) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const size_t lanes = tile.vector_axis;
  if (operation.kind != Operation::Kind::Load || lanes == SIZE_MAX || lanes >= operation.last ||
      operation.stride[lanes] == 0 || is_reduce(lanes) || kernel_.caps->private_bytes == 0 ||
      kernel_.options.frugal || works_in_groups(*kernel_.caps))
    return kNever;
  // A written parameter is a result or stands for an array that already holds a copy.
  if (const Id memory = kernel_.graph.sources(operation.id)[0];
      kernel_.graph[memory].op == Op::Param &&
      (param_info(kernel_.graph, memory).flags & PGR_PARAM_WRITE) != 0)
    return kNever;
  double elements = 1, reuse = 1;
  bool sums = false;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if (operation.stride[a] == kIrregular || (a == lanes && operation.stride[a] == kNear))
      return kNever;
    (operation.stride[a] == 0 ? reuse : elements) *=
        is_reduce(a) && operation.stride[a] == 0 ? 1 : static_cast<double>(sizes_[a]);
    sums |= is_reduce(a) && operation.stride[a] != 0;
  }
  if (!sums || reuse < kPackReuse) return kNever;
  if (operation.stride[lanes] > 1) return elements * kPackCost;
  return rows_lie_apart(operation, tile) ? elements / static_cast<double>(lanes_) * kCopyCost
                                         : kNever;
}

double CostModel::instructions(const Operation& operation, const Tile& tile) const {
  double count = operation.instructions * share_of_loads(operation, tile),
         shuffles = transposing(operation, tile);
  const bool packed = is_packed(operation, tile);
  for (size_t a = 0; a < operation.last; ++a) {
    if (operation.stride[a] == 0)
      count *= std::ceil(static_cast<double>(sizes_[a]) / static_cast<double>(tile.amounts[a]));
    else if (a != tile.vector_axis)
      count *= static_cast<double>(sizes_[a]);
    else if (operation.stride[a] == 1 || packed)
      count *= static_cast<double>(vectors_of_axis(a, tile.amounts[a]));
    else if (shuffles > 0)
      count *= static_cast<double>(vectors_of_axis(a, tile.amounts[a])) * shuffles;
    else {
      const double single = static_cast<double>(sizes_[a]) * kernel_.machine().lane_cost;
      const double picked = static_cast<double>(vectors_of_axis(a, tile.amounts[a])) * kPickCost;
      const double border = operation.stride[a] == kNear ? border_share(operation, tile, a) : 1;
      // With lane gates, a vector at the border is picked too, under a mask.
      const double gated = operation.stride[a] == kNear && gates_lanes(*kernel_.caps, 2)
                               ? picked * kGateCost
                               : single;
      count *= (border * gated + (1 - border) * picked) / together();
    }
  }
  return count;
}

double CostModel::accumulators(const Tile& tile) const {
  double total = 0;
  for (const Operation& operation : operations_) {
    if (operation.kind != Operation::Kind::Accumulate) continue;
    double count = 1;
    for (size_t a = 0; a < sizes_.size(); ++a) {
      if (a == tile.vector_axis)
        count *= static_cast<double>(widest(a, tile.amounts[a]));
      else if (!is_reduce(a) && operation.stride[a] != 0)
        count *= static_cast<double>(tile.amounts[a]);
    }
    total += count;
  }
  return total;
}

// Instructions issued per unit of time: per cycle on a CPU, one on devices with lockstep
// work-items.
double CostModel::together() const {
  return works_in_groups(*kernel_.caps) ? 1 : kTogether;
}

// Private memory of lockstep work-items is in registers too; few devices report how many there are.
double CostModel::most_accumulators() const {
  const pgr_device_caps& caps = *kernel_.caps;
  if (!works_in_groups(caps)) return 0.8 * std::max(8u, caps.vector_registers);
  const double most = 0.8 * (caps.vector_registers == 0 ? 80 : caps.vector_registers);
  const double room = static_cast<double>(caps.private_bytes) / static_cast<double>(element_bytes_);
  return caps.private_bytes == 0 ? most : std::max(1.0, std::min(most, room));
}

double CostModel::copies(const Operation& operation, const Tile& tile) const {
  const double shuffles = transposing(operation, tile);
  double count = std::max(shuffles, 1.0);
  for (size_t a = 0; a < operation.last; ++a) {
    if (operation.stride[a] == 0) continue;
    const bool lanes_apart =
        operation.stride[a] != 1 && operation.stride[a] != kNear && shuffles == 0;
    count *= static_cast<double>(a == tile.vector_axis && !lanes_apart ? pieces(a, tile.amounts[a])
                                                                       : tile.amounts[a]);
  }
  // Stores follow the loops, so many of them weigh less.
  return operation.kind == Operation::Kind::Store ? count * kStoreCode : count;
}

double CostModel::code_size(const Tile& tile) const {
  double largest = 1;
  for (const Operation& operation : operations_)
    largest = std::max(largest, copies(operation, tile));
  return largest;
}

double CostModel::whole_code(const Tile& tile) const {
  double sum = 0;
  for (const Operation& operation : operations_)
    sum += operation.instructions * copies(operation, tile);
  return sum;
}

int64_t CostModel::streams(const Tile& tile) const {
  int64_t most = 1;
  const auto is_whole = [&](size_t a) { return tile.amounts[a] == sizes_[a] && !tile.is_part(a); };
  for (const Operation& operation : operations_) {
    if (operation.kind != Operation::Kind::Load || std::ranges::count(operation.stride, 0) != 0)
      continue;
    int64_t count = 1;
    for (size_t a = 0; a < sizes_.size(); ++a)
      if (a != tile.vector_axis && operation.stride[a] != 1 && operation.stride[a] != kNear &&
          (operation.windows.empty() ||
           !(is_reduce(a) || (is_whole(a) && is_whole(tile.vector_axis)))))
        count *= rows_of_windows(operation, a, tile.amounts[a]);
    if (!operation.windows.empty() && leaves_no_sum(tile) && count > 1)
      count *= 2;  // as many rows are written
    if (count > 1 && tile.vector_axis != SIZE_MAX && is_reduce(tile.vector_axis))
      count *= pieces(tile.amounts[tile.vector_axis]);
    most = std::max(most, count);
  }
  return most;
}

// Vectors that are transposed together in kernels without sums.
double CostModel::transposed_vectors(const Tile& tile) const {
  double most = 0;
  for (const Operation& operation : operations_) {
    const int64_t together = has_reduce_ ? 1 : neighbours(operation, tile);
    if (together > 1)
      most = std::max(most, static_cast<double>(together * pieces(tile.amounts[tile.vector_axis])));
  }
  return most;
}

// Vectors or scalars of an operand that the tile's sums use one after another.
double CostModel::copies_of_operand(const Operation& operation, const Tile& tile) const {
  double count = 1;
  for (size_t a = 0; a < operation.last; ++a)
    if (a == tile.vector_axis && operation.stride[a] != 0)
      count *= static_cast<double>(widest(a, tile.amounts[a]));
    else if (!is_reduce(a) && operation.stride[a] != 0)
      count *= static_cast<double>(tile.amounts[a]);
  return count;
}

// Registers for operands beside the accumulators. Of a product the side with fewer vectors stays
// and the other passes through one or two registers (update_order). Intermediate values take more,
// and values shared by windows stay until their last use.
double CostModel::operands(const Tile& tile) const {
  double vectors = 0, computed = 0, shared = 0, most = 0, fewer = 0;
  for (const Operation& operation : operations_) {
    const bool inside = operation.last > 0 && is_reduce(operation.last - 1);
    if (!inside) continue;
    if (operation.kind == Operation::Kind::Alu && !operation.is_fused && !operation.is_condition)
      computed = std::min(computed + 1, 3.0);
    const size_t lanes = tile.vector_axis;
    if (operation.kind == Operation::Kind::Load)
      shared = std::max(shared, shared_loads(operation, tile));
    if (operation.kind == Operation::Kind::Load && lanes < operation.stride.size() &&
        operation.stride[lanes] != 0)
      vectors = std::max(vectors, static_cast<double>(widest(lanes, tile.amounts[lanes])));
    if (operation.kind != Operation::Kind::Load || !operation.windows.empty()) continue;
    const double count = copies_of_operand(operation, tile);
    fewer = std::max(fewer, std::min(most, count));
    most = std::max(most, count);
  }
  vectors = std::max(vectors, fewer);
  return vectors + std::max(kernel_.machine().passing + computed, shared);
}

// Only copies at the border have conditions; a condition that is uniform over lanes runs beside the
// vectors.
double CostModel::weight(const Operation& operation, const Tile& tile, double conditions) const {
  if (!operation.is_condition) return 1;
  // Only border copies have conditions, and there they are constant.
  if (leaves_no_sum(tile) && kernel_.graph[operation.id].op != Op::Where) return 0;
  const size_t lanes = tile.vector_axis;
  if (is_branch(operation, tile))  // a branch around all its vectors
    return conditions * kBranchCost / static_cast<double>(pieces(lanes, tile.amounts[lanes]));
  const bool varies_by_lane = lanes < operation.stride.size() && operation.stride[lanes] != 0;
  if (varies_by_lane && operation.is_of_indices)
    return kernel_.graph[operation.id].op == Op::Where ? conditions * masking(tile) : 0;
  const bool decides_branch =
      !varies_by_lane && std::ranges::any_of(operations_, [&](const Operation& other) {
        return is_branch(other, tile);
      });
  if (decides_branch) return 0;  // one of its clauses remains, in the branch
  return varies_by_lane ? conditions * kGateCost : conditions * kScalarCost;
}

double CostModel::registers(const Tile& tile) const {
  const double sums = std::max(accumulators(tile), transposed_vectors(tile));
  return works_in_groups(*kernel_.caps) || !has_reduce_ ? sums : sums + operands(tile);
}

bool CostModel::fits_registers(const Tile& tile) const {
  if (works_in_groups(*kernel_.caps) || !has_reduce_) return registers(tile) <= most_accumulators();
  if (leaves_no_sum(tile)) return true;  // sums are finished one after another
  return registers(tile) <= std::max(8u, kernel_.caps->vector_registers);
}

// Unaligned vectors that cross a cache line are read twice.
double CostModel::split_loads(const Operation& operation, const Tile& tile) const {
  const size_t lanes = tile.vector_axis;
  if (lanes >= operation.stride.size() || operation.stride[lanes] != 1 ||
      is_packed(operation, tile))
    return 1;
  const int64_t width = std::min(lanes_, tile.amounts[lanes]);
  for (size_t a = 0; a < operation.last; ++a)
    if (a != lanes && operation.stride[a] != 0 && operation.stride[a] % width != 0)
      return 1 + static_cast<double>(width * element_bytes_) / kernel_.machine().line_bytes;
  return 1;
}

CostModel::Work CostModel::work(const Tile& tile) const {
  Work work;
  double decided = 1, loops = 1;
  for (const Bound& bound : bounds_) {
    if (holds(bound, tile))
      work.share *= bound.share;
    else
      decided *= 1 - undecided(bound, tile);
  }
  const double conditions = bounds_.empty() ? 1 : 1 - decided;
  for (const Operation& operation : operations_) {
    const double count = instructions(operation, tile) * weight(operation, tile, conditions);
    if (is_packed(operation, tile)) work.packing += pack_cost(operation, tile);
    if (has_reduce_ && transposing(operation, tile) > 0)
      work.storing += count;
    else if (operation.kind == Operation::Kind::Load || operation.kind == Operation::Kind::Store)
      work.memory += count * kernel_.machine().load_cost() * split_loads(operation, tile);
    else if (!operation.is_fused)
      work.arithmetic += count;
  }
  work.chain = has_reduce_ ? 1 : 0;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    const auto size = static_cast<double>(sizes_[a]), amount = static_cast<double>(tile.amounts[a]);
    loops *= std::ceil(size / amount);
    if (!is_reduce(a)) work.sums *= std::ceil(size / amount);
    work.chain *= is_reduce(a) && a != tile.vector_axis ? size : std::ceil(size / amount);
  }
  work.passes = loops;
  if (leaves_no_sum(tile)) work.chain = 0;  // other iterations run while one waits
  if (tile.vector_axis != SIZE_MAX && is_reduce(tile.vector_axis)) {
    double results = 1;
    for (size_t a = 0; a < sizes_.size(); ++a)
      if (!is_reduce(a)) results *= static_cast<double>(sizes_[a]);
    const double halvings =
        std::log2(static_cast<double>(std::min(lanes_, tile.amounts[tile.vector_axis])));
    work.arithmetic += results * halvings * kHorizontalCost;
  }
  return work;
}

double CostModel::iterations() const {
  double count = 1;
  for (int64_t size : sizes_) count *= static_cast<double>(size);
  return count;
}

bool CostModel::stores_neighbours(size_t axis) const {
  return std::ranges::all_of(operations_, [&](const Operation& operation) {
    return operation.kind != Operation::Kind::Store ||
           (axis < operation.stride.size() && operation.stride[axis] == 1);
  });
}

bool CostModel::reuses(size_t axis) const {
  size_t deepest = 0;
  for (const Operation& operation : operations_) deepest = std::max(deepest, operation.last);
  return std::ranges::any_of(operations_, [&](const Operation& operation) {
    return operation.kind == Operation::Kind::Load && operation.stride[axis] == 0 &&
           operation.last == deepest;
  });
}

// Cache lines per iteration of a subgroup; strided accesses take one per work-item.
double CostModel::lines_moved(const Operation& operation, size_t axis) const {
  if (operation.kind != Operation::Kind::Load && operation.kind != Operation::Kind::Store) return 0;
  double count = 1;
  for (size_t a = 0; a < operation.last; ++a) count *= static_cast<double>(sizes_[a]);
  const int64_t stride = axis < operation.stride.size() ? operation.stride[axis] : 0;
  if (stride == 0 || stride == 1) return count;
  return count * (stride == kNear ? 4.0 : static_cast<double>(kernel_.caps->subgroup_size));
}

size_t CostModel::cheapest_lanes(bool reduces) const {
  size_t best = SIZE_MAX;
  double least = std::numeric_limits<double>::infinity();
  for (size_t axis = sizes_.size(); axis-- > 0;) {
    if (is_reduce(axis) && !reduces) continue;
    double lines = 0;
    for (const Operation& operation : operations_) lines += lines_moved(operation, axis);
    // With few work-items along the axis most of the subgroup is not consecutive.
    const auto items =
        static_cast<double>(std::min<int64_t>(sizes_[axis], kernel_.caps->subgroup_size));
    lines *= kernel_.caps->subgroup_size / items;
    if (lines < least * (is_reduce(axis) ? 0.5 : 1.0)) {
      best = axis;
      least = lines;
    }
  }
  return best;
}

bool is_too_much_code(const CostModel& model, const Tile& tile) {
  return model.leaves_no_sum(tile) ? model.sum_code(tile) > kMostStraight
                                   : model.code_size(tile) > kMostCode;
}

}  // namespace plugrad::codegen
