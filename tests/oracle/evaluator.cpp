#include "oracle/evaluator.h"

#include <bit>
#include <unordered_map>

#include "base/check.h"
#include "ir/facts.h"
#include "oracle/alu.h"
#include "oracle/movement.h"

namespace plugrad::oracle {
namespace {

size_t count_of(std::span<const int64_t> shape) {
  return static_cast<size_t>(element_count(shape));
}

class Evaluator {
 public:
  Evaluator(const Graph& graph, const Leaves& leaves) : graph_(graph), leaves_(leaves) {}

  std::vector<Array> run(std::span<const Id> roots) {
    Reachable reachable;
    const std::vector<Id>& order = reachable.from(graph_, roots);
    for (Id id : order)
      for (Id source : graph_.sources(id)) ++uses_[source];
    for (Id root : roots) ++uses_[root];
    for (Id id : order) {
      arrays_.emplace(id, compute(id));
      for (Id source : graph_.sources(id)) release(source);
    }
    std::vector<Array> results;
    for (Id root : roots) results.push_back(arrays_.at(root));
    return results;
  }

 private:
  const Array& source(const Node& node, size_t i) const {
    return arrays_.at(graph_.sources(node)[i]);
  }

  // An array is freed at its last use, so that a long chain holds two.
  void release(Id id) {
    if (--uses_[id] == 0) arrays_.erase(id);
  }

  Array compute(Id id);
  Array elementwise(const Node& node) const;
  Array move(const Node& node) const;

  const Graph& graph_;
  const Leaves& leaves_;
  std::unordered_map<Id, Array> arrays_;
  std::unordered_map<Id, uint32_t> uses_;
};

Array iota(DType dtype, int64_t count) {
  Array result{dtype, {count}, std::vector<uint64_t>(static_cast<size_t>(count))};
  for (int64_t i = 0; i < count; ++i) result.bits[static_cast<size_t>(i)] = bits_of(i, dtype);
  return result;
}

Array reduce(const Array& x, std::span<const int64_t> op_and_axes, DType dtype) {
  const Op op = static_cast<Op>(op_and_axes[0]);
  Array result{dtype, x.shape, {}};
  for (int64_t axis : op_and_axes.subspan(1)) result.shape[static_cast<size_t>(axis)] = 1;
  // In double, or in the dtype itself where that is an integer; rounded at the end.
  const DType wide = is_float(dtype) ? DType::F64 : dtype;
  result.bits.assign(count_of(result.shape), identity_of(op, dtype, x.size() == 0));
  const auto places = places_when_reduced(x.shape, result.shape);
  for (size_t i = 0; i < x.size(); ++i) {
    uint64_t& total = result.bits[places[i]];
    const uint64_t args[] = {total, x.bits[i]};
    total = apply(op, wide, wide, args);
  }
  if (is_float(dtype))
    for (uint64_t& bits : result.bits) bits = bits_of(std::bit_cast<double>(bits), dtype);
  return result;
}

Array Evaluator::elementwise(const Node& node) const {
  const size_t count = node.src_count;
  const Array* sources[4];
  Array result{node.dtype, {}, {}};
  for (size_t s = 0; s < count; ++s) {
    sources[s] = &source(node, s);
    if (result.shape.empty()) result.shape = sources[s]->shape;
  }
  result.bits.resize(count_of(result.shape));
  const DType operand = sources[node.op == Op::Where ? 1 : 0]->dtype;
  uint64_t args[4];
  for (size_t i = 0; i < result.size(); ++i) {
    for (size_t s = 0; s < count; ++s)
      args[s] = sources[s]->bits[sources[s]->shape.empty() ? 0 : i];
    result.bits[i] = apply(node.op, node.dtype, operand, std::span(args, count));
  }
  return result;
}

Array Evaluator::move(const Node& node) const {
  const auto list = graph_.list(static_cast<ListId>(node.arg));
  switch (node.op) {
    case Op::Reshape: {
      Array result = source(node, 0);
      result.shape.assign(list.begin(), list.end());
      ensure(count_of(result.shape) == result.size(), "a reshape changes the size");
      return result;
    }
    case Op::Permute:
      return permute(source(node, 0), list);
    case Op::Expand:
      return expand(source(node, 0), list);
    case Op::Pad:
      return pad(source(node, 0), list);
    case Op::Shrink:
      return shrink(source(node, 0), list);
    default:
      return flip(source(node, 0), list);
  }
}

// Every op of the table needs a case; the compiler warns about a missing one.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
// clang-format off: the labels are a table
Array Evaluator::compute(Id id) {
  const Node& node = graph_[id];
  switch (node.op) {
    case Op::Buffer:
      return leaves_(id);
    case Op::Const:
      return {node.dtype, {}, {node.arg}};
    case Op::Iota:
      return iota(node.dtype, static_cast<int64_t>(node.arg));
    case Op::Reduce:
      return reduce(source(node, 0), graph_.arg_list(id), node.dtype);
    case Op::Contiguous:
    case Op::Detach:
    case Op::Bounded:
    case Op::Function:
    case Op::Copy:
    case Op::Shard:
      return source(node, 0);
    case Op::Reshape: case Op::Permute: case Op::Expand: case Op::Pad: case Op::Shrink:
    case Op::Flip:
      return move(node);
    case Op::Add: case Op::Sub: case Op::Mul: case Op::Neg: case Op::IDiv: case Op::Mod:
    case Op::Max: case Op::Recip: case Op::FDiv: case Op::Sqrt: case Op::Fma: case Op::Trunc:
    case Op::And: case Op::Or: case Op::Xor: case Op::Shl: case Op::Shr: case Op::CmpLt:
    case Op::CmpEq: case Op::CmpNe: case Op::Where: case Op::Cast: case Op::Bitcast: case Op::Exp2:
    case Op::Log2: case Op::Sin: case Op::FloorDiv: case Op::FloorMod: case Op::Exp: case Op::Log:
    case Op::Pow: case Op::Cos: case Op::Tan: case Op::Threefry0: case Op::Threefry1:
      return elementwise(node);
    case Op::UserKernel:
      fail(ErrorKind::Unsupported, "[evaluate] a user's kernel is not evaluated: compare its "
                                   "values with those of tensor functions");
    case Op::Nop: case Op::Param: case Op::Array: case Op::GroupId: case Op::LocalId:
    case Op::Loop: case Op::EndLoop: case Op::If: case Op::EndIf: case Op::Load: case Op::Store:
    case Op::AtomicAdd: case Op::Barrier: case Op::Vector: case Op::Lane: case Op::Wmma:
    case Op::AsyncCopy: case Op::AsyncCommit: case Op::AsyncWait: case Op::Sink: case Op::Range: case Op::Filled:
    case Op::Scalar: case Op::Keep: case Op::Collective: case Op::Window:
      break;
  }
  fail(ErrorKind::Unsupported, "[evaluate] {} has no place in a tensor graph",
       op_info(node.op).name);
}
// clang-format on
#pragma GCC diagnostic pop

}  // namespace

std::vector<Array> evaluate(const Graph& graph, std::span<const Id> roots, const Leaves& leaves) {
  return Evaluator(graph, leaves).run(roots);
}

}  // namespace plugrad::oracle
