// The different elements of a tensor, which the host finds.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

// Numbers in the order of the elements; equal elements have equal numbers. NaNs are equal, and
// after all others.
struct Ranks {
  Shape shape;
  Integers of_elements;
};

template <class Key>
Integers ranks_of(const std::vector<Key>& keys) {
  std::map<Key, int64_t> rank;
  for (const Key& key : keys) rank.emplace(key, 0);
  int64_t next = 0;
  for (auto& [key, number] : rank) number = next++;
  Integers ranks;
  for (const Key& key : keys) ranks.push_back(rank.at(key));
  return ranks;
}

Ranks ranks_of(Call& call) {
  if (const Strings* strings = call.value(0).strings())
    return {strings->shape, ranks_of(strings->elements)};
  const tensor::HostValues values = call.data(0);
  if (is_float(values.dtype)) {
    std::vector<std::pair<bool, double>> keys;
    for (const uint64_t bits : values.bits) {
      const double number = std::bit_cast<double>(bits);
      keys.emplace_back(std::isnan(number), std::isnan(number) ? 0 : number + 0.0);
    }
    return {values.shape, ranks_of(keys)};
  }
  if (is_unsigned(values.dtype)) return {values.shape, ranks_of(values.bits)};
  return {values.shape, ranks_of(integers_of(values))};
}

// The rows along an axis, each the ranks of its elements; without an axis, rows of one element.
std::vector<Integers> rows_of(const Ranks& ranks, std::optional<int64_t> axis) {
  if (!axis) {
    std::vector<Integers> rows;
    for (const int64_t rank : ranks.of_elements) rows.push_back({rank});
    return rows;
  }
  const auto at = static_cast<size_t>(*axis);
  int64_t inner = 1;
  for (size_t i = at + 1; i < ranks.shape.size(); ++i) inner *= ranks.shape[i];
  const int64_t size = ranks.shape[at];
  std::vector<Integers> rows(static_cast<size_t>(size));
  for (size_t i = 0; i < ranks.of_elements.size(); ++i)
    rows[static_cast<size_t>(static_cast<int64_t>(i) / inner % size)].push_back(
        ranks.of_elements[i]);
  return rows;
}

struct Groups {
  Integers first, inverse, counts;
};

Groups groups_of(const std::vector<Integers>& rows, bool is_sorted) {
  Integers order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto row = [&](int64_t i) -> const Integers& { return rows[static_cast<size_t>(i)]; };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return row(a) < row(b); });
  std::vector<Integers> members;
  for (const int64_t i : order) {
    if (members.empty() || row(members.back()[0]) != row(i)) members.emplace_back();
    members.back().push_back(i);
  }
  if (!is_sorted)
    std::ranges::sort(members, [](const Integers& a, const Integers& b) { return a[0] < b[0]; });
  Groups groups;
  groups.inverse.resize(rows.size());
  for (size_t g = 0; g < members.size(); ++g) {
    groups.first.push_back(members[g][0]);
    groups.counts.push_back(static_cast<int64_t>(members[g].size()));
    for (const int64_t i : members[g])
      groups.inverse[static_cast<size_t>(i)] = static_cast<int64_t>(g);
  }
  return groups;
}

Value known(const Integers& numbers) {
  return Value::known(
      {{static_cast<int64_t>(numbers.size())}, DType::I64, {numbers.begin(), numbers.end()}});
}

Strings selected(const Strings& x, const Integers& rows, std::optional<int64_t> axis) {
  if (!axis) {
    Strings result{{static_cast<int64_t>(rows.size())}, {}};
    for (const int64_t row : rows) result.elements.push_back(x.elements[static_cast<size_t>(row)]);
    return result;
  }
  const auto at = static_cast<size_t>(*axis);
  const int64_t size = x.shape[at];
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != at) (i < at ? outer : inner) *= x.shape[i];
  Strings result{x.shape, {}};
  result.shape[at] = static_cast<int64_t>(rows.size());
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t row : rows)
      for (int64_t i = 0; i < inner; ++i)
        result.elements.push_back(x.elements[static_cast<size_t>((o * size + row) * inner + i)]);
  return result;
}

Values unique(Call& call) {
  const Ranks ranks = ranks_of(call);
  std::optional<int64_t> axis;
  if (call.attribute("axis")) {
    const auto rank = static_cast<int64_t>(ranks.shape.size());
    axis = call.axis(call.integer("axis", 0), rank);
  }
  const Groups groups = groups_of(rows_of(ranks, axis), call.integer("sorted", 1) != 0);
  Value y;
  if (const Strings* strings = call.value(0).strings())
    y = selected(*strings, groups.first, axis);
  else
    y = (axis ? call[0] : call[0].flatten())
            .index_select(axis.value_or(0), Tensor::from(groups.first));
  return {y, known(groups.first), known(groups.inverse), known(groups.counts)};
}

constexpr OperatorRow kUniqueRows[] = {{"Unique", unique}};

}  // namespace

std::span<const OperatorRow> unique_operators() {
  return kUniqueRows;
}

}  // namespace plugrad::onnx
