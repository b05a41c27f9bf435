// The cost of a register tile: the cycles of a kernel with some of its axes expanded,
// and how many registers.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "cost/traffic.h"

namespace plugrad::codegen {

/// How many values of each axis are expanded; amounts[i] belongs to kernel.axes[i].
struct Tile {
  std::vector<int64_t> amounts;
  size_t vector_axis = SIZE_MAX;  // the axis that becomes lanes; SIZE_MAX for none
  /// Of a kernel whose axes are split already, by axis: the loop that goes on where the axis ends,
  /// SIZE_MAX for none. Empty for none at all.
  std::vector<size_t> outer = {};
  bool is_part(size_t axis) const { return axis < outer.size() && outer[axis] != SIZE_MAX; }
};

/// Cycles of one core, each as if it ran alone; where work-items run in step, instructions that a
/// subgroup issues.
struct TileCycles {
  double arithmetic = 0;  // instructions that compute
  double accesses = 0;    // loads and stores that are issued
  double latency = 0;     // sums that wait for their last addition
  double traffic = 0;     // lines that come through the caches again
  double loops = 0;       // counting and branching
  double packing = 0;     // copies of operands
  double storing = 0;     // sums that are transposed behind their loops
  double all = 0;         // what runs at the same time counts once, and a little for the rest

  /// The other, so many times.
  void add(const TileCycles& other, double times);
};

class CostModel {
 public:
  explicit CostModel(Kernel& kernel);
  /// Cycles of the whole kernel on one core, where work-items run in step instructions that a
  /// subgroup issues; infinity where the tile does not fit the registers. Where it is at least
  /// `limit` only that is sure.
  double cost(const Tile& tile, double limit = std::numeric_limits<double>::infinity()) const;
  /// The parts of cost(), also of a tile that does not fit. Without traffic where the rest is at
  /// least `limit`.
  TileCycles cycles(const Tile& tile, double limit = std::numeric_limits<double>::infinity()) const;
  /// Whether copies of what the lanes are multiplied by may pay.
  bool may_pack_rows() const;
  /// From now on costs assume such copies where the lanes' own operand is packed too.
  void pack_rows() { is_packing_rows_ = true; }
  /// Vectors that are live at once: accumulators and operands.
  double registers(const Tile& tile) const;
  bool fits_registers(const Tile& tile) const;
  /// Accumulators that are live at once.
  double accumulators(const Tile& tile) const;
  /// Copies of the most copied instruction: how much code the tile makes.
  double code_size(const Tile& tile) const;
  /// Copies of all instructions.
  double whole_code(const Tile& tile) const;
  /// Copies of multiply-adds and loads, those that windows share once.
  double sum_code(const Tile& tile) const;
  /// Rows apart in memory that the tile walks along at once, of what is loaded once and never
  /// again; several vectors of each count as so many where lanes run along them.
  int64_t streams(const Tile& tile) const;
  /// Lanes of a vector register for the kernel's dtypes.
  int64_t lanes() const { return lanes_; }
  bool has_reduce() const { return has_reduce_; }
  /// Iterations of all axes.
  double iterations() const;
  /// Whether some load of the innermost loops does not change along the axis: expanding it saves
  /// loads.
  bool reuses(size_t axis) const;
  /// Whether the stores write consecutive elements along the axis.
  bool stores_neighbours(size_t axis) const;
  /// The axis along which the stores write neighbours, where they do not along the tile's lanes:
  /// copies of it are stored together, transposed. SIZE_MAX for none.
  size_t axis_beside_lanes(const Tile& tile) const;
  /// The axis for work-items that run in step: that along which they move fewest cache lines.
  /// Reduce axes are looked at too where `reduces` says so. SIZE_MAX for a kernel without axes.
  size_t cheapest_lanes(bool reduces) const;
  /// Whether a reduce axis runs over fewer iterations while it is not expanded.
  bool has_bounds(size_t axis, const Tile& tile) const;
  /// The reduce axes where all of them run over windows that share elements, none otherwise:
  /// expanded, all of them, they share loads.
  std::vector<size_t> taps(const Tile& tile) const;
  /// The innermost reduce axis where it runs over such windows, SIZE_MAX otherwise.
  size_t last_tap(const Tile& tile) const;
  /// Whether the tile expands all that is summed, so that no loop is left.
  bool leaves_no_sum(const Tile& tile) const;
  /// The loop that goes on where the axis ends, in all that is loaded and stored: what a split
  /// leaves of one. SIZE_MAX for none.
  size_t outer_part(size_t axis) const;
  /// Of the widest dtype.
  int64_t element_bytes() const { return element_bytes_; }

