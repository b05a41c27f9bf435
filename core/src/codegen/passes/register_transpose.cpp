#include "codegen/passes/register_transpose.h"

#include <algorithm>
#include <bit>

#include "codegen/analysis/lanes.h"
#include "symbolic/linear.h"

namespace plugrad::codegen {
namespace {

struct Placed {
  size_t number;  // among the stores
  Linear index;
};

bool are_alike(const LaneStore& a, const LaneStore& b) {
  return a.memory == b.memory && a.stride == b.stride && a.lanes == b.lanes && a.loops == b.loops;
}

class RegisterTranspose {
 public:
  RegisterTranspose(Graph& g, Simplifier& simplify, std::span<const LaneStore> stores)
      : g_(g), simplify_(simplify), stores_(stores) {}

  /// `row` holds stores of neighbours, as many as a power of two that is no larger than their
  /// lanes.
  void transpose(std::span<const Placed> row, std::vector<Id>& out) {
    const LaneStore& first = stores_[row[0].number];
    const auto rows = static_cast<uint32_t>(row.size()), columns = first.lanes;
    std::vector<Id> vectors;
    for (const Placed& p : row) vectors.push_back(stores_[p.number].value);
    for (uint32_t left = rows; left > 1; left /= 2) vectors = shuffled(vectors, columns);
    for (uint32_t lane = 0; lane < columns; ++lane) {
      const Id index = simplify_(
          g_.binary(Op::Add, first.index, g_.index(static_cast<int64_t>(lane) * first.stride)));
      Id value = vectors[lane / (columns / rows)];
      if (rows < columns)
        value = g_.add(Op::Lane, g_[value].dtype, {value},
                       lane_arg(lane % (columns / rows) * rows, rows));
      out.push_back(g_.add(Op::Store, DType::Void, {first.memory, index, value}));
    }
  }

 private:
  /// Vectors of the first half in turns with those of the second half, lane by lane: as many times
  /// as the number of vectors has bits, and they are transposed.
  std::vector<Id> shuffled(const std::vector<Id>& vectors, uint32_t lanes) {
    std::vector<Id> out;
    const size_t half = vectors.size() / 2;
    for (size_t i = 0; i < half; ++i)
      for (uint32_t begin : {0u, lanes / 2}) {
        std::vector<Id> picked;
        for (uint32_t lane = begin; lane < begin + lanes / 2; ++lane)
          for (Id from : {vectors[i], vectors[i + half]})
            picked.push_back(g_.add(Op::Lane, g_[from].dtype, {from}, lane_arg(lane, 1)));
        out.push_back(g_.add(Op::Vector, g_[vectors[i]].dtype, picked, lanes));
      }
    return out;
  }

  Graph& g_;
  Simplifier& simplify_;
  std::span<const LaneStore> stores_;
};

/// Those of `all` whose places differ from the first one's by a number only, by that number.
std::vector<Placed> take_row(std::vector<Placed>& all, std::span<const LaneStore> stores) {
  std::vector<Placed> row;
  const LaneStore& first = stores[all[0].number];
  const std::vector<Term> terms = all[0].index.terms;
  const auto belongs = [&](const Placed& p) {
    return p.index.terms == terms && are_alike(stores[p.number], first);
  };
  std::ranges::copy_if(all, std::back_inserter(row), belongs);
  std::erase_if(all, belongs);
  std::ranges::sort(row, {}, [](const Placed& p) { return p.index.constant; });
  return row;
}

/// How many of the row, from the first on, are neighbours: a power of two, `most` at most.
size_t neighbours(std::span<const Placed> row, size_t most) {
  size_t count = 1;
  while (count < std::min(row.size(), most) &&
         row[count].index.constant == row[count - 1].index.constant + 1)
    ++count;
  return std::bit_floor(count);
}

}  // namespace

std::vector<Id> transpose_stores(Graph& g, Simplifier& simplify, std::span<const LaneStore> stores,
                                 std::vector<bool>& is_left) {
  is_left.assign(stores.size(), true);
  std::vector<Placed> all;
  for (size_t i = 0; i < stores.size(); ++i)
    if (const auto index = linear_of(g, stores[i].index)) all.push_back({i, *index});
  RegisterTranspose transposer(g, simplify, stores);
  std::vector<Id> out;
  while (!all.empty()) {
    const std::vector<Placed> row = take_row(all, stores);
    for (size_t at = 0; at < row.size();) {
      const auto rest = std::span(row).subspan(at);
      const size_t count = neighbours(rest, stores[row[at].number].lanes);
      if (count > 1) {
        transposer.transpose(rest.first(count), out);
        for (const Placed& p : rest.first(count)) is_left[p.number] = false;
      }
      at += count;
    }
  }
  return out;
}

}  // namespace plugrad::codegen
