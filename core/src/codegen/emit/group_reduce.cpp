// Each item writes what it has to its place in an array, one row for each reduction. Then, a
// barrier after each step, the first items of an axis take over the values of up to seven others
// each, until item 0 has them all.
#include "codegen/emit/group_reduce.h"

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

void GroupReducer::start(std::vector<LaunchIds::WorkItemAxis> items, size_t types) {
  items_ = std::move(items);
  share_bytes_ = caps_.local_bytes / std::max<size_t>(types, 1);
}

std::vector<uint32_t> GroupReducer::reduce(std::span<const Partial> partials,
                                           std::span<const Id> ranges, bool again) {
  const std::vector<size_t> axes = axes_of(ranges);
  std::vector<uint32_t> out(partials.size());
  for (size_t at = 0, count; at < partials.size(); at += count) {
    count = 1;
    while (at + count < partials.size() && is_like(partials[at], partials[at + count])) ++count;
    const Array& array = array_for(writer_.insts()[partials[at].value], count);
    count = std::min<size_t>(count, array.rows);
    reduce_batch(partials.subspan(at, count), axes, again, std::span(out).subspan(at, count));
  }
  return out;
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

bool GroupReducer::is_like(const Partial& a, const Partial& b) const {
  const pgr_ir_inst &x = writer_.insts()[a.value], &y = writer_.insts()[b.value];
  return a.op == b.op && x.dtype == y.dtype && x.lanes == y.lanes;
}

// As many rows as are wanted and fit; an array made before keeps its size.
const GroupReducer::Array& GroupReducer::array_for(const pgr_ir_inst& value, uint64_t rows) {
  const auto dtype = static_cast<DType>(value.dtype);
  const uint32_t lanes = value.lanes;
  for (const Array& array : arrays_)
    if (array.dtype == dtype && array.lanes == lanes) return array;
  const uint64_t row = static_cast<uint64_t>(item_count()) * lanes;
  const uint64_t fitting = std::min(rows, share_bytes_ / (row * size_of(dtype)));
  require(fitting > 0,
          "[codegen] a reduction over {} work-items of {} lanes of {} needs more local memory than "
          "the {} bytes there are for it",
          item_count(), lanes, name_of(dtype), share_bytes_);
  const uint32_t number = writer_.array({PGR_SPACE_LOCAL, static_cast<uint32_t>(dtype),
                                         size_of(dtype) * lanes, lanes, row * fitting});
  arrays_.push_back({dtype, lanes, number, fitting});
  return arrays_.back();
}

void GroupReducer::reduce_batch(std::span<const Partial> partials, std::span<const size_t> axes,
                                bool again, std::span<uint32_t> out) {
  if (used_ || again) barrier();
  used_ = true;
  Batch batch{array_for(writer_.insts()[partials[0].value], partials.size()),
              partials[0].op,
              partials[0].identity,
              0,
              0,
              static_cast<int64_t>(partials.size())};
  const auto [dtype, lanes, number, rows] = batch.array;
  batch.pointer = writer_.inst(PGR_OP_ARRAY, dtype, 1, {}, number);
  batch.place = scaled(place({}), lanes);
  for (int64_t row = 0; row < batch.rows; ++row)
    writer_.inst(
        PGR_OP_STORE, DType::Void, lanes,
        {batch.pointer, row_of(batch, batch.place, row), partials[static_cast<size_t>(row)].value});
  barrier();
  for (size_t axis : axes)
    for (int64_t n = items_[axis].size, to; n > 1; n = to) {
      to = (n + kValuesPerStep - 1) / kValuesPerStep;
      step(batch, axis, n, to);
    }
  const uint32_t first = scaled(place(axes), lanes);
  for (int64_t row = 0; row < batch.rows; ++row)
    out[static_cast<size_t>(row)] =
        writer_.inst(PGR_OP_LOAD, dtype, lanes, {batch.pointer, row_of(batch, first, row)});
}

// Of `from` values along the axis `to` remain, in each row.
void GroupReducer::step(const Batch& batch, size_t axis, int64_t from, int64_t to) {
  const uint32_t works = op(PGR_OP_CMPLT, items_[axis].id, constant(to));
  const uint32_t block = writer_.inst(PGR_OP_IF, DType::Void, 1, {works});
  if (batch.rows == 1) {
    combine_places(batch, batch.place, axis, from, to);
  } else {
    const uint32_t row =
        writer_.inst(PGR_OP_LOOP, index_dtype(), 1, {constant(0), constant(batch.rows)});
    const uint32_t offset = scaled(row, item_count() * batch.array.lanes);
    combine_places(batch, op(PGR_OP_ADD, batch.place, offset), axis, from, to);
    writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {row});
  }
  writer_.inst(PGR_OP_END_IF, DType::Void, 1, {block});
  barrier();
}

void GroupReducer::combine_places(const Batch& batch, uint32_t place, size_t axis, int64_t from,
                                  int64_t to) {
  const auto [dtype, lanes, number, rows] = batch.array;
  uint32_t sum = writer_.inst(PGR_OP_LOAD, dtype, lanes, {batch.pointer, place});
  for (int64_t at = to; at < from; at += to) {
    const uint32_t offset = constant(at * stride(axis) * lanes);
    std::vector<uint32_t> sources = {batch.pointer, op(PGR_OP_ADD, place, offset)};
    if (at + to > from) {
      sources.push_back(op(PGR_OP_CMPLT, items_[axis].id, constant(from - at)));
      sources.push_back(writer_.inst(PGR_OP_CONST, dtype, 1, {}, batch.identity));
    }
    const uint32_t other = writer_.inst(PGR_OP_LOAD, dtype, lanes, sources);
    sum = write_combined(writer_, caps_, batch.op, sum, other);
  }
  writer_.inst(PGR_OP_STORE, DType::Void, lanes, {batch.pointer, place, sum});
}

// The element of this item in a row, with number 0 along some axes.
uint32_t GroupReducer::place(std::span<const size_t> without) {
  uint32_t sum = UINT32_MAX;
  for (size_t axis = 0; axis < items_.size(); ++axis) {
    if (std::ranges::find(without, axis) != without.end()) continue;
    const uint32_t part = scaled(items_[axis].id, stride(axis));
    sum = sum == UINT32_MAX ? part : op(PGR_OP_ADD, sum, part);
  }
  return sum == UINT32_MAX ? constant(0) : sum;
}

uint32_t GroupReducer::row_of(const Batch& batch, uint32_t place, int64_t row) {
  return row == 0 ? place : op(PGR_OP_ADD, place, constant(row * item_count() * batch.array.lanes));
}

uint32_t GroupReducer::scaled(uint32_t index, int64_t factor) {
  return factor == 1 ? index : op(PGR_OP_MUL, index, constant(factor));
}

uint32_t GroupReducer::constant(int64_t value) {
  return writer_.inst(PGR_OP_CONST, index_dtype(), 1, {}, static_cast<uint64_t>(value));
}

uint32_t GroupReducer::op(uint16_t number, uint32_t a, uint32_t b) {
  const DType dtype = number == PGR_OP_CMPLT ? DType::Bool : index_dtype();
  return writer_.inst(number, dtype, 1, {a, b});
}

}  // namespace plugrad::codegen
