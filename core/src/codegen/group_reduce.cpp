// Each item writes what it has to its place in an array. Then, a barrier after each step, the first
// items of an axis take over the values of up to seven others each, until item 0 has them all.
#include "codegen/group_reduce.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/claims.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kValuesPerStep = 8;

uint16_t number_of(Op op) {
  return static_cast<uint16_t>(op);
}

}  // namespace

uint32_t write_combined(IrWriter& writer, const pgr_device_caps& caps, Op op, uint32_t sum,
                        uint32_t value) {
  const auto dtype = static_cast<DType>(writer.insts()[sum].dtype);
  const uint32_t lanes = writer.insts()[sum].lanes;
  if (op != Op::Max || claims(caps, op, dtype))
    return writer.inst(number_of(op), dtype, lanes, {sum, value});
  uint32_t take = writer.inst(PGR_OP_CMPLT, DType::Bool, lanes, {sum, value});
  const uint32_t result = writer.inst(PGR_OP_WHERE, dtype, lanes, {take, value, sum});
  if (!is_float(dtype)) return result;
  take = writer.inst(PGR_OP_CMPEQ, DType::Bool, lanes, {value, value});
  return writer.inst(PGR_OP_WHERE, dtype, lanes, {take, result, value});
}

std::vector<uint32_t> GroupReducer::reduce(std::span<const Partial> partials,
                                           std::span<const Id> ranges, bool again) {
  const std::vector<size_t> axes = axes_of(ranges);
  std::vector<uint32_t> out;
  for (const Partial& partial : partials) {
    if (start(partial)) continue;
    if (!work_.empty()) finish(axes, again, out);
    const auto& value = writer_.insts()[partial.value];
    require(start(partial),
            "[codegen] a reduction over {} work-items of {} lanes of {} needs more local memory "
            "than the device's {} bytes",
            item_count(), value.lanes, name_of(static_cast<DType>(value.dtype)), caps_.local_bytes);
  }
  finish(axes, again, out);
  return out;
}

uint64_t GroupReducer::item_count() const {
  uint64_t count = 1;
  for (const LaunchIds::Item& item : items_) count *= static_cast<uint64_t>(item.size);
  return count;
}

std::vector<size_t> GroupReducer::axes_of(std::span<const Id> ranges) const {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < items_.size(); ++axis)
    if (std::ranges::find_first_of(items_[axis].ranges, ranges) != items_[axis].ranges.end())
      axes.push_back(axis);
  return axes;
}

int64_t GroupReducer::stride(size_t axis) const {
  int64_t stride = 1;
  for (size_t i = 0; i < axis; ++i) stride *= items_[i].size;
  return stride;
}

// Takes the reduction into hand, if there is memory for it.
bool GroupReducer::start(const Partial& partial) {
  const pgr_ir_inst value = writer_.insts()[partial.value];
  const auto dtype = static_cast<DType>(value.dtype);
  const Array* array = take_array(dtype, value.lanes);
  if (array == nullptr) return false;
  work_.push_back({partial, dtype, value.lanes, array->row, 0});
  return true;
}

const GroupReducer::Array* GroupReducer::take_array(DType dtype, uint32_t lanes) {
  for (Array& array : arrays_)
    if (!array.taken && array.dtype == dtype && array.lanes == lanes) {
      array.taken = true;
      return &array;
    }
  const uint64_t count = item_count() * lanes, bytes = count * size_of(dtype);
  if (local_bytes_ + bytes > caps_.local_bytes) return nullptr;
  local_bytes_ += bytes;
  const uint32_t row = writer_.array(
      {PGR_SPACE_LOCAL, static_cast<uint32_t>(dtype), size_of(dtype) * lanes, lanes, count});
  arrays_.push_back({dtype, lanes, row, true});
  return &arrays_.back();
}

void GroupReducer::finish(std::span<const size_t> axes, bool again, std::vector<uint32_t>& out) {
  if (used_ || again) barrier();
  used_ = true;
  const uint32_t own = place({});
  for (Work& work : work_) {
    work.array = writer_.inst(PGR_OP_ARRAY, work.dtype, 1, {}, work.array);
    work.place = scaled(own, work.lanes);
    writer_.inst(PGR_OP_STORE, DType::Void, work.lanes,
                 {work.array, work.place, work.partial.value});
  }
  barrier();
  for (size_t axis : axes)
    for (int64_t n = items_[axis].size, to; n > 1; n = to) {
      to = (n + kValuesPerStep - 1) / kValuesPerStep;
      step(axis, n, to);
    }
  const uint32_t first = place(axes);
  for (const Work& work : work_)
    out.push_back(
        writer_.inst(PGR_OP_LOAD, work.dtype, work.lanes, {work.array, scaled(first, work.lanes)}));
  work_.clear();
  for (Array& array : arrays_) array.taken = false;
}

// The place of this item, with number 0 along some axes.
uint32_t GroupReducer::place(std::span<const size_t> without) {
  uint32_t sum = UINT32_MAX;
  for (size_t axis = 0; axis < items_.size(); ++axis) {
    if (std::ranges::find(without, axis) != without.end()) continue;
    const uint32_t part = scaled(items_[axis].id, stride(axis));
    sum = sum == UINT32_MAX ? part : op(PGR_OP_ADD, sum, part);
  }
  return sum == UINT32_MAX ? constant(index_dtype(), 0) : sum;
}

// Of `from` values along the axis `to` remain.
void GroupReducer::step(size_t axis, int64_t from, int64_t to) {
  const uint32_t id = items_[axis].id;
  const uint32_t works = op(PGR_OP_CMPLT, id, constant(index_dtype(), to));
  const uint32_t block = writer_.inst(PGR_OP_IF, DType::Void, 1, {works});
  for (const Work& work : work_) combine_places(work, axis, from, to);
  writer_.inst(PGR_OP_END_IF, DType::Void, 1, {block});
  barrier();
}

void GroupReducer::combine_places(const Work& work, size_t axis, int64_t from, int64_t to) {
  uint32_t sum = writer_.inst(PGR_OP_LOAD, work.dtype, work.lanes, {work.array, work.place});
  for (int64_t at = to; at < from; at += to) {
    const uint32_t offset = constant(index_dtype(), at * stride(axis) * work.lanes);
    std::vector<uint32_t> sources = {work.array, op(PGR_OP_ADD, work.place, offset)};
    if (at + to > from) {
      sources.push_back(op(PGR_OP_CMPLT, items_[axis].id, constant(index_dtype(), from - at)));
      sources.push_back(writer_.inst(PGR_OP_CONST, work.dtype, 1, {}, work.partial.identity));
    }
    const uint32_t other = writer_.inst(PGR_OP_LOAD, work.dtype, work.lanes, sources);
    sum = write_combined(writer_, caps_, work.partial.op, sum, other);
  }
  writer_.inst(PGR_OP_STORE, DType::Void, work.lanes, {work.array, work.place, sum});
}

uint32_t GroupReducer::scaled(uint32_t index, int64_t factor) {
  return factor == 1 ? index : op(PGR_OP_MUL, index, constant(index_dtype(), factor));
}

uint32_t GroupReducer::op(uint16_t number, uint32_t a, uint32_t b) {
  const DType dtype = number == PGR_OP_CMPLT ? DType::Bool : index_dtype();
  return writer_.inst(number, dtype, 1, {a, b});
}

}  // namespace plugrad::codegen
