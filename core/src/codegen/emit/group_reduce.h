// What each work-item of a group has reduced becomes one value for all of them, through local
// memory.
#pragma once

#include <vector>

#include "codegen/emit/ir_writer.h"
#include "codegen/emit/launch_ids.h"
#include "ir/op.h"

namespace plugrad::codegen {

/// `sum` and `value` combined; a maximum where the device has none is a choice, in which NaN wins.
uint32_t write_combined(IrWriter& writer, const pgr_device_caps& caps, Op op, uint32_t sum,
                        uint32_t value);

class GroupReducer {
 public:
  struct Partial {
    Op op;
    uint32_t value;     // instruction: what this item has
    uint64_t identity;  // bits of a constant
  };

  GroupReducer(IrWriter& writer, const pgr_device_caps& caps) : writer_(writer), caps_(caps) {}

  /// `types`: how many dtypes of how many lanes the kernel reduces so; each gets its share of local
  /// memory.
  void start(std::vector<LaunchIds::WorkItemAxis> items, size_t types);

  /// Each value combined over the items that the Group ranges number, the same for all of them.
  /// Every item of the group must come here. `again`: this code runs more than once, in a loop.
  std::vector<uint32_t> reduce(std::span<const Partial> partials, std::span<const Id> ranges,
                               bool again);

 private:
  // Rows of one element for each item of the group.
  struct Array {
    DType dtype;
    uint32_t lanes;
    uint32_t number;  // in the table of arrays
    uint64_t rows;
  };
  // Reductions of one kind at hand.
  struct Batch {
    Array array;
    Op op;
    uint64_t identity;
    uint32_t pointer, place;  // instructions: the array, this item's element of the first row
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

  void barrier() { writer_.inst(PGR_OP_BARRIER, DType::Void, 1, {}); }
  uint32_t op(uint16_t number, uint32_t a, uint32_t b);
  uint32_t scaled(uint32_t index, int64_t factor);
  uint32_t constant(int64_t value);
  DType index_dtype() const { return static_cast<DType>(writer_.insts()[items_[0].id].dtype); }

  IrWriter& writer_;
  const pgr_device_caps& caps_;
  std::vector<LaunchIds::WorkItemAxis> items_;
  std::vector<Array> arrays_;
  uint64_t share_bytes_ = 0;  // of local memory for each array
  bool used_ = false;         // other items may still read the arrays
};

}  // namespace plugrad::codegen
