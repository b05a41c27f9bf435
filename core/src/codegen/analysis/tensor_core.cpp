#include "codegen/analysis/tensor_core.h"

#include <bit>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "ir/facts.h"
#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

uint32_t axis_of(uint8_t bit) {
  return bit >> 4;
}
uint32_t weight_of(uint8_t bit) {
  return bit & 15;
}

// Nothing if the layout has too few bits for these lanes and work-items.
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

// Whether every element of the tile is held by one lane, or by several if `may_repeat`.
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

bool are_neighbours(const Graph& g, Id one, Id other) {
  if (g[one].op != Op::Load || g[other].op != Op::Load) return false;
  const auto a = g.sources(one), b = g.sources(other);
  if (a.size() != 2 || b.size() != 2 || a[0] != b[0]) return false;
  const auto first = linear_of(g, a[1]), second = linear_of(g, b[1]);
  return first && second && first->terms == second->terms &&
         second->constant == first->constant + 1;
}

// Drops a gate that is constant true.
Id without_open_gate(Graph& g, Id element) {
  const auto sources = g.sources(element);
  const bool is_open = g[element].op == Op::Load && sources.size() == 4 &&
                       is_const(g, sources[2]) && const_int(g, sources[2]) == 1;
  return is_open ? g.add(Op::Load, g[element].dtype, {sources[0], sources[1]}) : element;
}

std::vector<Id> in_pairs(Graph& g, const std::vector<Id>& elements) {
  std::vector<Id> out;
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool is_pair =
        i % 2 == 0 && i + 1 < elements.size() && are_neighbours(g, elements[i], elements[i + 1]);
    if (!is_pair) {
      out.push_back(elements[i]);
      continue;
    }
    const auto sources = g.sources(elements[i]);
    out.push_back(g.add(Op::Load, g[elements[i]].dtype, {sources[0], sources[1]}, 2));
    ++i;
  }
  return out;
}

// The lanes that a work-item holds of a tile.
Id lay_out(Graph& g, Simplifier& simplify, Id value, const TileProduct& product,
           const LaneBits& bits, uint32_t lanes) {
  std::vector<Id> elements;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const auto place = [&](uint32_t axis) {
      return coordinate_along(g, bits, axis, product.item, lane);
    };
    const std::pair<Id, Id> map[] = {{product.row, place(PGR_LANE_AXIS_M)},
                                     {product.column, place(PGR_LANE_AXIS_N)},
                                     {product.k, place(PGR_LANE_AXIS_K)}};
    elements.push_back(without_open_gate(g, simplify(substitute(g, value, map))));
  }
  return g.add(Op::Vector, g[value].dtype, in_pairs(g, elements), lanes);
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

// Runs of consecutive bits are extracted together.
Id coordinate_along(Graph& g, const LaneBits& bits, uint32_t axis, Id item, uint32_t lane) {
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

int64_t coordinate_of(const LaneBits& bits, uint32_t axis, uint32_t item, uint32_t lane) {
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

TileProduct tile_product(const Graph& g, Id wmma) {
  const auto s = g.sources(wmma);
  return {s[0], s[1], s[2], s[3], s[4], s[5], s[6]};
}

Id make_tile_product(Graph& g, const TensorCore& core, const TileProduct& p) {
  const Id sources[] = {p.a, p.b, p.start, p.row, p.column, p.k, p.item};
  return g.add(Op::Wmma, DType::F32, sources, core.number);
}

Id chain_products(Graph& g, std::span<const Id> products) {
  Id sum = products[0];
  for (Id next : products.subspan(1)) {
    const auto sources = g.sources(next);
    sum = g.add(Op::Wmma, g[next].dtype, {sources[0], sources[1], sum}, g[next].arg);
  }
  return sum;
}

void lay_out_tiles(Kernel& kernel) {
  Graph& g = kernel.graph;
  std::vector<Id> products = nodes_of(g, kernel.sink, Op::Wmma);
  std::erase_if(products, [&](Id id) { return !is_of_tiles(g, id); });
  if (products.empty()) return;
  Simplifier simplify(g, kernel.rules());
  std::vector<std::pair<Id, Id>> map;
  for (Id id : products) {
    const auto core = find_tensor_core(*kernel.caps, static_cast<uint32_t>(g[id].arg));
    ensure(core.has_value(), "[codegen] a product of no tensor core");
    const TileProduct parts = tile_product(g, id);
    const Id a = lay_out(g, simplify, parts.a, parts, core->layout.a, core->lanes_a);
    const Id b = lay_out(g, simplify, parts.b, parts, core->layout.b, core->lanes_b);
    map.emplace_back(id, g.add(Op::Wmma, DType::F32, {a, b, parts.start}, g[id].arg));
  }
  replace(kernel, map);
}

}  // namespace plugrad::codegen
