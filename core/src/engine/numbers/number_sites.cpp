// The numbers of a graph that a plan may take at launch. A size or a divisor of integers is
// structure, and so are numbers that rules match alone: 0, 1, -1, a divisor that is a power of two.
// Rules that compute with a number need no list here: a plan that takes it is compared with the plan
// that has it as a constant (codegen/analysis/same_program.h).
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/plan/canonical.h"
#include "ir/kernel_ast.h"

namespace plugrad::engine {
namespace {

bool is_integer_op(Op op) {
  return op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Max || op == Op::Where ||
         op == Op::And || op == Op::Or || op == Op::Xor || is_compare(op);
}

// Whether the node is a number, or its negative, where its source is one.
bool shows_number(Op op) {
  return (is_movement(op) && op != Op::Pad) || op == Op::Detach || op == Op::Neg;
}

bool is_power_of_two(double value) {
  int exponent;
  return std::abs(std::frexp(value, &exponent)) == 0.5;
}

}  // namespace

bool is_ordinary(uint64_t bits, DType dtype) {
  if (dtype == DType::I32) return static_cast<int64_t>(bits) < -1 || static_cast<int64_t>(bits) > 1;
  if (!is_float(dtype) || dtype == DType::WeakFloat) return false;
  const double value = std::bit_cast<double>(bits);
  return std::isfinite(value) && value != 0 && std::abs(value) != 1;
}

// Whether the op computes with the constant like with any other, beside a source that is no number or
// that a rule drops, as 1 * k. `shown`: by canonical number the constant that a node shows.
bool CanonicalGraph::may_vary(Id reader, uint32_t constant, std::span<const uint32_t> shown) const {
  const Op op = (*graph_)[reader].op;
  const DType dtype = (*graph_)[order_[constant]].dtype;
  if (op == Op::Contiguous) return true;
  if (!is_alu(op) || (!is_float(dtype) && !is_integer_op(op))) return false;
  const auto sources = graph_->sources(reader);
  const auto shows = [&](Id source) { return shown[number_of_[source]]; };
  if (op == Op::CmpNe && sources[0] == sources[1]) return true;  // false, for what is no NaN
  // A division by a power of two is a product.
  if (op == Op::FDiv && shows(sources[1]) == constant &&
      is_power_of_two(const_float(*graph_, order_[constant])))
    return false;
  return std::ranges::any_of(sources, [&](Id source) {
    const uint32_t other = shows(source);
    return other == kNone || !is_ordinary((*graph_)[order_[other]].arg, dtype);
  });
}

// Where the axes of a Shrink begin that it cuts, and how much a Pad adds behind them: an axis that it
// pads is cut out of one that is padded by all on both sides. An axis of a variable size is not cut at
// launch.
void CanonicalGraph::add_begins(uint32_t number, std::vector<NumberSite>& sites) const {
  const Id id = order_[number];
  const auto list = graph_->arg_list(id);
  const auto from = (*shapes_)[graph_->sources(id)[0]];
  const bool pads = (*graph_)[id].op == Op::Pad;
  for (uint32_t axis = 0; axis < from.size(); ++axis) {
    const int64_t first = list[2 * axis], second = list[2 * axis + 1];
    const int64_t length = pads ? from[axis] + first + second : second - first;
    const int64_t most = pads ? first + second : from[axis] - length;
    if (length == 0 || most == 0 || most > INT32_MAX) continue;
    sites.push_back({number, DType::Index, static_cast<uint64_t>(pads ? second : first),
                     end_of_own_[number] - list.size() + 2 * axis, axis, length, most});
  }
}

// By number the constant that the node shows, and, as `stays`, the constants of which an op needs the
// value.
std::vector<uint32_t> CanonicalGraph::constants_shown(std::vector<uint8_t>& stays) const {
  std::vector<uint32_t> shown(order_.size(), kNone);
  stays.assign(order_.size(), 0);
  for (uint32_t number = 0; number < order_.size(); ++number) {
    const Id id = order_[number];
    if (is_input_[number]) continue;
    const Op op = (*graph_)[id].op;
    if (op == Op::Const) shown[number] = number;
    const auto sources = graph_->sources(id);
    if (shows_number(op)) {
      shown[number] = shown[number_of_[sources[0]]];
      continue;
    }
    for (const Id source : sources)
      if (const uint32_t constant = shown[number_of_[source]]; constant != kNone)
        stays[constant] |= !may_vary(id, constant, shown);
  }
  return shown;
}

std::vector<NumberSite> CanonicalGraph::number_sites() const {
  std::vector<uint8_t> stays;
  const std::vector<uint32_t> shown = constants_shown(stays);
  bool has_counts = false;
  for (uint32_t number = 0; number < order_.size(); ++number)
    has_counts |= !is_input_[number] && (*graph_)[order_[number]].op == Op::Bounded;
  std::vector<NumberSite> sites;
  for (uint32_t number = 0; number < order_.size(); ++number) {
    const Node& n = (*graph_)[order_[number]];
    if (is_input_[number]) continue;
    if ((n.op == Op::Shrink || n.op == Op::Pad) && shown[number] == kNone && !has_counts)
      add_begins(number, sites);
    if (n.op == Op::Const && stays[number] == 0 && is_ordinary(n.arg, n.dtype))
      sites.push_back({number, n.dtype, n.arg, end_of_own_[number] - 1});
  }
  return sites;
}

std::vector<NumberSite> CanonicalGraph::constant_sites() const {
  std::vector<NumberSite> sites;
  for (uint32_t number = 0; number < order_.size(); ++number) {
    const Node& n = (*graph_)[order_[number]];
    const bool is_strong = is_float(n.dtype) ? n.dtype != DType::WeakFloat : n.dtype == DType::I32;
    if (!is_input_[number] && n.op == Op::Const && is_strong)
      sites.push_back({number, n.dtype, n.arg, end_of_own_[number] - 1});
  }
  return sites;
}

size_t CanonicalGraph::size_count(uint32_t number) const {
  const Id id = order_[number];
  if (is_input_[number]) return (*shapes_)[id].size();
  const Op op = (*graph_)[id].op;
  if (op == Op::Iota) return 1;
  return has_sizes(op) ? graph_->arg_list(id).size() : 0;
}

std::vector<int64_t> CanonicalGraph::sizes_of_axes() const {
  std::vector<int64_t> sizes;
  for (uint32_t number = 0; number < order_.size(); ++number)
    for (size_t at = end_of_own_[number] - size_count(number); at < end_of_own_[number]; ++at)
      sizes.push_back(static_cast<int64_t>(words_[at]));
  return sizes;
}

Hash128 CanonicalGraph::key_without_sizes(std::span<const NumberSite> constants) const {
  std::vector<uint64_t> words = words_;
  for (uint32_t number = 0; number < order_.size(); ++number)
    for (size_t at = end_of_own_[number] - size_count(number); at < end_of_own_[number]; ++at)
      words[at] = 0;
  for (const NumberSite& site : constants) words[site.word] = 0;
  words.push_back(~uint64_t{0});  // no key of a graph, nor one without numbers
  return hash128(std::as_bytes(std::span(words)));
}

Hash128 CanonicalGraph::key_without(std::span<const NumberSite> sites) const {
  std::vector<uint64_t> words = words_;
  for (const NumberSite& site : sites) {
    words[site.word] = 0;
    if (site.axis != NumberSite::kConstant)
      words[site.word + 1] = static_cast<uint64_t>(site.length);
    words.push_back(site.word);  // which words are no longer those of a constant
  }
  return hash128(std::as_bytes(std::span(words)));
}

// The Shrink or Pad `number` of `source`; its sites come first among `sites`, with Scalars numbered
// from `first`.
Id CanonicalGraph::with_windows(Graph& scratch, Id source, size_t number,
                                std::span<const NumberSite> sites, std::span<const uint8_t> given,
                                uint32_t first) const {
  const Node& node = (*graph_)[order_[number]];
  const auto list = graph_->arg_list(order_[number]);
  std::vector<int64_t> rest(list.begin(), list.end());
  const auto windows = [&](Id x) {
    for (uint32_t i = 0; i < sites.size() && sites[i].node == number; ++i)
      if (const NumberSite& site = sites[i]; given[i] != 0)
        x = scratch.add(Op::Window, node.dtype, {x, make_scalar(scratch, first + i, site.most)},
                        scratch.list({static_cast<int64_t>(site.axis), site.length}));
    return x;
  };
  for (uint32_t i = 0; i < sites.size() && sites[i].node == number; ++i) {
    if (given[i] == 0) continue;
    const size_t at = 2 * sites[i].axis;
    rest[at] = node.op == Op::Pad ? sites[i].most : 0;
    rest[at + 1] = node.op == Op::Pad ? sites[i].most : sites[i].length;
  }
  if (node.op == Op::Shrink) source = windows(source);
  source = scratch.add(node.op, node.dtype, {source}, scratch.list(rest));
  return node.op == Op::Pad ? windows(source) : source;
}

}  // namespace plugrad::engine
