// What each work-item of a group has reduced becomes one value for all of them, through local
// memory.
#pragma once

#include <vector>

#include "codegen/ir_writer.h"
#include "codegen/launch_ids.h"
#include "uop/op.h"

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
  void set_items(std::vector<LaunchIds::Item> items) { items_ = std::move(items); }

  /// Each value combined over the items that the Group ranges number, the same for all of them.
  /// Every item of the group must come here. `again`: this code runs more than once, in a loop.
  std::vector<uint32_t> reduce(std::span<const Partial> partials, std::span<const Id> ranges,
                               bool again);

 private:
  struct Array {
    DType dtype;
    uint32_t lanes;
    uint32_t row;  // in the table of arrays
    bool taken;    // by a reduction at hand
  };
  // A reduction at hand: its array and this item's place in it.
  struct Work {
    Partial partial;
    DType dtype;
    uint32_t lanes, array, place;
  };

  uint64_t item_count() const;
  std::vector<size_t> axes_of(std::span<const Id> ranges) const;
  uint32_t place(std::span<const size_t> without);
  const Array* take_array(DType dtype, uint32_t lanes);
  bool start(const Partial& partial);
  void finish(std::span<const size_t> axes, bool again, std::vector<uint32_t>& out);
  void step(size_t axis, int64_t from, int64_t to);
  void combine_places(const Work& work, size_t axis, int64_t from, int64_t to);
  uint32_t scaled(uint32_t index, int64_t factor);
  uint32_t constant(DType dtype, int64_t value) {
    return writer_.inst(PGR_OP_CONST, dtype, 1, {}, static_cast<uint64_t>(value));
  }
  uint32_t op(uint16_t number, uint32_t a, uint32_t b);
  void barrier() { writer_.inst(PGR_OP_BARRIER, DType::Void, 1, {}); }
  DType index_dtype() const { return static_cast<DType>(writer_.insts()[items_[0].id].dtype); }
  int64_t stride(size_t axis) const;

  IrWriter& writer_;
  const pgr_device_caps& caps_;
  std::vector<LaunchIds::Item> items_;
  std::vector<Array> arrays_;
  std::vector<Work> work_;
  uint64_t local_bytes_ = 0;
  bool used_ = false;  // other items may still read the arrays
};

}  // namespace plugrad::codegen
