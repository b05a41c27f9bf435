// The cost model: the cycles and registers of a register tile, and the time of a scheduled kernel
// from the cycles of each store, the bytes that must move, and the threads that have work.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "cost/traffic.h"

namespace plugrad::codegen {

// Instructions of code without a loop: three such bodies (interior and two borders) fill the
// decoded-instruction cache (1,536 entries on Skylake, Intel's optimisation manual 2.5).
inline constexpr double kMostStraight = 512;

/// Expanded values of each axis; amounts[i] belongs to kernel.axes[i].
struct Tile {
  std::vector<int64_t> amounts;
  size_t vector_axis = SIZE_MAX;  // the axis that becomes lanes; SIZE_MAX for none
  /// For kernels with split axes, by axis: the loop that continues where the axis ends, SIZE_MAX
  /// for none. Empty if no axis is split.
  std::vector<size_t> outer = {};
  bool is_part(size_t axis) const { return axis < outer.size() && outer[axis] != SIZE_MAX; }
};

/// Cycles of one core for each resource alone. On devices with lockstep work-items: instructions
/// that a subgroup issues.
struct TileCycles {
  double arithmetic = 0;  // computing instructions
  double accesses = 0;    // issued loads and stores
  double latency = 0;     // accumulators that wait for their last addition
  double traffic = 0;     // cache lines that are fetched again
  double loops = 0;       // loop counters and branches
  double packing = 0;     // copies of operands (cache_read)
  double storing = 0;     // register transposes of sums after their loops
  double all = 0;         // the longest of the above, plus a fraction of the others

  /// Adds `other` `times` times.
  void add(const TileCycles& other, double times);
};

class CostModel {
 public:
  explicit CostModel(Kernel& kernel);
  /// Cycles of the whole kernel on one core, or subgroup instructions; infinity if the tile does
  /// not fit the registers. A result of at least `limit` is a lower bound.
  double cost(const Tile& tile, double limit = std::numeric_limits<double>::infinity()) const;
  /// The parts of cost(), also of a tile that does not fit. Omits traffic if the rest is at least
  /// `limit`.
  TileCycles cycles(const Tile& tile, double limit = std::numeric_limits<double>::infinity()) const;
  /// Whether packing the operand without lanes may pay.
  bool may_pack_rows() const;
  /// From now on costs assume that this operand is packed if the operand with lanes is.
  void pack_rows() { is_packing_rows_ = true; }
  /// Live vectors: accumulators and operands.
  double registers(const Tile& tile) const;
  bool fits_registers(const Tile& tile) const;
  /// Live accumulators.
  double accumulators(const Tile& tile) const;
  /// Copies of the most copied instruction, a measure of code size.
  double code_size(const Tile& tile) const;
  /// Copies of all instructions.
  double whole_code(const Tile& tile) const;
  /// Copies of multiply-adds and loads; loads shared by windows count once.
  double sum_code(const Tile& tile) const;
  /// Distinct rows that the tile reads at once and only once, i.e. prefetch streams; if lanes run
  /// along rows, each vector counts.
  int64_t streams(const Tile& tile) const;
  /// Lanes of a vector register for the kernel's dtypes.
  int64_t lanes() const { return lanes_; }
  bool has_reduce() const { return has_reduce_; }
  /// Iterations of all axes.
  double iterations() const;
  /// Whether a load of the innermost loops does not depend on the axis, so that expanding the axis
  /// saves loads.
  bool reuses(size_t axis) const;
  /// Whether the stores write consecutive elements along the axis.
  bool stores_neighbours(size_t axis) const;
  /// The axis along which the stores are consecutive, if the tile's lanes are not: copies along it
  /// are stored together, transposed. SIZE_MAX for none.
  size_t axis_beside_lanes(const Tile& tile) const;
  /// The axis for lockstep work-items that moves the fewest cache lines; with `reduces` also among
  /// reduce axes. SIZE_MAX for a kernel without axes.
  size_t cheapest_lanes(bool reduces) const;
  /// Whether the bounds of a reduce axis shorten it, which they do only while it is not expanded.
  bool has_bounds(size_t axis, const Tile& tile) const;
  /// The reduce axes, if all of them run over overlapping windows: expanded together they share
  /// loads. Otherwise empty.
  std::vector<size_t> taps(const Tile& tile) const;
  /// The innermost reduce axis if it runs over overlapping windows; SIZE_MAX otherwise.
  size_t last_tap(const Tile& tile) const;
  /// Whether the tile expands all reduce axes, so that no reduce loop remains.
  bool leaves_no_sum(const Tile& tile) const;
  /// The loop that continues where the axis ends, for all loads and stores: the outer part of a
  /// split. SIZE_MAX for none.
  size_t outer_part(size_t axis) const;
  /// Bytes of the widest dtype.
  int64_t element_bytes() const { return element_bytes_; }

