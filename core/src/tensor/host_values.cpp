#include "tensor/host_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "engine/session_state.h"
#include "engine/views.h"
#include "ir/fold.h"
#include "ir/round.h"
#include "tensor/handles.h"

namespace plugrad::tensor {
namespace {

constexpr int64_t kMostElements = 1 << 16;

using List = std::span<const int64_t>;
using Bits = std::vector<uint64_t>;

std::vector<int64_t> strides_of(List shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

// Calls visit(place) for every element of `shape` in row-major order, where place is `start` plus
// the sum of coordinates times steps.
template <class Visit>
void each_place(List shape, int64_t start, List steps, const Visit& visit) {
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

Bits read_places(const Bits& x, List shape, int64_t start, List steps) {
  Bits read;
  each_place(shape, start, steps, [&](size_t place) { read.push_back(x[place]); });
  return read;
}

// Throws NotOnHost where a value needs a device.
struct NotOnHost {};

class Evaluator {
 public:
  explicit Evaluator(engine::Session& session) : session_(session), graph_(session.graph()) {}

  const Bits& of(Id root) {
    std::vector<Id> stack{root};
    while (!stack.empty()) {
      const Id id = stack.back();
      bool is_ready = true;
      if (!values_.contains(id) && !stored(id))
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
  const engine::Value* stored(Id id) const { return session_.state().values.find(id); }
  List shape(Id id) const { return session_.shape(id); }
  const Bits& source(Id id, size_t i = 0) const { return values_.at(graph_.sources(id)[i]); }

  Bits compute(Id id) {
    if (element_count(shape(id)) > kMostElements || session_.is_counted(id)) throw NotOnHost();
    if (const engine::Value* value = stored(id)) return from_memory(*value);
    switch (graph_[id].op) {
      case Op::Const:
        return {graph_[id].arg};
      case Op::Iota:
        return iota(id);
      case Op::Reduce:
        return reduce(id);
      case Op::Reshape:
      case Op::Contiguous:
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

  static Bits from_memory(const engine::Value& value) {
    if (value.buffer || value.is_gone) throw NotOnHost();
    const size_t size = size_of(value.dtype);
    Bits bits;
    for (size_t at = 0; at < value.host.size(); at += size)
      bits.push_back(bits_in_memory(value.host.data() + at, value.dtype));
    return bits;
  }

  Bits iota(Id id) const {
    Bits bits;
    for (int64_t i = 0; i < element_count(shape(id)); ++i)
      bits.push_back(bits_of(i, graph_[id].dtype));
    return bits;
  }

  Bits moved(Id id) const {
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
    return read_places(source(id), shape(id), start, steps);
  }

  Bits padded(Id id) const {
    const List before_after = graph_.arg_list(id);
    Bits bits(static_cast<size_t>(element_count(shape(id))), bits_of(int64_t{0}, graph_[id].dtype));
    const std::vector<int64_t> strides = strides_of(shape(id));
    int64_t start = 0;
    for (size_t i = 0; i < strides.size(); ++i) start += before_after[2 * i] * strides[i];
    auto next = source(id).begin();
    each_place(shape(graph_.sources(id)[0]), start, strides,
               [&](size_t place) { bits[place] = *next++; });
    return bits;
  }

  // The op on constants of these dtypes.
  uint64_t apply(Op op, DType dtype, std::initializer_list<std::pair<DType, uint64_t>> operands) {
    Graph& scratch = scratch_;
    std::vector<Id> constants;
    for (const auto& [of, bits] : operands)
      constants.push_back(scratch.add(Op::Const, of, {}, bits));
    const auto folded = fold(scratch, op, dtype, constants);
    if (!folded) throw NotOnHost();
    return *folded;
  }

  Bits elementwise(Id id) {
    const Node& node = graph_[id];
    const auto sources = graph_.sources(id);
    if (sources.empty() || sources.size() > 3) throw NotOnHost();
    Bits bits;
    // A number without axes stands for every element.
    const auto operand = [&](size_t k, size_t i) {
      const Bits& of = source(id, k);
      return std::pair(graph_[sources[k]].dtype, of[shape(sources[k]).empty() ? 0 : i]);
    };
    const auto count = static_cast<size_t>(element_count(shape(id)));
    for (size_t i = 0; i < count; ++i)
      bits.push_back(
          sources.size() == 1 ? apply(node.op, node.dtype, {operand(0, i)})
          : sources.size() == 2
              ? apply(node.op, node.dtype, {operand(0, i), operand(1, i)})
              : apply(node.op, node.dtype, {operand(0, i), operand(1, i), operand(2, i)}));
    if (scratch_.size() > kMostElements) scratch_ = Graph();
    return bits;
  }

  Bits reduce(Id id) {
    if (graph_.sources(id).size() != 1) throw NotOnHost();
    const Op op = static_cast<Op>(graph_.arg_list(id)[0]);
    const DType dtype = graph_[id].dtype;
    // Floats are summed in double and rounded once.
    const DType wide = is_float(dtype) ? DType::F64 : dtype;
    Bits bits(static_cast<size_t>(element_count(shape(id))), identity_of(op, dtype));
    std::vector<int64_t> steps = strides_of(shape(id));
    for (size_t i = 0; i < steps.size(); ++i)
      if (shape(id)[i] == 1) steps[i] = 0;
    auto next = source(id).begin();
    each_place(shape(graph_.sources(id)[0]), 0, steps, [&](size_t place) {
      bits[place] = apply(op, wide, {{wide, bits[place]}, {wide, *next++}});
    });
    if (is_float(dtype))
      for (uint64_t& each : bits) each = bits_of(std::bit_cast<double>(each), dtype);
    return bits;
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
  Graph scratch_;
  std::unordered_map<Id, Bits> values_;
};

}  // namespace

uint64_t bits_in_memory(const std::byte* memory, DType dtype) {
  uint64_t stored = 0;
  std::memcpy(&stored, memory, size_of(dtype));
  if (dtype == DType::F64) return stored;
  if (dtype == DType::F32)
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(stored))));
  if (is_float(dtype))
    return std::bit_cast<uint64_t>(decode_small_float(static_cast<uint16_t>(stored), dtype));
  return static_cast<uint64_t>(round_int(static_cast<int64_t>(stored), dtype));
}

std::optional<HostValues> host_values(const Tensor& tensor) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  const Id node = state_of(tensor)->node;
  try {
    HostValues values{tensor.shape(), session.graph()[node].dtype, {}};
    values.bits = Evaluator(session).of(node);
    return values;
  } catch (const NotOnHost&) {
    return {};
  }
}

}  // namespace plugrad::tensor
