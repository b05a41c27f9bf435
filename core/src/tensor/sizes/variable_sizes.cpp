// Helpers for tensors with variable axis sizes: queries, masking, and the errors of unsupported
// uses.
#include "tensor/sizes/variable_sizes.h"

#include <algorithm>
#include <cstring>

#include "engine/views/leading_parts.h"
#include "jit/trace.h"
#include "tensor/record.h"
#include "tensor/sizes/size_arithmetic.h"

namespace plugrad::tensor {
namespace {

std::string_view reason_of(Extent::Kind kind) {
  switch (kind) {
    case Extent::Kind::Different:
      return "operands have different sizes there: that of another variable, of another binding of "
             "it, or one that does not vary";
    case Extent::Kind::Merged:
      return "a variable size can be neither split nor joined with another axis";
    case Extent::Kind::Cut:
      return "the part may reach beyond the variable size: take what is below its least value, or "
             "all from there on";
    case Extent::Kind::Reversed:
      return "an axis of a variable size has no fixed last index to begin at";
    default:
      return "a written kernel takes no variable sizes";
  }
}

}  // namespace

/// The value of a count that the host has; else empty.
std::string Recorder::known_count(Id count) {
  if (jit_detail::JitTrace::active()) return "";  // differs in each call
  const auto bytes = session_.peek(*session_.make(count, 0));
  int32_t value = 0;
  if (!bytes || bytes->size() != sizeof value) return "";
  std::memcpy(&value, bytes->data(), sizeof value);
  return std::to_string(value);
}

std::string Recorder::shown(Id node) {
  const Shape sizes = shape(node);
  if (!session_.is_counted(node)) return to_string(sizes);
  const std::vector<Extent> own = (*extents())[node];
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) text += ", ";
    if (own[i].is_counted()) text += known_count(own[i].count) + "≤";
    text += std::to_string(sizes[i]);
  }
  return fmt::format("({}{})", text, sizes.size() == 1 ? "," : "");
}

void Recorder::require_decided(Id node) {
  const std::vector<Extent> result = (*extents())[node];
  const auto bad = std::ranges::find_if(result, &Extent::is_undecided);
  if (bad == result.end()) return;
  std::string given;
  for (Id s : graph().sources(node))
    if (!session_.shape(s).empty()) given += (given.empty() ? "" : " and ") + shown(s);
  fail(ErrorKind::User, "[{}] the size of axis {} of {} cannot be decided (of {}): {}", function(),
       bad - result.begin(), to_string(shape(node)), given, reason_of(bad->kind));
}

Extent Recorder::extent(Id node, int64_t axis) {
  return session_.has_bounds() ? (*extents())[node][static_cast<size_t>(axis)] : Extent{};
}

Id Recorder::like(Id node, Id model) {
  return session_.has_bounds() ? session_.bounded().like(node, model) : node;
}

Id Recorder::assigned(Id old, Id value) {
  // A sharded tensor stays on its mesh, with its spec.
  if (const sharding::Mesh* mesh = session_.mesh(session_.devices()[old])) {
    const sharding::Spec spec = session_.spec(old);
    value = graph().add(Op::Shard, dtype(value), {value},
                        graph().list(sharding::shard_arg(*mesh, spec)));
  }
  if (!session_.has_bounds()) return value;
  const std::vector<Extent> own = (*extents())[old], given = (*extents())[value];
  for (size_t i = 0; i < own.size(); ++i)
    require(given[i].kind == Extent::Kind::Free || given[i].count == own[i].count,
            "[{}] a value of {} into a tensor of {}: the size of axis {} is not the same. A tensor "
            "keeps its sizes: assign to one that has this variable size of the same binding, or "
            "choose what is replaced with where()",
            function(), shown(value), shown(old), i);
  return like(value, old);
}

Id Recorder::masked(Id node, std::span<const int64_t> axes, Op op) {
  return session_.has_bounds() ? session_.bounded().masked(node, axes, op) : node;
}

Tensor count_along(std::string_view function, const Tensor& x, std::span<const int64_t> axes,
                   DType dtype) {
  Recorder r(function);
  const Id node = r.use(x);
  const Shape shape = r.shape(node);
  int64_t fixed = 1;
  Id counts = kNoId;
  for (int64_t axis : axes) {
    const Extent e = r.extent(node, axis);
    if (!e.is_counted()) {
      fixed *= shape[static_cast<size_t>(axis)];
      continue;
    }
    const Id count = r.cast(e.count, dtype);
    counts = counts == kNoId ? count : r.graph().binary(Op::Mul, counts, count);
  }
  const DType weak = is_float(dtype) ? DType::WeakFloat : DType::Index;
  if (counts == kNoId) return r.done(r.graph().constant(weak, fixed));
  return r.done(r.graph().binary(Op::Mul, counts, r.graph().constant(dtype, fixed)));
}

