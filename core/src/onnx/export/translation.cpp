#include "onnx/export/translation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "base/binding.h"
#include "base/check.h"
#include "engine/execute/loop_body.h"
#include "ir/user.h"

namespace plugrad::onnx {
namespace {

/// Whether the operands broadcast to the shape as ONNX does.
bool broadcasts_to(const std::vector<List>& operands, const List& shape) {
  List result(shape.size(), 1);
  for (const List& operand : operands) {
    if (operand.size() > shape.size()) return false;
    for (std::size_t i = 0; i < operand.size(); ++i) {
      std::int64_t& size = result[shape.size() - operand.size() + i];
      if (operand[i] != 1) size = operand[i];
    }
  }
  return result == shape;
}

bool is_loop(const Graph& g, Id id) {
  return g[id].op == Op::UserKernel && (UserKernelArg(g.arg_list(id)).kernel() & kLoopBit) != 0;
}

/// Whether a bitcast is between dtypes of one size, of which at most one is a float.
bool is_known_bitcast(DType a, DType b) {
  if (size_of(a) != size_of(b) || a == DType::Bool || b == DType::Bool) return false;
  return is_integer(a) ? is_integer(b) || size_of(a) > 1 : is_integer(b) && size_of(a) > 1;
}

/// The name of an operation that ONNX does not have; empty if it has the node's.
std::string_view unsupported(const Graph& g, Id id) {
  switch (g[id].op) {
    case Op::UserKernel:
      return "a kernel of the program";
    case Op::Bounded:
      return "a variable size";
    case Op::Buffer:
      return "a tensor without a value";
    case Op::Bitcast:
      return is_known_bitcast(g[id].dtype, g[g[id].src[0]].dtype) ? "" : "bitcast";
    default:
      return "";
  }
}

/// The same of the node and of a loop's step.
std::set<std::string_view> all_unsupported(const engine::LoopTable& loops, const Graph& g, Id id) {
  if (!is_loop(g, id)) return {unsupported(g, id)};
  const engine::LoopBody& body = *loops[UserKernelArg(g.arg_list(id)).kernel() & ~kLoopBit];
  std::set<std::string_view> found;
  if (body.is_counted) found.insert("a variable size");
  if (body.sums > 0) found.insert("the gradient of a loop");
  Reachable reachable;
  for (const Id inner : reachable.from(body.graph, body.roots))
    if (body.graph[inner].op != Op::Buffer) found.merge(all_unsupported(loops, body.graph, inner));
  return found;
}

}  // namespace

Translation::Translation(engine::Session& session, GraphWriter& to, const NamedNodes& given)
    : session_(session),
      graph_(session.graph()),
      to_(to),
      given_(given),
      context_{session.graph(), session.shapes(), session.devices()} {}

std::vector<Id> Translation::operands(Id id) {
  MatchedOperator& found = operators_[id] = match_operator(context_, id);
  if (const auto* m = std::get_if<MatMulNode>(&found)) return {m->a, m->b};
  if (const auto* m = std::get_if<PoolNode>(&found)) return {m->image};
  if (const auto* m = std::get_if<UnaryNode>(&found)) return {m->x};
  if (const auto* m = std::get_if<GatherNode>(&found)) return {m->values, m->indices};
  if (const auto* m = std::get_if<ConvNode>(&found)) {
    std::vector<Id> of = {m->convolution.image, m->convolution.weight};
    if (m->convolution.present != kNoId) of.push_back(m->convolution.present);
    return of;
  }
  const auto sources = graph_.sources(id);
  std::vector<Id> of(sources.begin(), sources.end());
  const OpKind kind = op_info(graph_[id].op).kind;
  if (kind != OpKind::Alu || of.size() < 2) return of;
  std::vector<Id> below;
  std::vector<List> shapes;
  for (const Id s : of) {
    below.push_back(given_.contains(s) ? s : below_expand(graph_, s));
    shapes.push_back(shape(below.back()));
  }
  return broadcasts_to(shapes, shape(id)) ? below : of;
}

// ONNX Runtime expands axes of size 1 to no size of 0.
bool Translation::is_empty(Id id) {
  return !given_.contains(id) && element_count(shape(id)) == 0;
}

void Translation::plan(const std::vector<Id>& roots) {
  std::set<Id, std::greater<>> open(roots.begin(), roots.end());
  while (!open.empty()) {
    const Id id = *open.begin();
    open.erase(open.begin());
    needed_.push_back(id);
    if (given_.contains(id)) continue;
    std::vector<Id> of = is_empty(id) ? std::vector<Id>() : operands(id);
    open.insert(of.begin(), of.end());
    operands_[id] = std::move(of);
  }
  std::ranges::reverse(needed_);
}

void Translation::refuse_unsupported(const std::vector<Id>& nodes) {
  std::set<std::string> found;
  for (const Id id : nodes) {
    if (given_.contains(id)) continue;
    const std::string place = describe_place(session_.place(id));
    for (const std::string_view what : all_unsupported(session_.loops(), graph_, id))
      if (!what.empty())
        found.insert(std::string(what) + (place.empty() ? "" : ", recorded at " + place));
  }
  if (found.empty()) return;
  std::string text;
  for (const std::string& line : found) text += "\n  " + line;
  fail(ErrorKind::Unsupported, "[onnx] ONNX cannot express parts of the function:{}", text);
}

void Translation::translate(const std::vector<Id>& roots) {
  plan(roots);
  refuse_unsupported(needed_);
  for (const Id id : needed_) {
    const auto at = given_.find(id);
    if (at != given_.end()) {
      is_constant_[id] = !at->second.is_input;
      elements_[id] = {at->second.name(), shape(id)};
    } else {
      is_constant_[id] =
          std::ranges::all_of(operands_.at(id), [&](Id s) { return is_constant_.at(s); });
      elements_[id] = translated(id);
    }
  }
}

std::string Translation::root(Id id) {
  return in(id, strong(dtype(id)));
}

const std::string& Translation::name(Id id) {
  std::string& known = names_[id];
  if (!known.empty()) return known;
  const Elements& found = elements_.at(id);
  return known = found.shape == shape(id) ? found.value : reshape(found.value, shape(id));
}

Translation::Elements Translation::translated(Id id) {
  const Op op = graph_[id].op;
  const auto shaped = [&](std::string value) { return Elements{std::move(value), shape(id)}; };
  if (is_empty(id)) return shaped(to_.initialiser("empty", strong(dtype(id)), shape(id), {}));
  if (op == Op::Const) return shaped(constant(id));
  if (op == Op::Reshape) return elements_.at(operands_.at(id)[0]);
  if (is_movement(op)) return shaped(movement(id));
  if (op == Op::UserKernel) return shaped(loop(id));
  if (op != Op::Iota)
    return std::visit([&](const auto& found) { return of(id, found); }, operators_.at(id));
  const std::string count = to_.number(DType::I64, 0, static_cast<int64_t>(graph_[id].arg));
  const std::string range =
      to_.node("Range", {number(DType::I64, 0), count, number(DType::I64, 1)});
  return shaped(cast(range, DType::I64, dtype(id)));
}

Translation::Elements Translation::of(Id id, std::monostate) {
  return {graph_[id].op == Op::Reduce ? reduction(id) : elementwise(id), shape(id)};
}

std::string Translation::constant(Id id) {
  const DType own = dtype(id);
  return number(own, const_float(graph_, id), is_float(own) ? 0 : const_int(graph_, id));
}

std::string Translation::cast(const std::string& value, DType from, DType to) {
  if (data_type_of(from) == data_type_of(to)) return value;
  return to_.node("Cast", {value}, {{"to", static_cast<std::int64_t>(data_type_of(to))}});
}

std::string Translation::in(Id id, DType dtype) {
  std::string& known = casts_[{id, dtype}];
  return known.empty() ? known = cast(name(id), this->dtype(id), dtype) : known;
}

std::string Translation::number(DType dtype, double real, std::int64_t whole) {
  const DType held = is_small_float(dtype) ? DType::F32 : dtype;
  return cast(to_.number(held, real, whole), held, dtype);
}

std::string Translation::number(DType dtype, double value) {
  return number(dtype, value, is_float(dtype) ? 0 : static_cast<std::int64_t>(value));
}

std::string Translation::reshape(const std::string& value, const List& shape) {
  return to_.node("Reshape", {value, to_.integers(shape)}, {{"allowzero", 1}});
}

// ONNX Runtime has no Pad of 16-bit types.
std::string Translation::pad(const std::string& value, DType dtype, const List& pads) {
  DType wide = is_small_float(dtype) ? DType::F32 : dtype;
  if (dtype == DType::I16 || dtype == DType::U16) wide = DType::I32;
  return cast(to_.node("Pad", {cast(value, dtype, wide), to_.integers(pads)}), wide, dtype);
}

// ONNX Runtime has no Expand of bf16 and floats of 8 bits.
std::string Translation::expand(const std::string& value, DType dtype, const List& shape) {
  const DType held = is_small_float(dtype) && dtype != DType::F16 ? DType::F32 : dtype;
  return cast(to_.node("Expand", {cast(value, dtype, held), to_.integers(shape)}), held, dtype);
}

std::string Translation::movement(Id id) {
  const Id source = operands_.at(id)[0];
  const auto given = graph_.arg_list(id);
  const List list(given.begin(), given.end());
  const std::string& x = name(source);
  const std::size_t rank = shape(source).size();
  List begin, end, axes, steps;
  switch (graph_[id].op) {
    case Op::Permute:
      return to_.node("Transpose", {x}, {{"perm", list}});
    case Op::Expand:
      return expand(x, dtype(id), list);
    case Op::Pad: {
      // ONNX Runtime pads no axis of size 0.
      if (element_count(shape(source)) == 0)
        return expand(number(dtype(id), 0), dtype(id), shape(id));
      for (std::size_t i = 0; i < rank; ++i) begin.push_back(list[2 * i]);
      for (std::size_t i = 0; i < rank; ++i) begin.push_back(list[2 * i + 1]);
      return pad(x, dtype(id), begin);
    }
    case Op::Shrink:
      for (std::size_t i = 0; i < rank; ++i) {
        if (list[2 * i] == 0 && list[2 * i + 1] == shape(source)[i]) continue;
        axes.push_back(static_cast<std::int64_t>(i));
        begin.push_back(list[2 * i]);
        end.push_back(list[2 * i + 1]);
      }
      if (axes.empty()) return x;
      return to_.node("Slice", {x, to_.integers(begin), to_.integers(end), to_.integers(axes)});
    default:
      for (std::size_t i = 0; i < rank; ++i)
        if (list[i] != 0) axes.push_back(static_cast<std::int64_t>(i));
      if (axes.empty()) return x;
      begin.assign(axes.size(), -1);
      end.assign(axes.size(), std::numeric_limits<std::int64_t>::min());
      steps.assign(axes.size(), -1);
      return to_.node("Slice", {x, to_.integers(begin), to_.integers(end), to_.integers(axes),
                                to_.integers(steps)});
  }
}

}  // namespace plugrad::onnx
