// tensor_core: computes a sum of products in tiles that the work-items of a team hold together; the
// tensor core's layout assigns elements to lanes. A schedule step, no local rewrite.
//   before   store %c[%i*N + %j],
//                  (reduce add (cast f32 %a[%i*K + %l]) * (cast f32 %b[%l*N + %j]), %l)
//   after    for each lane of C, at row m and column n of a tile:        %w = range 32 warp
//            store %c[(%i*16 + m(%w))*N + %j*8 + n(%w)], (lane (reduce add (wmma A, B, 0), %l))
// A and B are expressions over the elements of a tile (analysis/tensor_core.h). Elements outside
// the matrices are 0 and are not stored.
#include "codegen/analysis/tensor_core.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

Id element_range(Graph& g, int64_t size, uint32_t which) {
  return make_range(g, size, kFirstElement + which, AxisKind::Vector);
}

using Kind = ScheduleStep::Kind;

// The factors of a product in the tensor core's input dtype; kNoId for other values.
std::pair<Id, Id> factors(const Kernel& kernel, Id value, DType input) {
  const Graph& g = kernel.graph;
  const auto is_widened = [&](Id id) {
    return g[id].op == Op::Cast && g[g[id].src[0]].dtype == input;
  };
  if (input == DType::F32)
    return g[value].op == Op::Mul ? std::pair(g[value].src[0], g[value].src[1])
                                  : std::pair(kNoId, kNoId);
  if (g[value].op == Op::Mul && is_widened(g[value].src[0]) && is_widened(g[value].src[1]))
    return {g[g[value].src[0]].src[0], g[g[value].src[1]].src[0]};
  // With contraction the product need not be rounded itself, as in a multiply-add.
  if (kernel.options.contract && is_widened(value) && g[g[value].src[0]].op == Op::Mul) {
    const Id product = g[value].src[0];
    return {g[product].src[0], g[product].src[1]};
  }
  return {kNoId, kNoId};
}

// The innermost output loop on which `id` depends and `other` does not.
Id own_axis(const Kernel& kernel, OpenRanges& open, Id id, Id other) {
  Id found = kNoId;
  for (Id axis : kernel.axes)
    if (range_kind(kernel.graph[axis]) == AxisKind::Loop && !is_bounded(kernel.graph[axis]) &&
        open.depends(id, axis) && !open.depends(other, axis))
      found = axis;
  return found;
}

// A range in tiles of `size`; inside() is the condition for an element to exist.
struct Tiled {
  Id range, tile;
  int64_t size, count;
  std::vector<Id> ranges(const Graph& g) const {
    return g[tile].op == Op::Range ? std::vector{tile} : std::vector<Id>{};
  }
};

class Tiler {
 public:
  Tiler(Kernel& kernel, const TensorCore& core, const MatrixProduct& product, Id k, Id item)
      : kernel_(kernel),
        core_(core),
        product_(product),
        item_(item),
        m_(tiled(product.rows, core.m)),
        n_(tiled(product.columns, core.n)),
        k_(tiled(k, core.k)) {}

  std::vector<Id> stores(Id store) {
    const Id sum = sum_of_tiles();
    std::vector<Id> out;
    for (uint32_t lane = 0; lane < core_.lanes_c; ++lane) {
      const Id m = index(m_, core_.layout.c, PGR_LANE_AXIS_M, lane),
               n = index(n_, core_.layout.c, PGR_LANE_AXIS_N, lane);
      const std::pair<Id, Id> map[] = {
          {product_.rows, m},
          {product_.columns, n},
          {product_.reduce, g_.add(Op::Lane, DType::F32, {sum}, lane_arg(lane, 1))}};
      Id own = substitute(g_, store, map);
      for (Id gate : {inside(m_, m), inside(n_, n)})
        if (gate != kNoId) own = with_gate(g_, own, gate);
      out.push_back(own);
    }
    return out;
  }

 private:
  Tiled tiled(Id range, int64_t size) {
    const int64_t count = range_size(g_, range), tiles = (count + size - 1) / size;
    const Id tile = tiles == 1
                        ? g_.index(0)
                        : make_range(g_, tiles, range_axis(g_[range]), range_kind(g_[range]));
    return {range, tile, size, count};
  }

  // The coordinate in the matrix of an element of a tile.
  Id place(const Tiled& t, Id element) {
    return g_.binary(Op::Add, g_.binary(Op::Mul, t.tile, g_.index(t.size)), element);
  }
  Id index(const Tiled& t, const LaneBits& bits, uint32_t axis, uint32_t lane) {
    return place(t, coordinate_along(g_, bits, axis, item_, lane));
  }
  // kNoId if all elements exist.
  Id inside(const Tiled& t, Id index) {
    if (t.count % t.size == 0) return kNoId;
    const Id gate = simplify_(g_.binary(Op::CmpLt, index, g_.index(t.count)));
    return is_const(g_, gate) && const_int(g_, gate) == 1 ? kNoId : gate;
  }

  // An operand at the elements of its tile. Rows and columns outside are not stored, so only
  // elements outside along k must be 0.
  Id tile_of(Id operand, const Tiled& t, Id element, Id k_element) {
    const Id own = place(t, element), k = place(k_, k_element);
    const std::pair<Id, Id> map[] = {{t.range, own}, {k_.range, k}};
    Id value = substitute(g_, operand, map);
    OpenRanges open(g_);
    for (Id gate : {inside(t, own), inside(k_, k)})
      if (gate != kNoId) value = gate_loads(g_, open, value, gate);
    const Id gate = inside(k_, k);
    if (gate != kNoId && g_[value].op != Op::Load)  // a gated load is 0 there already
      value = g_.where(gate, value, g_.constant(g_[value].dtype, 0.0));
    return value;
  }

