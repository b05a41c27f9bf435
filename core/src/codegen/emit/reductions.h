// Reductions in kernel IR: accumulators, blocked summation of long float sums, and the combination
// of partial results in a workgroup.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/emit/emission.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace plugrad::codegen {

/// The blocks of a nest of reduce loops. Blocked summation (pairwise with one level; Higham 1993)
/// adds each block to a total, so that n terms have the error of one block plus n / block totals.
struct SumBlocks {
  size_t loop = 0;   ///< index of the loop that a block runs through
  int64_t step = 0;  ///< iterations of it in a block; 0: all
};

/// The blocks of sums (Reduce nodes over `loops`, outermost first); nothing for short sums or if
/// the totals would not fit beside the accumulators.
std::optional<SumBlocks> blocks_of_sums(const Graph& g, std::span<const Id> loops,
                                        std::span<const Id> sums);

/// Private arrays of one value each, which compilers keep in registers. Numbers are those of
/// instructions.
class Accumulators {
 public:
  Accumulators(Graph& graph, IrWriter& writer, Lanes& lanes, const pgr_device_caps& caps)
      : graph_(graph), writer_(writer), lanes_(lanes), caps_(caps) {}

  /// Stores the identity.
  void start(Id reduce) { numbers_[reduce] = make(reduce); }
  uint32_t load(Id reduce);
  void store(Id reduce, uint32_t value);

  /// Between these calls float sums accumulate in a block of their own, which starts at +0.
  void begin_blocks(std::span<const Id> reduces);
  void end_blocks(std::span<const Id> reduces);

 private:
  uint32_t make(Id reduce);
  uint32_t identity(Id reduce);
  void store_at(uint32_t array, Id reduce, uint32_t value);

  Graph& graph_;
  IrWriter& writer_;
  Lanes& lanes_;
  const pgr_device_caps& caps_;
  std::map<Id, uint32_t> numbers_, totals_;  // by Reduce; totals_: while a block is open
};

/// The order in which sums of products are updated if all values of one set are multiplied by all
/// of another: grouped by the larger set, so that only the smaller set stays in registers.
std::vector<Id> update_order(const Graph& g, std::span<const Id> reduces);

/// Combines `sum` and `value`. A maximum that the device lacks is a select in which NaN wins.
uint32_t write_combined(IrWriter& writer, const pgr_device_caps& caps, Op op, uint32_t sum,
                        uint32_t value);

class GroupReducer {
 public:
  struct Partial {
    Op op;
    uint32_t value;     // instruction: this work-item's value
    uint64_t identity;  // bits of a constant
  };

  GroupReducer(IrWriter& writer, const pgr_device_caps& caps) : writer_(writer), caps_(caps) {}

  /// `types`: the number of (dtype, lanes) pairs; each gets an equal share of local memory.
  void start(std::vector<LaunchIds::WorkItemAxis> items, size_t types);

  /// Combines each value over the work-items of the Group ranges; all of them get the result. All
  /// work-items of the group must reach the code. `again`: the code runs in a loop.
  std::vector<uint32_t> reduce(std::span<const Partial> partials, std::span<const Id> ranges,
                               bool again);

 private:
  // Rows of one element for each work-item of the group.
  struct Array {
    DType dtype;
    uint32_t lanes;
    uint32_t number;  // index in the table of arrays
    uint64_t rows;
  };
  // Reductions with the same op and type.
  struct Batch {
    Array array;
    Op op;
    uint64_t identity;
    uint32_t pointer, place;  // instructions: the array; this work-item's element of the first row
    int64_t rows;
  };

  std::vector<size_t> axes_of(std::span<const Id> ranges) const;
  int64_t stride(size_t axis) const;
  int64_t item_count() const { return stride(items_.size()); }
  bool is_like(const Partial& a, const Partial& b) const;
  const Array& array_for(const pgr_ir_inst& value, uint64_t rows);
  void reduce_batch(std::span<const Partial> partials, std::span<const size_t> axes, bool again,
                    std::span<uint32_t> out);
  void step(const Batch& batch, size_t axis, int64_t from, int64_t to);
  void combine_places(const Batch& batch, uint32_t place, size_t axis, int64_t from, int64_t to);
  uint32_t place(std::span<const size_t> without);
  uint32_t row_of(const Batch& batch, uint32_t place, int64_t row);

  void barrier() { writer_.barrier(); }
  uint32_t op(uint16_t number, uint32_t a, uint32_t b);
  uint32_t scaled(uint32_t index, int64_t factor);
  uint32_t constant(int64_t value);
  DType index_dtype() const { return static_cast<DType>(writer_.insts()[items_[0].id].dtype); }

  IrWriter& writer_;
  const pgr_device_caps& caps_;
  std::vector<LaunchIds::WorkItemAxis> items_;
  std::vector<Array> arrays_;
  uint64_t share_bytes_ = 0;  // bytes of local memory for each array
  bool used_ = false;         // other work-items may still read the arrays
};

}  // namespace plugrad::codegen