AxisSize axis_size(const Tensor& x, int64_t axis) {
  Recorder r("size");
  const Id node = r.use(x);
  const Shape shape = r.shape(node);
  const int64_t at = checked_axis("size", axis, static_cast<int64_t>(shape.size()));
  const Extent e = r.extent(node, at);
  const int64_t size = shape[static_cast<size_t>(at)];
  if (!e.is_counted()) return {Tensor(size), size};
  return {r.done(e.count), e.least, true};
}

AxisSize plus(const AxisSize& size, int64_t count) {
  if (count == 0) return size;
  const int64_t least = size.least + count;
  return {size.varies ? size.count + count : Tensor(least), least, size.varies};
}

AxisSize plus(const AxisSize& a, const AxisSize& b) {
  if (!a.varies) return plus(b, a.least);
  return b.varies ? AxisSize{a.count + b.count, a.least + b.least, true} : plus(a, b.least);
}

Tensor whole(const Tensor& x, const Tensor& fill, std::optional<int64_t> axis) {
  Recorder r("whole");
  Id node = r.use(x);
  if (!r.session().is_counted(node)) return x;
  const Id behind = r.take(r.use(fill), r.dtype(node));
  const auto rank = static_cast<int64_t>(r.shape(node).size());
  for (int64_t i = axis.value_or(0); i < (axis ? *axis + 1 : rank); ++i)
    node = r.session().bounded().whole(node, i, behind);
  return r.done(node);
}

Tensor limited(const Tensor& x, int64_t axis, const AxisSize& size) {
  if (!size.varies) return x;
  Recorder r("limited");
  const Id node = r.use(x);
  return r.done(r.session().bound(node, axis, r.use(size.count), size.least));
}

Tensor limited_as(const Tensor& x, const Tensor& model) {
  Recorder r("limited");
  return r.done(r.like(r.use(x), r.use(model)));
}

Tensor actual_part(const Tensor& x) {
  const Shape part = x.bound_shape();
  Recorder r("shape");
  Id node = r.use(x);
  while (r.graph()[node].op == Op::Bounded) node = r.graph().sources(node)[0];
  std::vector<int64_t> list;
  for (const int64_t size : part) list.insert(list.end(), {0, size});
  if (part == r.shape(node)) return r.done(node);
  return r.done(r.graph().add(Op::Shrink, r.dtype(node), {node}, r.graph().list(list)));
}

std::optional<Tensor> in_room(const Tensor& x, const Shape& room) {
  Recorder r("shape");
  r.use(x);
  const auto node = engine::in_room(r.session(), *state_of(x), room);
  return node ? std::optional(r.done(*node)) : std::nullopt;
}

void require_inside(std::string_view function, const Tensor& part, const Tensor& x, int64_t axis) {
  Recorder r(function);
  const Id own = r.use(part), other = r.use(x);
  const Extent inner = r.extent(own, axis), outer = r.extent(other, axis);
  const bool is_small = r.shape(own)[static_cast<size_t>(axis)] <= outer.least;
  const bool is_same = inner.is_counted() && inner.count == outer.count;
  if (!outer.is_counted() || is_same || is_small || inner.kind == Extent::Kind::Free) return;
  fail(ErrorKind::User,
       "[{}] {} may reach beyond {} along axis {}, whose size varies: both need the same variable "
       "size "
       "of the same binding there, or the first no more elements than its least value",
       function, r.shown(own), r.shown(other), axis);
}

Tensor plus_at_least_0(const Tensor& count, int64_t by) {
  {
    Recorder r("count");
    const Id node = r.use(count);
    if (is_const(r.graph(), node))
      return Tensor(std::max(const_float(r.graph(), node) + static_cast<double>(by), 0.0));
  }
  return (count + by).maximum(0);
}

std::string shown_shape(const Tensor& x) {
  Recorder r("shape");
  return r.shown(r.use(x));
}

bool has_variable_size(const Tensor& x) {
  Recorder r("shape");
  return r.session().is_counted(r.use(x));
}

bool has_variable_size(const Tensor& x, int64_t axis) {
  Recorder r("shape");
  const Id node = r.use(x);
  if (!r.session().is_counted(node)) return false;
  const std::vector<Extent> extents = (*r.extents())[node];
  return static_cast<size_t>(axis) < extents.size() &&
         extents[static_cast<size_t>(axis)].is_counted();
}

bool takes_any_sizes(const Tensor& x) {
  for (int64_t axis = 0; axis < x.ndim(); ++axis)
    if (SizeArithmetic::takes_any_size(x, axis)) return true;
  return false;
}

void require_fixed(std::string_view function, const Tensor& x, std::optional<int64_t> axis) {
  require_fixed(function, x, axis, "which this function does not take");
}

void require_fixed(std::string_view function, const Tensor& x, std::optional<int64_t> axis,
                   std::string_view reason) {
  Recorder r(function);
  const Id node = r.use(x);
  if (!r.session().is_counted(node)) return;
  const std::vector<Extent> extents = (*r.extents())[node];
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i].is_counted() && (!axis || *axis == static_cast<int64_t>(i)))
      fail(ErrorKind::User, "[{}] axis {} of {} has a variable size, {}", function, i,
           r.shown(node), reason);
}

}  // namespace plugrad::tensor
