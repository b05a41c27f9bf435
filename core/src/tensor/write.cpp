// Turns a write to a view into one to its base, by the movements from the base to the view in
// reverse:
//   y = x[1:3].T,  y = v   ->   x = where(1 <= i & i < 3, v.T padded to the shape of x, x)
#include "tensor/write.h"

#include <algorithm>
#include <ranges>

#include "engine/views/linked_views.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "tensor/index/index.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::tensor {
namespace {

using engine::TensorState;
using engine::ViewStep;
using Writes = detail::ViewLinks::Writes;

/// A value in the shape of a base, and where it replaces the base's elements.
struct Frame {
  Id value;
  Id mask = kNoId;  // kNoId: everywhere
};

/// Whether an element lies in the box that the step cuts out; kNoId: all do.
Id inside_box(Recorder& r, const ViewStep& step) {
  Tensor inside;
  const auto rank = static_cast<int64_t>(step.shape.size());
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t begin = step.arg[2 * at], end = step.arg[2 * at + 1];
    const Tensor here = reached({begin, end - begin, 1}, step.shape[at], rank, axis);
    if (here.defined()) inside = inside.defined() ? inside & here : here;
  }
  return inside.defined() ? r.broadcast_to(state_of(inside)->node, step.shape) : kNoId;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

Id with_list(Recorder& r, Op op, Id node, const std::vector<int64_t>& list) {
  return r.graph().add(op, r.dtype(node), {node}, r.graph().list(list));
}

/// Zeros around the box that the step cuts out.
Id padded(Recorder& r, Id node, const ViewStep& step) {
  std::vector<int64_t> pads, axes;
  for (size_t i = 0; i < step.shape.size(); ++i) {
    const int64_t before = step.arg[2 * i], after = step.shape[i] - step.arg[2 * i + 1];
    pads.insert(pads.end(), {before, after});
    if (before != 0 || after != 0) axes.push_back(static_cast<int64_t>(i));
  }
  return axes.empty() ? node : with_list(r, Op::Pad, r.masked(node, axes, Op::Add), pads);
}

/// The elements that are not in the padding that the step adds.
Id without_padding(Recorder& r, Id node, const ViewStep& step) {
  std::vector<int64_t> box;
  for (size_t i = 0; i < step.shape.size(); ++i)
    box.insert(box.end(), {step.arg[2 * i], step.arg[2 * i] + step.shape[i]});
  return with_list(r, Op::Shrink, node, box);
}

/// Undoes a movement of elements.
Id moved_back(Recorder& r, Id node, const ViewStep& step) {
  switch (step.op) {
    case Op::Reshape:
      return r.reshape(node, step.shape);
    case Op::Permute:
      return r.permute(node, inverse(step.arg));
    case Op::Flip:
      return with_list(r, Op::Flip, node, step.arg);
    case Op::Shrink:
      return padded(r, node, step);
    case Op::Pad:
      return without_padding(r, node, step);
    case Op::Detach:
      return r.graph().unary(Op::Detach, node);
    case Op::Bitcast:
      return node;
    default:
      fail(ErrorKind::Internal, "[{}] no write goes back through {}", r.function(),
           op_info(step.op).name);
  }
}

Frame frame_of(Recorder& r, const std::vector<ViewStep>& path, Frame frame) {
  for (const ViewStep& step : std::views::reverse(path)) {
    frame.value = moved_back(r, frame.value, step);
    if (step.op == Op::Bitcast && step.from != step.to)
      frame.value = r.graph().add(Op::Bitcast, strong(step.from), {frame.value});
    if (frame.mask != kNoId)
      frame.mask = moved_back(r, frame.mask, step);
    else if (step.op == Op::Shrink)
      frame.mask = inside_box(r, step);
  }
  return frame;
}

Id chosen(Recorder& r, const Frame& frame, Id otherwise) {
  return frame.mask == kNoId ? frame.value : r.graph().where(frame.mask, frame.value, otherwise);
}

/// A value for a base that is gone: of the elements that its views show.
Id value_of_views(Recorder& r, const TensorState& first) {
  Id value = kNoId;
  for (const TensorState* view = &first; view; view = view->links.next) {
    const Frame frame = frame_of(r, r.session().path_of(*view), {view->node});
    value = value == kNoId ? frame.value : chosen(r, frame, value);
  }
  return value;
}

void write_whole(Recorder& r, TensorState& state, Id node) {
  engine::Session& session = r.session();
  if (state.requires_grad) node = session.leaf_node(node);
  const std::vector<engine::ShownNode> shown = session.nodes_of_views(state, node);
  session.assign(state, node);
  session.show(shown);
}

bool overlaps_another(Recorder& r, const TensorState& view) {
  for (const TensorState* other = view.links.base->links.first; other; other = other->links.next)
    if (other != &view && r.session().may_overlap(view, *other)) return true;
  return false;
}

/// Writes to the base; false if nothing shows the elements of the view but itself.
bool write_to_base(Recorder& r, TensorState& view, Id node, Id mask) {
  if (element_count(r.shape(node)) == 0) return true;
  if (TensorState* const lost = view.links.base; lost->links.is_lost) {
    if (!overlaps_another(r, view)) {
      lost->node = kNoId;
      return false;
    }
    r.session().restore_base(
        view, lost->node != kNoId ? lost->node : value_of_views(r, *lost->links.first));
  }
  TensorState& base = *view.links.base;
  const Frame frame = frame_of(r, r.session().path_of(view), {node, mask});
  write(r, base, r.assigned(base.node, chosen(r, frame, base.node)), frame.mask);
  return true;
}

}  // namespace

void require_writable(std::string_view function, const TensorState& state, bool part) {
  require(state.links.writes != Writes::Expanded,
          "[{}] one element stands at several places of this tensor, which expand() or unfold() "
          "made; write to the tensor that was expanded, or to a copy, clone()",
          function);
  require(state.links.writes != Writes::Computed,
          "[{}] this part of a tensor was computed (a bitcast to or from bool or another size, or "
          "steps along a variable size), so that a write would not reach the tensor; write to that "
          "one, or to a copy, clone()",
          function);
  if (!is_grad_enabled()) return;
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  for (const TensorState* each = &state; each; part = true) {
    require(
        !part || !each->requires_grad,
        "[{}] a leaf that requires a gradient cannot be changed in part: change a copy (x * 1), "
        "assign() all of it, or change it while no gradients are recorded (no_grad)",
        function);
    if (!each->links.base) return;
    if (std::ranges::any_of(session.path_of(*each),
                            [](const ViewStep& step) { return step.op == Op::Detach; }))
      return;
    each = each->links.base;
  }
}

void write(Recorder& r, TensorState& state, Id node, Id mask) {
  if (!state.links.base || state.links.stands_alone) return write_whole(r, state, node);
  const std::vector<engine::ShownNode> shown = r.session().nodes_with_gradient(state, node);
  if (!write_to_base(r, state, node, mask)) return write_whole(r, state, node);
  r.session().show(shown);
}

void write_view(std::string_view function, TensorState& view, const TensorState& value) {
  Recorder r(function);  // may renumber nodes
  write(r, view, value.node);
}

}  // namespace plugrad::tensor