  Id sum_of_tiles() {
    const Id zeros = g_.add(Op::Vector, DType::F32, {g_.constant(DType::F32, 0.0)}, core_.lanes_c);
    const Id row = element_range(g_, core_.m, 0), column = element_range(g_, core_.n, 1),
             k = element_range(g_, core_.k, 2);
    const Id a = tile_of(product_.a, m_, row, k), b = tile_of(product_.b, n_, column, k);
    const Id tile = make_tile_product(g_, core_, {a, b, zeros, row, column, k, item_});
    std::vector<Id> ranges = k_.ranges(g_);
    for (Id r : reduce_parts(g_, product_.reduce).ranges)
      if (r != k_.range) ranges.push_back(r);
    return make_reduce(g_, Op::Add, {&tile, 1}, ranges);
  }

  Kernel& kernel_;
  Graph& g_ = kernel_.graph;
  Simplifier simplify_{g_, kernel_.rules()};
  const TensorCore& core_;
  const MatrixProduct& product_;
  Id item_;
  Tiled m_, n_, k_;
};

}  // namespace

std::optional<MatrixProduct> find_product(const Kernel& kernel, Id store, Id k,
                                          const TensorCore& core, std::string* why) {
  const Graph& g = kernel.graph;
  const auto none = [&](const char* reason) {
    if (why) *why = reason;
    return std::optional<MatrixProduct>();
  };
  const std::vector<Id> reduces = closing(g, store, k);
  if (reduces.size() != 1) return none("a store needs one sum over the axis");
  const ReduceParts parts = reduce_parts(g, reduces[0]);
  if (parts.op != Op::Add || parts.values.size() != 1 || g[reduces[0]].dtype != DType::F32)
    return none("the reduction is no sum in f32");
  if (core.rounds_inputs && !kernel.options.tf32)
    return none("f32 is rounded to tf32 with TF32=1 alone");
  auto [a, b] = factors(kernel, parts.values[0], core.input);
  if (a == kNoId || g[a].dtype != core.input || g[b].dtype != core.input)
    return none("the sum is not of products in the tensor core's dtype");
  if (!nodes_of(g, a, Op::Reduce).empty() || !nodes_of(g, b, Op::Reduce).empty())
    return none("a factor is a reduction");
  for (Id other : nodes_of(g, store, Op::Reduce))
    if (other != reduces[0] && depends_on(g, other, reduces[0]))
      return none("another reduction contains it");
  OpenRanges open(g);
  Id rows = own_axis(kernel, open, a, b), columns = own_axis(kernel, open, b, a);
  if (rows == kNoId || columns == kNoId) return none("the factors are not of an output loop each");
  if (!open.depends(a, k) || !open.depends(b, k))
    return none("a factor does not depend on the axis");
  if (range_axis(g[rows]) >
      range_axis(g[columns])) {  // columns are the axis that adjacent work-items store
    std::swap(rows, columns);
    std::swap(a, b);
  }
  return MatrixProduct{reduces[0], rows, columns, a, b};
}

void use_tensor_core(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  const Id k = kernel.axes[change.axis];
  require(range_kind(g[k]) == AxisKind::Reduce, "[codegen] {}: axis {} is no reduce loop", text,
          change.axis);
  const auto core = find_tensor_core(
      *kernel.caps, static_cast<uint32_t>(std::clamp<int64_t>(change.amount, 0, UINT32_MAX)));
  require(change.amount >= 0 && core.has_value(),
          "[codegen] {}: the device has no such tensor core", text);
  const Id item = make_range(g, core->items, new_axis(kernel), AxisKind::Warp);
  std::vector<Id> stores;
  for (Id store : to_vector(g.sources(kernel.sink))) {
    if (closing(g, store, k).empty()) {
      stores.push_back(store);
      continue;
    }
    require(!has_wmma(g, store), "[codegen] {}: a tensor core computes the store already", text);
    std::string why;
    const auto product = find_product(kernel, store, k, *core, &why);
    require(product.has_value(), "[codegen] {}: {}", text, why);
    for (Id own : Tiler(kernel, *core, *product, k, item).stores(store)) stores.push_back(own);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  replace(kernel, {});
}

void check_beside_tensor_core(const Kernel& kernel, const ScheduleStep& change) {
  const Graph& g = kernel.graph;
  if (change.kind == Kind::TensorCore || !has_wmma(g, kernel.sink)) return;
  const bool is_plain = change.kind == Kind::Upcast || change.kind == Kind::Local ||
                        change.kind == Kind::Thread || change.kind == Kind::Swap ||
                        change.kind == Kind::Unroll || change.names_parameter();
  const bool is_part =
      change.kind == Kind::Block && range_kind(g[kernel.axes[change.axis]]) == AxisKind::Reduce;
  require(is_plain || is_part, "[codegen] {}: not after a tensor_core", to_string({change}));
  if (change.kind == Kind::Unroll || is_part)
    require(range_size(g, kernel.axes[change.axis]) % std::max<int64_t>(change.amount, 1) == 0,
            "[codegen] {}: leaves a remainder, which a tensor core does not add",
            to_string({change}));
}

}  // namespace plugrad::codegen
