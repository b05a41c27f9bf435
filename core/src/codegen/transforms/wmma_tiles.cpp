#include "codegen/transforms/wmma_tiles.h"

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "ir/facts.h"
#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

bool are_neighbours(const Graph& g, Id one, Id other) {
  if (g[one].op != Op::Load || g[other].op != Op::Load) return false;
  const auto a = g.sources(one), b = g.sources(other);
  if (a.size() != 2 || b.size() != 2 || a[0] != b[0]) return false;
  const auto first = linear_of(g, a[1]), second = linear_of(g, b[1]);
  return first && second && first->terms == second->terms &&
         second->constant == first->constant + 1;
}

// A gate that is open in the lane is gone.
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

// What a work-item holds of a tile: the value at the places that the layout's bits give its lanes.
Id lay_out(Graph& g, Simplifier& simplify, Id value, const TileProduct& product,
           const LaneBits& bits, uint32_t lanes) {
  std::vector<Id> elements;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const auto place = [&](uint32_t axis) {
      return place_along(g, bits, axis, product.item, lane);
    };
    const std::pair<Id, Id> map[] = {{product.row, place(PGR_LANE_AXIS_M)},
                                     {product.column, place(PGR_LANE_AXIS_N)},
                                     {product.k, place(PGR_LANE_AXIS_K)}};
    elements.push_back(without_open_gate(g, simplify(substitute(g, value, map))));
  }
  return g.add(Op::Vector, g[value].dtype, in_pairs(g, elements), lanes);
}

}  // namespace

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
