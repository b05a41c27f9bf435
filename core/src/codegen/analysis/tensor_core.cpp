#include "codegen/analysis/tensor_core.h"

#include <bit>

#include "codegen/analysis/access.h"
#include "codegen/claims.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

namespace {

uint32_t axis_of(uint8_t bit) {
  return bit >> 4;
}
uint32_t weight_of(uint8_t bit) {
  return bit & 15;
}

// Nothing where the bits of so many lanes and work-items do not fit the layout.
std::optional<LaneBits> bits_of_tile(std::span<const uint8_t> layout, uint32_t lanes,
                                     uint32_t items) {
  if (!std::has_single_bit(lanes) || !std::has_single_bit(items)) return {};
  const auto lane_bits = static_cast<size_t>(std::countr_zero(lanes)),
             item_bits = static_cast<size_t>(std::countr_zero(items));
  if (lane_bits + item_bits > layout.size()) return {};
  return LaneBits{layout.subspan(0, lane_bits), layout.subspan(lane_bits, item_bits)};
}

struct Edge {
  uint32_t axis, size;
};

// Whether each element of the tile is a lane: once, or, of what is only read, several times.
bool covers(const LaneBits& bits, Edge rows, Edge columns, bool may_repeat) {
  uint32_t row_bits = 0, column_bits = 0;
  for (std::span<const uint8_t> part : {bits.lane, bits.item})
    for (uint8_t bit : part) {
      if (bit == 0 && may_repeat) continue;
      if (axis_of(bit) != rows.axis && axis_of(bit) != columns.axis) return false;
      uint32_t& found = axis_of(bit) == rows.axis ? row_bits : column_bits;
      if (found >> weight_of(bit) & 1) return false;
      found |= 1u << weight_of(bit);
    }
  return row_bits == rows.size - 1 && column_bits == columns.size - 1;
}

std::optional<LaneLayout> layout_of(const pgr_tensor_core& core) {
  const auto a = bits_of_tile(core.layout_a, core.elems_a, core.threads),
             b = bits_of_tile(core.layout_b, core.elems_b, core.threads),
             c = bits_of_tile(core.layout_c, core.elems_c, core.threads);
  if (!a || !b || !c) return {};
  const Edge m{PGR_LANE_AXIS_M, core.m}, n{PGR_LANE_AXIS_N, core.n}, k{PGR_LANE_AXIS_K, core.k};
  if (!covers(*a, m, k, true) || !covers(*b, k, n, true) || !covers(*c, m, n, false)) return {};
  return LaneLayout{*a, *b, *c};
}

}  // namespace

std::optional<TensorCore> find_tensor_core(const pgr_device_caps& caps, uint32_t number) {
  if (number >= caps.tensor_core_count || caps.has_local == 0) return {};
  const pgr_tensor_core& core = caps.tensor_cores[number];
  if (core.kind != PGR_TENSOR_CORE_LANES || core.dtype_out != PGR_DTYPE_F32) return {};
  const auto input = static_cast<DType>(core.dtype_in);
  if (input != DType::F16 && input != DType::BF16 && input != DType::F32) return {};
  const auto layout = layout_of(core);
  if (!layout || !claims(caps, Op::Wmma, input)) return {};
  return TensorCore{number, core.m,       core.n,       core.k,       core.threads,
                    input,  core.elems_a, core.elems_b, core.elems_c, core.fraction_bits_in != 0,
                    *layout};
}

// Neighbouring bits of the work-item that stay neighbours are taken together.
Id place_along(Graph& g, const LaneBits& bits, uint32_t axis, Id item, uint32_t lane) {
  Id place = g.index(0);
  int64_t constant = 0;
  for (size_t i = 0; i < bits.lane.size(); ++i)
    if (axis_of(bits.lane[i]) == axis)
      constant |= int64_t{lane >> i & 1} << weight_of(bits.lane[i]);
  for (size_t i = 0; i < bits.item.size();) {
    size_t length = 1;
    while (i + length < bits.item.size() && bits.item[i + length] == bits.item[i] + length)
      ++length;
    if (axis_of(bits.item[i]) == axis) {
      Id part = g.binary(Op::FloorDiv, item, g.index(int64_t{1} << i));
      part = g.binary(Op::FloorMod, part, g.index(int64_t{1} << length));
      const Id weight = g.index(int64_t{1} << weight_of(bits.item[i]));
      place = g.binary(Op::Add, place, g.binary(Op::Mul, part, weight));
    }
    i += length;
  }
  return g.binary(Op::Add, place, g.index(constant));
}

int64_t place_of(const LaneBits& bits, uint32_t axis, uint32_t item, uint32_t lane) {
  int64_t place = 0;
  const auto add = [&](std::span<const uint8_t> part, uint32_t number) {
    for (size_t i = 0; i < part.size(); ++i)
      if (axis_of(part[i]) == axis) place |= int64_t{number >> i & 1} << weight_of(part[i]);
  };
  add(bits.lane, lane);
  add(bits.item, item);
  return place;
}

bool has_wmma(const Graph& g, Id root) {
  return !nodes_of(g, root, Op::Wmma).empty();
}

}  // namespace plugrad::codegen
