#include "schedule/stack_parts.h"

#include <algorithm>
#include <numeric>

#include "ir/facts.h"

namespace plugrad::schedule {
namespace {

// Recursion limit; deeper expressions are not stacked.
constexpr uint32_t kDeepest = 200;

Dims with_front(int64_t first, std::span<const int64_t> rest) {
  Dims out = {first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace

/// Whether the value is stored, or a reduction.
bool PartStacker::is_read_whole(Id node) const {
  const Op op = g_[node].op;
  if (node < state_.requested.size() && state_.requested[node] != 0) return true;
  return op != Op::Const && op != Op::Iota && !is_movement(op) && !is_alu(op);
}

uint64_t PartStacker::own_signature(Id node) {
  const Node& n = g_[node];
  if (is_read_whole(node)) return mixed(1, node);
  uint64_t hash = mixed(static_cast<uint64_t>(n.op), static_cast<uint64_t>(n.dtype));
  hash = mixed(hash, state_.shapes.id(node));
  if (n.op != Op::Const && n.op != Op::Shrink) hash = mixed(hash, n.arg);
  for (Id s : g_.sources(n)) hash = mixed(hash, signatures_[s]);
  return hash;
}

uint64_t PartStacker::signature(Id node) {
  while (signatures_.size() <= node) {
    const uint64_t own = own_signature(static_cast<Id>(signatures_.size()));
    signatures_.push_back(own);
  }
  return signatures_[node];
}

Id PartStacker::stack(const std::vector<Id>& parts) {
  const Id first = parts[0];
  const bool same = std::ranges::all_of(parts, [&](Id part) { return part == first; });
  if (same) {
    const Dims shape = build_.shape(first);
    return build_.expand(build_.reshape(first, with_front(1, shape)),
                         with_front(static_cast<int64_t>(parts.size()), shape));
  }
  if (const auto at = known_.find(parts); at != known_.end()) return at->second;
  if (depth_ == kDeepest) return kNoId;
  state_.visits += parts.size();
  ++depth_;
  const Id stacked = stack_different(parts);
  --depth_;
  return known_[parts] = stacked;
}

Id PartStacker::stack_different(const std::vector<Id>& parts) {
  const Node first = g_[parts[0]];
  const ListId shape = state_.shapes.id(parts[0]);
  const bool alike = std::ranges::all_of(parts, [&](Id part) {
    const Node& n = g_[part];
    return !is_read_whole(part) && n.op == first.op && n.dtype == first.dtype &&
           n.src_count == first.src_count && state_.shapes.id(part) == shape &&
           (n.op == Op::Const || n.op == Op::Shrink || n.arg == first.arg);
  });
  if (!alike) return kNoId;
  if (first.op == Op::Const) return constants(parts);
  if (first.op == Op::Shrink) return shrinks(parts);
  return is_movement(first.op) ? movement(parts) : elementwise(parts);
}

/// Half types are stored as f32, which holds all of their values.
Id PartStacker::constants(const std::vector<Id>& parts) {
  const DType dtype = g_[parts[0]].dtype;
  if (dtype == DType::Index || dtype == DType::WeakFloat) return kNoId;
  const DType held = is_float(dtype) && size_of(dtype) < 4 ? DType::F32 : dtype;
  ConstantBuffer made;
  for (Id part : parts) made.bits.push_back(g_[part].arg);
  const auto same = [&](const ConstantBuffer& c) {
    return c.bits == made.bits && g_[c.node].dtype == held;
  };
  auto known = std::ranges::find_if(state_.constants, same);
  if (known == state_.constants.end()) {
    const int64_t number = -1 - static_cast<int64_t>(state_.constants.size());
    made.node = g_.add(Op::Buffer, held, {},
                       g_.list({number, state_.joined_on, static_cast<int64_t>(parts.size())}));
    state_.constants.push_back(std::move(made));
    known = state_.constants.end() - 1;
  }
  if (held == dtype) return known->node;
  const Node cast = g_[g_.add(Op::Cast, dtype, {known->node})];
  return build_.elementwise(cast, std::span(&known->node, 1));
}

Id PartStacker::movement(const std::vector<Id>& parts) {
  std::vector<Id> below;
  for (Id part : parts) below.push_back(g_[part].src[0]);
  const auto inner = state_.shapes.id(below[0]);
  if (!std::ranges::all_of(below, [&](Id id) { return state_.shapes.id(id) == inner; }))
    return kNoId;
  const Id x = stack(below);
  if (x == kNoId) return kNoId;
  const auto count = static_cast<int64_t>(parts.size());
  Dims values = list(parts[0]);
  switch (g_[parts[0]].op) {
    case Op::Reshape:
      return build_.reshape(x, with_front(count, values));
    case Op::Expand:
      return build_.expand(x, with_front(count, values));
    case Op::Permute:
      for (int64_t& axis : values) ++axis;
      return build_.permute(x, with_front(0, values));
    case Op::Flip:
      return build_.flip(x, with_front(0, values));
    case Op::Pad:
      return build_.pad(x, with_front(0, with_front(0, values)));
    default:
      return kNoId;
  }
}

Id PartStacker::shrinks(const std::vector<Id>& parts) {
  const Id source = g_[parts[0]].src[0];
  if (std::ranges::all_of(parts, [&](Id part) { return g_[part].src[0] == source; })) {
    const Id evenly = slices(source, parts);
    return evenly == kNoId ? at_indices(source, parts) : evenly;
  }
  const uint64_t bounds = g_[parts[0]].arg;
  std::vector<Id> below;
  for (Id part : parts) {
    if (g_[part].arg != bounds || state_.shapes.id(g_[part].src[0]) != state_.shapes.id(source))
      return kNoId;
    below.push_back(g_[part].src[0]);
  }
  const Id x = stack(below);
  if (x == kNoId) return kNoId;
  return build_.shrink(
      x, with_front(0, with_front(static_cast<int64_t>(parts.size()), list(parts[0]))));
}

/// Slices of one source at constant distance along one axis, without overlap.
Id PartStacker::slices(Id source, const std::vector<Id>& parts) {
  const auto count = static_cast<int64_t>(parts.size());
  Dims bounds = list(parts[0]);
  const Dims second = list(parts[1]);
  size_t axis = 0;
  while (axis < bounds.size() / 2 && bounds[2 * axis] == second[2 * axis]) ++axis;
  if (axis == bounds.size() / 2) return kNoId;
  const int64_t distance = second[2 * axis] - bounds[2 * axis];
  const int64_t length = bounds[2 * axis + 1] - bounds[2 * axis];
  if (std::abs(distance) < length) return kNoId;
  for (int64_t i = 0; i < count; ++i) {
    Dims expected = bounds;
    expected[2 * axis] += i * distance;
    expected[2 * axis + 1] += i * distance;
    if (list(parts[static_cast<size_t>(i)]) != expected) return kNoId;
  }
  const int64_t stride = std::abs(distance);
  const int64_t begin = bounds[2 * axis] + (distance < 0 ? (count - 1) * distance : 0);
  const int64_t size = state_.shapes[source][axis];
  bounds[2 * axis] = begin;
  bounds[2 * axis + 1] = std::min(begin + count * stride, size);
  Id x = build_.shrink(source, bounds);
  Dims shape = build_.shape(x), pads(2 * shape.size(), 0);
  pads[2 * axis + 1] = count * stride - shape[axis];  // beyond the source, for the last slice
  x = build_.pad(x, pads);
  shape[axis] = stride;
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), count);
  x = build_.reshape(x, shape);
  Dims box, flags(shape.size(), 0), order = {static_cast<int64_t>(axis)};
  for (size_t i = 0; i < shape.size(); ++i) {
    box.insert(box.end(), {0, i == axis + 1 ? length : shape[i]});
    if (i != axis) order.push_back(static_cast<int64_t>(i));
  }
  flags[axis] = distance < 0 ? 1 : 0;
  return build_.permute(build_.flip(build_.shrink(x, box), flags), order);
}

/// Slices of one source at any offsets along one axis, read at indices from a Buffer. The sum
/// becomes one load.
///   x[index]  =  sum over r of where(index == r, x[r], 0)
Id PartStacker::at_indices(Id source, const std::vector<Id>& parts) {
  const Dims first = list(parts[0]);
  size_t axis = first.size();
  for (Id part : parts)
    for (size_t i = 0; i < first.size(); i += 2) {
      if (g_.arg_list(part)[i] == first[i] || i == axis) continue;
      if (axis != first.size()) return kNoId;
      axis = i;
    }
  if (axis == first.size() || g_[source].dtype == DType::Bool) return kNoId;
  std::vector<Id> begins;
  for (Id part : parts) begins.push_back(g_.constant(DType::I32, g_.arg_list(part)[axis]));
  const int64_t length = first[axis + 1] - first[axis], size = state_.shapes[source][axis / 2];
  if (size > INT32_MAX) return kNoId;
  Dims bounds = first;
  bounds[axis] = 0;
  bounds[axis + 1] = size;
  axis /= 2;
  const Id x = build_.shrink(source, bounds);
  const Dims shape = build_.shape(x);
  Dims order, here = {1}, all = {static_cast<int64_t>(parts.size())};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != axis) order.push_back(static_cast<int64_t>(i));
    here.push_back(i == axis ? 1 : shape[i]);
    all.push_back(i == axis ? length : shape[i]);
  }
  order.push_back(static_cast<int64_t>(axis));
  here.push_back(size);
  const Dims stacked = all;
  all.push_back(size);
  const auto along = [&](Id list, size_t at) {
    Dims row(all.size(), 1);
    row[at] = all[at];
    return build_.expand(build_.reshape(list, row), all);
  };
  const auto counter = [&](size_t at) {
    return along(g_.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(all[at])), at);
  };
  const auto made = [&](Id id) {
    const Node like = g_[id];
    const std::vector<Id> sources(g_.sources(id).begin(), g_.sources(id).end());
    return build_.elementwise(like, sources);
  };
  Id index = along(constants(begins), 0);
  if (length > 1) index = made(g_.binary(Op::Add, index, counter(axis + 1)));
  const Id hit = made(g_.binary(Op::CmpEq, index, counter(all.size() - 1)));
  const Id value = build_.expand(build_.reshape(build_.permute(x, order), here), all);
  const Id chosen = made(g_.where(hit, value, g_.constant(g_[x].dtype, int64_t{0})));
  return build_.reshape(build_.reduce(Op::Add, chosen, {static_cast<int64_t>(all.size()) - 1}),
                        stacked);
}

Id PartStacker::elementwise(const std::vector<Id>& parts) {
  const Node first = g_[parts[0]];
  const Dims shape = build_.shape(parts[0]);
  const auto count = static_cast<int64_t>(parts.size());
  std::vector<Id> sources, column(parts.size());
  for (size_t s = 0; s < first.src_count; ++s) {
    const ListId own = state_.shapes.id(g_.sources(parts[0])[s]);
    for (size_t i = 0; i < parts.size(); ++i) {
      column[i] = g_.sources(parts[i])[s];
      if (state_.shapes.id(column[i]) != own) return kNoId;
    }
    const bool scalar = state_.shapes[column[0]].empty();
    if (scalar && std::ranges::all_of(column, [&](Id id) { return id == column[0]; })) {
      sources.push_back(column[0]);
      continue;
    }
    Id x = stack(column);
    if (x == kNoId) return kNoId;
    if (scalar && !shape.empty())
      x = build_.expand(build_.reshape(x, with_front(count, Dims(shape.size(), 1))),
                        with_front(count, shape));
    sources.push_back(x);
  }
  return build_.elementwise(first, sources);
}

}  // namespace plugrad::schedule
