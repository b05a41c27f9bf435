// A group reduction writes each work-item's value to an array, one row per reduction. In each step,
// followed by a barrier, the first work-items of an axis combine up to eight values each, until
// work-item 0 has the result.
#include "codegen/emit/reductions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {
namespace {

// Terms: sums above kLong are blocked; blocks have kShortest to kPart terms. Chosen for an error
// below 1.5e-6 (docs/accuracy.md, "Sums of floats"), not for speed.
constexpr int64_t kLong = 1024, kPart = 512, kShortest = 32;
// Accumulators of a blocked sum; with more, the totals would not fit the registers beside them.
// Chosen, not measured.
constexpr size_t kMostSums = 12;

// The largest divisor of `size` in [most / 4, most]; `most` if there is none.
int64_t step_of(int64_t size, int64_t most) {
  for (int64_t step = most; step >= most / 4 && step > 1; --step)
    if (size % step == 0) return step;
  return most;
}

// Values that the work-items of a group reduce in one iteration. Chosen, not measured.
constexpr int64_t kValuesPerStep = 8;

uint16_t number_of(Op op) {
  return static_cast<uint16_t>(op);
}

// Whether the reduction is a float sum, the only kind that is blocked.
bool is_float_sum(const Graph& g, Id reduce) {
  return is_float(g[reduce].dtype) && reduce_parts(g, reduce).op == Op::Add;
}

}  // namespace

std::optional<SumBlocks> blocks_of_sums(const Graph& g, std::span<const Id> loops,
                                        std::span<const Id> sums) {
  int64_t terms = 0;  // terms that an accumulator takes per iteration of the innermost loop
  for (Id sum : sums) {
    const ReduceParts parts = reduce_parts(g, sum);
    if (!is_float_sum(g, sum)) continue;
    if (std::ranges::any_of(parts.values, [&](Id v) { return g[v].op == Op::Wmma; })) return {};
    terms = std::max(terms, static_cast<int64_t>(parts.values.size()));
  }
  if (terms == 0 || sums.size() > kMostSums) return {};
  int64_t all = terms;
  for (Id loop : loops) all *= range_size(g, loop);
  if (all <= kLong) return {};
  for (size_t i = loops.size(); i-- > 0; terms *= range_size(g, loops[i])) {
    if (terms * range_size(g, loops[i]) <= kPart) continue;
    const bool is_last = i + 1 == loops.size();
    if (!is_last && terms >= kShortest) return SumBlocks{i + 1, 0};
    const int64_t most = kPart / terms;
    if (most < 2 || is_bounded(g[loops[i]])) return {};
    return SumBlocks{i, step_of(range_size(g, loops[i]), most)};
  }
  return {};
}

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

// The array for the type with up to `rows` rows, as far as they fit. An existing array keeps its
// size.
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

// Reduces `from` values along the axis to `to`, in each row.
void GroupReducer::step(const Batch& batch, size_t axis, int64_t from, int64_t to) {
  const uint32_t works = op(PGR_OP_CMPLT, items_[axis].id, constant(to));
  const uint32_t block = writer_.begin_if(works);
  if (batch.rows == 1) {
    combine_places(batch, batch.place, axis, from, to);
  } else {
    const uint32_t row =
        writer_.inst(PGR_OP_LOOP, index_dtype(), 1, {constant(0), constant(batch.rows)});
    const uint32_t offset = scaled(row, item_count() * batch.array.lanes);
    combine_places(batch, op(PGR_OP_ADD, batch.place, offset), axis, from, to);
    writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {row});
  }
  writer_.end_if(block);
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
      sources.push_back(writer_.constant(dtype, batch.identity));
    }
    const uint32_t other = writer_.inst(PGR_OP_LOAD, dtype, lanes, sources);
    sum = write_combined(writer_, caps_, batch.op, sum, other);
  }
  writer_.inst(PGR_OP_STORE, DType::Void, lanes, {batch.pointer, place, sum});
}

// This work-item's element in a row, with number 0 along the axes `without`.
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
  return writer_.constant(index_dtype(), static_cast<uint64_t>(value));
}

