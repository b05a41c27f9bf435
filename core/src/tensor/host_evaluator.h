// Evaluates small tensors on the host. `Elements` says what an element is: a number
// (host_values.cpp), or an expression of variable sizes (size_arithmetic.cpp).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/binding.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "tensor/host_values.h"

namespace plugrad::tensor {

/// Thrown where a value needs a device.
struct NotOnHost {};

constexpr int64_t kMostHostElements = 1 << 16;

inline std::vector<int64_t> strides_of(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

// Calls visit(place) for every element of `shape` in row-major order, where place is `start` plus
// the sum of coordinates times steps.
template <class Visit>
void each_place(std::span<const int64_t> shape, int64_t start, std::span<const int64_t> steps,
                const Visit& visit) {
  std::vector<int64_t> at(shape.size());
  int64_t place = start;
  for (int64_t left = element_count(shape); left > 0; --left) {
    visit(static_cast<size_t>(place));
    for (size_t axis = shape.size(); axis-- > 0;) {
      place += steps[axis];
      if (++at[axis] < shape[axis]) break;
      place -= steps[axis] * shape[axis];
      at[axis] = 0;
    }
  }
}

/// `Elements` has
///   Element                          an element of a tensor
///   Element number(bits, dtype)      a constant (ir/graph.h)
///   std::optional<Element> given(Id) the element of a node that it knows without its sources
///   Element apply(Op, DType, pairs)  an op on elements of these dtypes. Errors: NotOnHost
///   bool kTakesResults               whether the values of computed nodes are taken from memory
template <class Elements>
class HostEvaluator {
 public:
  using Element = typename Elements::Element;
  using List = std::span<const int64_t>;
  using Row = std::vector<Element>;

  HostEvaluator(engine::Session& session, Elements& elements)
      : session_(session), graph_(session.graph()), elements_(elements) {}

  /// In row-major order. The caller holds the session's lock. Errors: NotOnHost.
  const Row& of(Id root) {
    std::vector<Id> stack{root};
    while (!stack.empty()) {
      poll_interruption();
      const Id id = stack.back();
      bool is_ready = true;
      if (!values_.contains(id) && !stored(id) && !elements_.given(id))
        for (const Id source : graph_.sources(id))
          if (!values_.contains(source)) {
            stack.push_back(source);
            is_ready = false;
          }
      if (!is_ready) continue;
      stack.pop_back();
      if (!values_.contains(id)) values_.emplace(id, compute(id));
    }
    return values_.at(root);
  }

 private:
  // A value in memory; its sources are not needed.
  const engine::Value* stored(Id id) const {
    const bool is_result = !graph_.sources(id).empty();
    return is_result && !Elements::kTakesResults ? nullptr : session_.state().values.find(id);
  }
  List shape(Id id) const { return session_.shape(id); }
  const Row& source(Id id, size_t i = 0) const { return values_.at(graph_.sources(id)[i]); }

  Row compute(Id id) {
    if (element_count(shape(id)) > kMostHostElements || session_.is_counted(id)) throw NotOnHost();
    if (const std::optional<Element> element = elements_.given(id)) return {*element};
    if (graph_[id].op == Op::Const) return {elements_.number(graph_[id].arg, graph_[id].dtype)};
    if (const engine::Value* value = stored(id)) return from_memory(*value);
    switch (graph_[id].op) {
      case Op::Iota:
        return iota(id);
      case Op::Reduce:
        return reduce(id);
      case Op::Reshape:
      case Op::Contiguous:
      case Op::Bounded:
      case Op::Detach:
        return source(id);
      case Op::Permute:
      case Op::Expand:
      case Op::Shrink:
      case Op::Flip:
        return moved(id);
      case Op::Pad:
        return padded(id);
      default:
        return elementwise(id);
    }
  }

  Row from_memory(const engine::Value& value) {
    if (value.buffer || value.is_gone) throw NotOnHost();
    const size_t size = size_of(value.dtype);
    Row row;
    for (size_t at = 0; at < value.host.size(); at += size)
      row.push_back(
          elements_.number(bits_in_memory(value.host.data() + at, value.dtype), value.dtype));
    return row;
  }

  Row iota(Id id) {
    Row row;
    for (int64_t i = 0; i < element_count(shape(id)); ++i)
      row.push_back(elements_.number(bits_of(i, graph_[id].dtype), graph_[id].dtype));
    return row;
  }

  Row moved(Id id) const {
    const Id from = graph_.sources(id)[0];
    const List list = graph_.arg_list(id), from_shape = shape(from);
    std::vector<int64_t> steps = strides_of(from_shape);
    int64_t start = 0;
    switch (graph_[id].op) {
      case Op::Permute: {
        const std::vector<int64_t> strides = steps;
        for (size_t i = 0; i < steps.size(); ++i) steps[i] = strides[static_cast<size_t>(list[i])];
        break;
      }
      case Op::Expand:
        for (size_t i = 0; i < steps.size(); ++i)
          if (from_shape[i] == 1) steps[i] = 0;
        break;
      case Op::Shrink:
        for (size_t i = 0; i < steps.size(); ++i) start += list[2 * i] * steps[i];
        break;
      default:  // Flip
        for (size_t i = 0; i < steps.size(); ++i)
          if (list[i] != 0) {
            start += (from_shape[i] - 1) * steps[i];
            steps[i] = -steps[i];
          }
    }
    Row row;
    const Row& from_row = source(id);
    each_place(shape(id), start, steps, [&](size_t place) { row.push_back(from_row[place]); });
    return row;
  }

  Row padded(Id id) {
    const List before_after = graph_.arg_list(id);
    const DType dtype = graph_[id].dtype;
    Row row(static_cast<size_t>(element_count(shape(id))),
            elements_.number(bits_of(int64_t{0}, dtype), dtype));
    const std::vector<int64_t> strides = strides_of(shape(id));
    int64_t start = 0;
    for (size_t i = 0; i < strides.size(); ++i) start += before_after[2 * i] * strides[i];
    auto next = source(id).begin();
    each_place(shape(graph_.sources(id)[0]), start, strides,
               [&](size_t place) { row[place] = *next++; });
    return row;
  }

  Row elementwise(Id id) {
    const Node& node = graph_[id];
    const auto sources = graph_.sources(id);
    if (sources.empty() || sources.size() > 3) throw NotOnHost();
    Row row;
    // A number without axes stands for every element.
    const auto operand = [&](size_t k, size_t i) {
      const Row& of = source(id, k);
      return std::pair(graph_[sources[k]].dtype, of[shape(sources[k]).empty() ? 0 : i]);
    };
    const auto count = static_cast<size_t>(element_count(shape(id)));
    for (size_t i = 0; i < count; ++i)
      row.push_back(sources.size() == 1 ? elements_.apply(node.op, node.dtype, {operand(0, i)})
                    : sources.size() == 2
                        ? elements_.apply(node.op, node.dtype, {operand(0, i), operand(1, i)})
                        : elements_.apply(node.op, node.dtype,
                                          {operand(0, i), operand(1, i), operand(2, i)}));
    return row;
  }

  Row reduce(Id id) {
    if (graph_.sources(id).size() != 1) throw NotOnHost();
    const Op op = static_cast<Op>(graph_.arg_list(id)[0]);
    const DType dtype = graph_[id].dtype;
    // Floats are summed in double and rounded once.
    const DType wide = is_float(dtype) ? DType::F64 : dtype;
    Row row(static_cast<size_t>(element_count(shape(id))),
            elements_.number(identity_of(op, dtype), wide));
    std::vector<int64_t> steps = strides_of(shape(id));
    for (size_t i = 0; i < steps.size(); ++i)
      if (shape(id)[i] == 1) steps[i] = 0;
    auto next = source(id).begin();
    each_place(shape(graph_.sources(id)[0]), 0, steps, [&](size_t place) {
      row[place] = elements_.apply(op, wide, {{wide, row[place]}, {wide, *next++}});
    });
    if (wide != dtype)
      for (Element& each : row) each = elements_.apply(Op::Cast, dtype, {{wide, each}});
    return row;
  }

  static uint64_t identity_of(Op op, DType dtype) {
    if (op != Op::Max) return bits_of(int64_t{op == Op::Mul}, dtype);
    if (is_float(dtype)) return bits_of(-std::numeric_limits<double>::infinity(), DType::F64);
    if (is_unsigned(dtype) || dtype == DType::Bool) return 0;
    if (size_of(dtype) == 8 || dtype == DType::Index)
      return static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
    return bits_of(-(int64_t{1} << (size_of(dtype) * 8 - 1)), dtype);
  }

  engine::Session& session_;
  const Graph& graph_;
  Elements& elements_;
  std::unordered_map<Id, Row> values_;
};

}  // namespace plugrad::tensor
