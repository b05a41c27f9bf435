#include "codegen/emit/accumulators.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codegen/emit/group_reduce.h"
#include "codegen/emit/ir_bits.h"

namespace plugrad::codegen {

uint32_t Accumulators::load(Id reduce) {
  const uint32_t zero = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 0);
  return writer_.inst(PGR_OP_LOAD, graph_[reduce].dtype, lanes_[reduce],
                      {numbers_.at(reduce), zero});
}

void Accumulators::store(Id reduce, uint32_t value) {
  store_at(numbers_.at(reduce), reduce, value);
}

void Accumulators::begin_parts(std::span<const Id> reduces) {
  for (Id reduce : reduces) {
    if (!is_float_sum(graph_, reduce)) continue;
    totals_[reduce] = numbers_.at(reduce);
    numbers_[reduce] = make(reduce);
  }
}

void Accumulators::end_parts(std::span<const Id> reduces) {
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
  const uint32_t one = writer_.inst(PGR_OP_CONST, dtype, 1, {}, ir_bits(graph_, node));
  return lanes_[reduce] == 1 ? one : writer_.inst(PGR_OP_VECTOR, dtype, lanes_[reduce], {one});
}

void Accumulators::store_at(uint32_t array, Id reduce, uint32_t value) {
  const uint32_t zero = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 0);
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
  // Those that are multiplied by a factor of the first product are the others' side.
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