uint32_t GroupReducer::op(uint16_t number, uint32_t a, uint32_t b) {
  const DType dtype = number == PGR_OP_CMPLT ? DType::Bool : index_dtype();
  return writer_.inst(number, dtype, 1, {a, b});
}

uint32_t Accumulators::load(Id reduce) {
  const uint32_t zero = writer_.constant(DType::I32, 0);
  return writer_.inst(PGR_OP_LOAD, graph_[reduce].dtype, lanes_[reduce],
                      {numbers_.at(reduce), zero});
}

void Accumulators::store(Id reduce, uint32_t value) {
  store_at(numbers_.at(reduce), reduce, value);
}

void Accumulators::begin_blocks(std::span<const Id> reduces) {
  for (Id reduce : reduces) {
    if (!is_float_sum(graph_, reduce)) continue;
    totals_[reduce] = numbers_.at(reduce);
    numbers_[reduce] = make(reduce);
  }
}

void Accumulators::end_blocks(std::span<const Id> reduces) {
  for (Id reduce : reduces) {
    if (!is_float_sum(graph_, reduce)) continue;
    const uint32_t part = load(reduce);
    numbers_[reduce] = totals_.at(reduce);
    store(reduce, write_combined(writer_, caps_, Op::Add, load(reduce), part));
  }
}

uint32_t Accumulators::make(Id reduce) {
  const DType dtype = graph_[reduce].dtype;
  const uint32_t lanes = lanes_[reduce], type = static_cast<uint32_t>(dtype);
  const uint32_t row =
      writer_.array({PGR_SPACE_PRIVATE, type, size_of(dtype) * lanes, lanes, lanes});
  const uint32_t array = writer_.inst(PGR_OP_ARRAY, dtype, 1, {}, row);
  store_at(array, reduce, identity(reduce));
  return array;
}

uint32_t Accumulators::identity(Id reduce) {
  const DType dtype = graph_[reduce].dtype;
  const Id node = reduce_identity(graph_, reduce_parts(graph_, reduce).op, dtype);
  const uint32_t one = writer_.constant(dtype, ir_bits(graph_, node));
  return lanes_[reduce] == 1 ? one : writer_.inst(PGR_OP_VECTOR, dtype, lanes_[reduce], {one});
}

void Accumulators::store_at(uint32_t array, Id reduce, uint32_t value) {
  const uint32_t zero = writer_.constant(DType::I32, 0);
  writer_.inst(PGR_OP_STORE, DType::Void, lanes_[reduce], {array, zero, value});
}

std::vector<Id> update_order(const Graph& g, std::span<const Id> reduces) {
  std::vector<Id> order(reduces.begin(), reduces.end()), first, second;  // factors
  std::map<Id, Id> products;                                             // by Reduce
  for (Id reduce : reduces) {
    Id term = reduce_parts(g, reduce).values[0];
    if (g[term].op == Op::Where) term = g[term].src[1];
    if (g[term].op != Op::Mul) return order;
    products[reduce] = term;
  }
  if (reduces.size() < 2) return order;
  const auto place = [](const std::vector<Id>& factors, Id id) {
    return static_cast<size_t>(std::ranges::find(factors, id) - factors.begin());
  };
  const auto note = [&](std::vector<Id>& factors, Id id) {
    if (place(factors, id) == factors.size()) factors.push_back(id);
  };
  // The two sides of the products: factors of the first one decide which side a factor is on.
  const std::array<Id, 2> start = {g[products[order[0]]].src[0], g[products[order[0]]].src[1]};
  for (Id reduce : reduces) {
    const Node& product = g[products[reduce]];
    for (const auto& [factor, other] :
         {std::pair(product.src[0], product.src[1]), std::pair(product.src[1], product.src[0])}) {
      if (factor == start[0]) note(second, other);
      if (factor == start[1]) note(first, other);
    }
  }
  if (first.size() * second.size() != reduces.size() || first.size() == second.size()) return order;
  const std::vector<Id>& more = first.size() > second.size() ? first : second;
  std::ranges::stable_sort(order, {}, [&](Id reduce) {
    const Node& product = g[products[reduce]];
    return std::min(place(more, product.src[0]), place(more, product.src[1]));
  });
  return order;
}

}  // namespace plugrad::codegen