 private:
  // An output loop and one over taps of which a load reads the sum of both, in steps.
  struct Window {
    size_t output, tap;
    int64_t output_step, tap_step;
  };
  struct Operation {
    enum class Kind : uint8_t { Load, Store, Alu, Accumulate };
    Kind kind;
    Id id;  // of an Accumulate what is added
    std::vector<int64_t> stride =
        {};                      // by axis: 0 where it does not depend on it; or kNear, kIrregular
    bool is_condition = false;   // of a term: gone where bounds stand for it
    bool is_of_indices = false;  // such a one that no value decides
    bool is_fused = false;       // a product, one instruction with the sum that it is added to
    size_t last = 0;             // one past the innermost axis that it depends on
    std::vector<Window> windows = {};
    std::vector<bool> decided_by = {};  // by axis: of a term that counts where a condition holds
    std::vector<int64_t> borders = {};  // by axis: ends of the loop at which a load has a gate
  };
  static constexpr int64_t kIrregular = INT64_MIN;
  static constexpr int64_t kNear =
      INT64_MAX;  // not consecutive, but within a few vectors (index_steps)
  // A reduce axis that runs over the values between which its terms are not 0 alone, unless it or
  // what decides these values is expanded.
  struct Bound {
    size_t axis;
    std::vector<size_t> deciding = {};
    double share = 1;  // of its iterations
    std::vector<int64_t> factors =
        {};  // by axis, of the clause `sum of factor * axis + constant < 0`
    int64_t constant = 0;
    bool is_linear = false;  // in axes alone
  };
  void add_bounds(Id reduce);
  bool holds(const Bound& bound, const Tile& tile) const;
  double undecided(const Bound& bound, const Tile& tile) const;
  int64_t memory_stride(Operation::Kind kind, Id id, Id index, Id axis);

  std::optional<int64_t> borders_of(Id load, Id axis);
  double border_share(const Operation& operation, const Tile& tile, size_t axis) const;
  void add_windows(Operation& operation, Id index);
  static double places_of(const Window& window, const Tile& tile);
  double share_of_loads(const Operation& operation, const Tile& tile) const;
  void note_terms();
  static int64_t rows_of_windows(const Operation& operation, size_t axis, int64_t windows);
  double shared_loads(const Operation& operation, const Tile& tile) const;
  void note_fused();
  double copies_of_operand(const Operation& operation, const Tile& tile) const;
  double operands(const Tile& tile) const;
  double weight(const Operation& operation, const Tile& tile, double conditions) const;
  bool is_branch(const Operation& operation, const Tile& tile) const {
    return tile.vector_axis < operation.decided_by.size() &&
           !operation.decided_by[tile.vector_axis];
  }
  // In cycles, each as if it ran alone.
  struct Work {
    double arithmetic = 0, memory = 0, packing = 0, storing = 0;
    double chain = 0;   // turns in which each accumulator waits for its last sum
    double passes = 1;  // turns of all loops
    double sums = 1;    // and of those around the sums
    double share = 1;   // of the iterations, where loops have bounds
  };
  Work work(const Tile& tile) const;
  double sums_at_once(const Work& work) const;
  TileCycles cycles_without_traffic(const Work& work) const;
  bool is_packed(const Operation& operation, const Tile& tile) const {
    return pack_cost(operation, tile) < std::numeric_limits<double>::infinity();
  }
  double split_loads(const Operation& operation, const Tile& tile) const;
  bool rows_lie_apart(const Operation& operation, const Tile& tile) const;
  bool is_tap(size_t axis) const;
  std::vector<size_t> loop_order(const Tile& tile) const;
  bool stands_beside_sums(const Operation& operation) const;
  cost::Operand operand_of(const Operation& operation, const Tile& tile) const;
  double traffic(const Tile& tile) const;
  double store_traffic(const Operation& operation, const Tile& tile) const;
  bool is_of_indices(Id condition) const;
  double masking(const Tile& tile) const;
  void add_operation(Operation::Kind kind, Id id, Id index);
  double instructions(const Operation& operation, const Tile& tile) const;
  double pack_cost(const Operation& operation, const Tile& tile) const;
  bool has_distant_rows(const Operation& operation) const;
  bool packs_rows(const Operation& operation, const Tile& tile) const;
  double copies(const Operation& operation, const Tile& tile) const;
  struct Beside {
    size_t axis = SIZE_MAX;
    int64_t copies = 1;
  };
  Beside beside(const Operation& operation, const Tile& tile) const;
  int64_t neighbours(const Operation& operation, const Tile& tile) const;
  double transposing(const Operation& operation, const Tile& tile) const;
  double transposed_vectors(const Tile& tile) const;
  double most_accumulators() const;
  double together() const;
  double lines_moved(const Operation& operation, size_t axis) const;
  int64_t pieces(int64_t amount) const;  // vectors that hold `amount` elements
  int64_t pieces(size_t axis, int64_t amount) const;
  int64_t widest(size_t axis, int64_t amount) const;
  int64_t vectors_of_axis(size_t axis, int64_t amount) const;
  bool is_reduce(size_t axis) const {
    return is_reduce_axis(range_kind(kernel_.graph[kernel_.axes[axis]]));
  }

  Kernel& kernel_;
  OpenRanges open_;
  Simplifier simplify_;
  std::vector<Operation> operations_;
  std::vector<Bound> bounds_;
  std::vector<int64_t> sizes_;  // by axis
  std::vector<bool> repeats_;   // by axis: whether vectors may have elements in common
  int64_t lanes_ = 1, element_bytes_ = 1;
  bool has_reduce_ = false;
  bool is_packing_rows_ = false;
};

/// Whether the tile makes more code than pays.
bool is_too_much_code(const CostModel& model, const Tile& tile);

}  // namespace plugrad::codegen