 private:
  // An output loop and a loop over taps whose sum a load is indexed by, with the step of each.
  struct Window {
    size_t output, tap;
    int64_t output_step, tap_step;
  };
  struct Operation {
    enum class Kind : uint8_t { Load, Store, Alu, Accumulate };
    Kind kind;
    Id id;  // of an Accumulate: the added value
    std::vector<int64_t> stride =
        {};                      // by axis: 0 if independent of it; may be kNear or kIrregular
    bool is_condition = false;   // the condition of a term; bounds may replace it
    bool is_of_indices = false;  // such a condition that depends on indices only
    bool is_fused = false;       // a product that forms one instruction with the addition
    double instructions = 1;     // each time it is issued
    size_t last = 0;             // one past the innermost axis of the operation
    std::vector<Window> windows = {};
    std::vector<bool> decided_by = {};  // by axis: whether it decides the condition of the term
    std::vector<int64_t> borders = {};  // by axis: ends of the loop at which the load is gated
  };
  static constexpr int64_t kIrregular = INT64_MIN;
  static constexpr int64_t kNear =
      INT64_MAX;  // not consecutive, but within a few vectors (index_steps)
  // A reduce axis that runs only over terms that are not 0, unless the axis or one that decides its
  // bounds is expanded.
  struct Bound {
    size_t axis;
    std::vector<size_t> deciding = {};
    double share = 1;  // of its iterations
    std::vector<int64_t> factors =
        {};  // by axis: of the clause `sum of factor * axis + constant < 0`
    int64_t constant = 0;
    bool is_linear = false;  // in axes only
  };
  double instructions_of_hash(Id id) const;
  void add_bounds(Id reduce);
  bool holds(const Bound& bound, const Tile& tile) const;
  double undecided(const Bound& bound, const Tile& tile) const;
  int64_t memory_stride(Operation::Kind kind, Id id, Id index, Id axis);

  std::optional<int64_t> borders_of(Id load, Id axis);
  double border_share(const Operation& operation, const Tile& tile, size_t axis) const;
  void add_windows(Operation& operation, Id index);
  static double elements_of_window(const Window& window, const Tile& tile);
  double share_of_loads(const Operation& operation, const Tile& tile) const;
  void find_conditional_terms();
  static int64_t rows_of_windows(const Operation& operation, size_t axis, int64_t windows);
  double shared_loads(const Operation& operation, const Tile& tile) const;
  void find_fused_products();
  double copies_of_operand(const Operation& operation, const Tile& tile) const;
  double operands(const Tile& tile) const;
  double weight(const Operation& operation, const Tile& tile, double conditions) const;
  bool is_branch(const Operation& operation, const Tile& tile) const {
    return tile.vector_axis < operation.decided_by.size() &&
           !operation.decided_by[tile.vector_axis];
  }
  // Cycles of each resource alone.
  struct Work {
    double arithmetic = 0, memory = 0, packing = 0, storing = 0;
    double chain = 0;   // iterations in which an accumulator waits for its last addition
    double passes = 1;  // iterations of all loops
    double sums = 1;    // iterations of the loops around the sums
    double share = 1;   // of the iterations, if loops have bounds
  };
  Work work(const Tile& tile) const;
  double sums_at_once(const Work& work) const;
  TileCycles cycles_without_traffic(const Work& work) const;
  void find_variable_sizes();
  double beyond_sizes(const Tile& tile) const;
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
  bool is_reduce(size_t axis) const { return reduces_[axis]; }

  Kernel& kernel_;
  OpenRanges open_;
  Simplifier simplify_;
  std::vector<Operation> operations_;
  std::vector<Bound> bounds_;
  std::vector<int64_t> sizes_;  // by axis
  std::vector<char> reduces_;   // by axis: whether it is reduced
  std::vector<bool> repeats_;   // by axis: whether vectors may overlap
  std::vector<bool> varies_;    // by axis: whether its loop ends at a variable size
  int64_t lanes_ = 1, element_bytes_ = 1;
  bool has_reduce_ = false;
  bool is_packing_rows_ = false;
};

/// Whether the tile makes more code than pays.
bool is_too_much_code(const CostModel& model, const Tile& tile);

struct Prediction {
  TileCycles cycles{};   // of all stores, on one core
  double registers = 0;  // live vectors in the store with most
  double busy = 1;       // threads that have work
  double idle = 1;       // available threads or work-items over those with work
  double bytes = 0;      // read or written at least
  // Whether the tile fits the registers and the code is small enough for a compiler.
  bool is_possible = true;
  // Whether code size and prefetch streams are within the range in which the model was validated.
  bool is_trusted = true;

  /// Ranks schedules of one kernel; infinity if impossible.
  double cost() const {
    return is_possible ? cycles.all * idle : std::numeric_limits<double>::infinity();
  }
  /// Cycles that `threads` of the machine's threads take to move the bytes.
  double moving(const cost::Machine& machine, double threads) const;
  /// Seconds of one launch on `threads` of the machine's threads.
  double seconds(const cost::Machine& machine, double threads) const;
};

/// `bytes`: the bytes that the kernel must read and write (estimate in codegen/kernel.h).
Prediction predict(const Kernel& kernel, int64_t bytes);

}  // namespace plugrad::codegen
