// Checks a node and returns the problem, or null; ops.def names the check of each op.
#include "ir/verifier.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/check.h"
#include "ir/facts.h"
#include "ir/range.h"
#include "ir/scratch.h"
#include "ir/text/printer.h"
#include "ir/user.h"

namespace plugrad {
namespace {

constexpr int64_t kMostParams = 1 << 16;  // of a kernel

struct Subject {
  Graph& g;
  const Node& n;  // may not be in the graph yet: its sources are given separately
  std::span<const Id> sources;
  Spec spec;
  std::span<const int64_t> list() const { return g.list(static_cast<ListId>(n.arg)); }
  DType type(size_t i) const { return g[sources[i]].dtype; }
};
using Check = const char* (*)(const Subject&);

const char* anything(const Subject&) {
  return nullptr;
}

const char* same_dtypes(const Subject& s) {
  for (size_t i = 0; i < s.sources.size(); ++i)
    if (s.type(i) != s.n.dtype) return "sources and result must have one dtype";
  return nullptr;
}
const char* float_op(const Subject& s) {
  return is_float(s.n.dtype) ? same_dtypes(s) : "the op takes floats only";
}
const char* integer_op(const Subject& s) {
  return is_integer(s.n.dtype) ? same_dtypes(s) : "the op takes integers only";
}
const char* hash_op(const Subject& s) {
  return s.n.dtype == DType::U32 ? same_dtypes(s) : "the op takes u32 only";
}
// Floats have C's fmod, which linearise writes in other ops: no device has it.
const char* remainder_op(const Subject& s) {
  return is_float(s.n.dtype) ? same_dtypes(s) : integer_op(s);
}
const char* number_op(const Subject& s) {
  return s.n.dtype != DType::Void ? same_dtypes(s) : "the op needs a value";
}
const char* bitwise_op(const Subject& s) {
  return is_float(s.n.dtype) ? "the op takes integers and bool only" : same_dtypes(s);
}
const char* compare(const Subject& s) {
  if (s.n.dtype != DType::Bool) return "a comparison is bool";
  return s.type(0) == s.type(1) ? nullptr : "a comparison needs sources of one dtype";
}
const char* where_op(const Subject& s) {
  if (s.type(0) != DType::Bool) return "the condition must be bool";
  return s.type(1) == s.n.dtype && s.type(2) == s.n.dtype
             ? nullptr
             : "both arms must have the result's dtype";
}
const char* cast_op(const Subject& s) {
  return s.type(0) != DType::Void && s.n.dtype != DType::Void ? nullptr : "a cast needs a value";
}
const char* bitcast_op(const Subject& s) {
  return size_of(s.type(0)) == size_of(s.n.dtype) ? nullptr : "a bitcast keeps the size";
}
const char* constant(const Subject& s) {
  if (is_float(s.n.dtype)) return nullptr;
  const auto value = static_cast<int64_t>(s.n.arg);
  return bits_of(value, s.n.dtype) == s.n.arg ? nullptr : "the constant does not fit its dtype";
}
const char* first_source_dtype(const Subject& s) {
  return s.type(0) == s.n.dtype ? nullptr : "the result has the dtype of the source";
}
const char* buffer_op(const Subject& s) {
  const auto list = s.list();
  // The scheduler numbers constants that it makes from -1 down.
  if (list.size() < 2 || list[1] < 0 || list[1] > UINT32_MAX)
    return "the list needs a number and a device";
  return is_possible_shape(list.subspan(2)) ? nullptr : "no tensor has this shape";
}
const char* iota_op(const Subject& s) {
  return s.n.arg <= static_cast<uint64_t>(kMostElements) ? nullptr : "no tensor has this shape";
}
const char* param_op(const Subject& s) {
  const auto list = s.list();
  if (list.size() != 4) return "the list needs a slot, a kind, a number of elements and flags";
  if (list[0] < 0 || list[0] >= kMostParams) return "the slot is none of a kernel";
  return list[2] >= 0 && list[2] <= kMostElements ? nullptr : "no tensor has so many elements";
}
const char* range_op(const Subject& s) {
  if (!is_integer(s.n.dtype)) return "a range is an integer";
  if (s.type(0) != s.n.dtype) return "the size has the range's dtype";
  if (is_const(s.g, s.sources[0]) && const_int(s.g, s.sources[0]) < 0)
    return "the size is negative";
  if (s.sources.size() == 1) return nullptr;
  if (s.sources.size() == 2) return "a bounded range has a begin and an end";
  if (s.type(1) != s.n.dtype || s.type(2) != s.n.dtype) return "the bounds have the range's dtype";
  if (is_const(s.g, s.sources[1]) && const_int(s.g, s.sources[1]) < 0)
    return "the range begins below 0";
  if (is_const(s.g, s.sources[0]) && is_const(s.g, s.sources[2]) &&
      const_int(s.g, s.sources[2]) > const_int(s.g, s.sources[0]))
    return "the range ends behind its size";
  return nullptr;
}
const char* reduce_op(const Subject& s) {
  const auto list = s.list();
  if (list.empty()) return "the list must name the op";
  const auto is = [&](Op op) { return list[0] == static_cast<int64_t>(op); };
  if (!is(Op::Add) && !is(Op::Mul) && !is(Op::Max)) return "reductions are by add, mul or max";
  if (s.type(0) != s.n.dtype) return "the result has the dtype of the source";
  if (s.spec == Spec::Tensor)
    return s.sources.size() == 1 ? nullptr : "a tensor reduction has axes, not ranges";
  bool ranges = false;  // unrolled by codegen: several values come first
  for (Id source : s.sources.subspan(1)) {
    const bool is_range = s.g[source].op == Op::Range;
    if (ranges && !is_range) return "sources after the values must be ranges";
    ranges |= is_range;
  }
  if (!ranges) return "a loop reduction closes at least one range";
  return s.sources.size() > 1 ? nullptr : "a reduction needs ranges";
}
bool is_memory(const Node& n) {
  return n.op == Op::Param || n.op == Op::Array || n.op == Op::Filled;
}
const char* scalar(const Subject& s) {
  const auto list = s.list();
  if (list.size() != 3 || list[0] < 0 || list[0] >= kMostParams || (list[2] | 1) != 1)
    return "the list needs a number, the most, and 0 or 1";
  return list[1] >= 0 && list[1] <= INT32_MAX ? nullptr : "the most is an i32, and not negative";
}
const char* filled_op(const Subject& s) {
  const FilledParts parts = [&] {
    size_t stores = 0;
    while (stores < s.sources.size() && s.g[s.sources[stores]].op == Op::Store) ++stores;
    return FilledParts{kNoId, s.sources.subspan(0, stores), s.sources.subspan(stores)};
  }();
  if (parts.stores.empty()) return "an array is filled by at least one store";
  const Id array = s.g.sources(parts.stores[0])[0];
  const bool holds = s.g[array].op == Op::Array || s.g[array].op == Op::Param;
  if (!holds || s.g[array].dtype != s.n.dtype)
    return "the stores fill an array of the result's dtype";
  for (Id store : parts.stores)
    if (s.g.sources(store)[0] != array) return "all stores fill one array";
  for (Id range : parts.ranges)
    if (s.g[range].op != Op::Range) return "sources after the stores must be ranges";
  return nullptr;
}
const char* load_op(const Subject& s) {
  if (!is_memory(s.g[s.sources[0]])) return "the source must be a param or an array";
  if (!is_integer(s.type(1))) return "the index must be an integer";
  if (s.sources.size() == 3) return "a gate needs the value that stands for what is not read";
  if (s.sources.size() == 4 && s.type(2) != DType::Bool) return "the gate must be bool";
  if (s.sources.size() == 4 && s.type(3) != s.n.dtype)
    return "the alternative must have the load's dtype";
  return s.type(0) == s.n.dtype ? nullptr : "the load has the dtype of the memory";
}
const char* store_op(const Subject& s) {
  const Op target = s.g[s.sources[0]].op;
  if (target != Op::Param && target != Op::Array) return "the target must be a param or an array";
  if (!is_integer(s.type(1))) return "the index must be an integer";
  if (s.type(2) != s.type(0)) return "the value must have the dtype of the memory";
  return s.sources.size() < 4 || s.type(3) == DType::Bool ? nullptr : "the gate must be bool";
}
const char* bounded_op(const Subject& s) {
  if (s.spec == Spec::Tensor) return first_source_dtype(s);
  const bool are_indices = s.type(0) == DType::Index && s.type(1) == DType::Index;
  return are_indices && s.n.dtype == DType::Bool ? nullptr : "a hint compares two indices";
}
const char* keep_op(const Subject& s) {
  const auto list = s.list();
  if (list.size() != 2 || list[0] < 0 || list[1] < 0 || list[1] > 1)
    return "the list needs a number, and 0 or 1";
  return first_source_dtype(s);
}
const char* user_kernel(const Subject& s) {
  const auto list = s.list();
  if (list.size() < 3 || list[1] < 0 || list[1] >= list[2]) return "the list names no output";
  size_t at = 3;  // start of the next output's form: dtype, rank, sizes
  for (int64_t i = 0; i < list[2]; ++i) {
    if (at + 2 > list.size() || list[at + 1] < 0) return "the list lacks the form of an output";
    if (static_cast<uint64_t>(list[at + 1]) > list.size() - at - 2)
      return "the list lacks sizes of an output";
    const auto rank = static_cast<size_t>(list[at + 1]);
    if (!is_possible_shape(list.subspan(at + 2, rank))) return "no tensor has this shape";
    at += 2 + rank;
  }
  const UserKernelArg arg(list);
  return arg.form(arg.output()).dtype == s.n.dtype ? nullptr
                                                   : "the result has the dtype of the output";
}
const char* sink(const Subject& s) {
  if (s.spec == Spec::Tensor) return nullptr;
  const bool stores =
      std::ranges::all_of(s.sources, [&](Id id) { return s.g[id].dtype == DType::Void; });
  return stores ? nullptr : "a kernel's sink has stores below it";
}

// Checks of shapes, for ops of tensor graphs.
struct ShapeSubject {
  const Subject& s;
  Shapes& shapes;
  std::span<const int64_t> list() const { return s.list(); }
  std::vector<int64_t> source(size_t i = 0) const {
    const auto shape = shapes[s.sources[i]];
    return {shape.begin(), shape.end()};
  }
};

const char* check_pairs(const ShapeSubject& s, bool inside) {
  const auto list = s.list();
  auto shape = s.source();
  if (list.size() != 2 * shape.size()) return "the list needs two numbers an axis";
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t a = list[2 * i], b = list[2 * i + 1];
    if (inside ? (a < 0 || b < a || b > shape[i]) : (a < 0 || b < 0))
      return "the list leaves the source's shape";
    if (!inside && (a > kMostElements || b > kMostElements)) return "no tensor has this shape";
    if (!inside) shape[i] += a + b;
  }
  return is_possible_shape(shape) ? nullptr : "no tensor has this shape";
}

const char* check_permute(const ShapeSubject& s) {
  std::vector<int64_t> order(s.list().begin(), s.list().end());
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return "the list is no permutation";
  return order.size() == s.source().size() ? nullptr : "the list has another rank than the source";
}

const char* check_expand(const ShapeSubject& s) {
  const auto from = s.source();
  const auto to = s.list();
  if (from.size() != to.size()) return "an expand keeps the rank";
  for (size_t i = 0; i < to.size(); ++i)
    if (from[i] != to[i] && from[i] != 1) return "only axes of size 1 expand";
  return is_possible_shape(to) ? nullptr : "no tensor has this shape";
}

const char* check_reshape(const ShapeSubject& s) {
  if (!is_possible_shape(s.list())) return "no tensor has this shape";
  return element_count(s.source()) == element_count(s.list())
             ? nullptr
             : "a reshape keeps the number of elements";
}

const char* check_bounded(const ShapeSubject& s) {
  const auto list = s.list();
  const bool has_axis =
      list.size() == 2 && list[0] >= 0 && list[0] < static_cast<int64_t>(s.source().size());
  return has_axis ? nullptr : "the list needs an axis of the source and the least size";
}

const char* check_window(const ShapeSubject& s) {
  const auto list = s.list();
  const auto shape = s.source();
  const bool is_there = list.size() == 2 && list[0] >= 0 &&
                        list[0] < static_cast<int64_t>(shape.size()) && list[1] >= 0 &&
                        list[1] <= shape[static_cast<size_t>(list[0])];
  return is_there ? nullptr : "the list needs an axis of the source and a length within it";
}

const char* check_axes(const ShapeSubject& s) {
  for (int64_t axis : s.list().subspan(1))
    if (axis < 0 || axis >= static_cast<int64_t>(s.source().size()))
      return "an axis is out of range";
  return nullptr;
}

const char* check_equal_shapes(const ShapeSubject& s) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < s.s.sources.size(); ++i) {
    const auto other = s.source(i);
    if (!other.empty() && !shape.empty() && other != shape) return "sources must have one shape";
    if (!other.empty()) shape = other;
  }
  return nullptr;
}

const char* check_shapes(const Subject& subject, Shapes& shapes) {
  const ShapeSubject s{subject, shapes};
  switch (subject.n.op) {
    case Op::Reshape:
      return check_reshape(s);
    case Op::Permute:
      return check_permute(s);
    case Op::Expand:
      return check_expand(s);
    case Op::Pad:
      return check_pairs(s, false);
    case Op::Shrink:
      return check_pairs(s, true);
    case Op::Window:
      return check_window(s);
    case Op::Flip:
      return s.list().size() == s.source().size() ? nullptr
                                                  : "the list has another rank than the source";
    case Op::Reduce:
      return check_axes(s);
    case Op::Bounded:
      return check_bounded(s);
    case Op::Shard:
      return s.list().size() == s.source().size() + 3 ? nullptr
                                                      : "the spec has another rank than the source";
    default:
      return is_alu(subject.n.op) ? check_equal_shapes(s) : nullptr;
  }
}

// The checks of ops whose operand rule is Own.
struct OwnCheck {
  Op op;
  Check check;
};
constexpr OwnCheck kOwnChecks[] = {
    {Op::Sink, sink},        {Op::Const, constant},     {Op::Buffer, buffer_op},
    {Op::Iota, iota_op},     {Op::Bounded, bounded_op}, {Op::UserKernel, user_kernel},
    {Op::Reduce, reduce_op}, {Op::Range, range_op},     {Op::Param, param_op},
    {Op::Scalar, scalar},    {Op::Filled, filled_op},   {Op::Keep, keep_op},
    {Op::Load, load_op},     {Op::Store, store_op},     {Op::AtomicAdd, store_op},
    {Op::Where, where_op},   {Op::Cast, cast_op},       {Op::Bitcast, bitcast_op},
    {Op::Mod, remainder_op}, {Op::Threefry0, hash_op},  {Op::Threefry1, hash_op},
};

Check check_of(Op op) {
  switch (op_info(op).operands) {
    case OperandRule::First:
      return first_source_dtype;
    case OperandRule::Numbers:
      return number_op;
    case OperandRule::Integers:
      return integer_op;
    case OperandRule::Floats:
      return float_op;
    case OperandRule::Bits:
      return bitwise_op;
    case OperandRule::Comparison:
      return compare;
    case OperandRule::Own:
      return std::ranges::find(kOwnChecks, op, &OwnCheck::op)->check;
    case OperandRule::Any:
      break;
  }
  return anything;
}

std::array<Check, 256> checks_by_op() {
  std::array<Check, 256> checks;
  for (size_t number = 0; number < checks.size(); ++number)
    checks[number] = check_of(static_cast<Op>(number));
  return checks;
}

const char* check_node(const Subject& s, Shapes& shapes) {
  const OpInfo& info = op_info(s.n.op);
  if (!info.known) return "there is no such op";
  if (!belongs(s.n.op, s.spec)) return "the op does not belong to this stage";
  if (s.sources.size() < info.min_sources ||
      (info.max_sources != 255 && s.sources.size() > info.max_sources))
    return "the number of sources is wrong";
  if (s.spec == Spec::Program && (s.n.dtype == DType::Index || s.n.dtype == DType::WeakFloat))
    return "weak dtypes must be gone";
  static const std::array<Check, 256> checks = checks_by_op();
  const char* wrong = checks[static_cast<uint8_t>(s.n.op)](s);
  return wrong == nullptr && s.spec == Spec::Tensor ? check_shapes(s, shapes) : wrong;
}

[[noreturn]] void complain(const Graph& g, Id id, const char* what, const char* stage) {
  std::string text =
      fmt::format("[verify] {}{}{}: {}", stage, *stage ? ": " : "", what, print_node(g, id));
  for (Id s : g.sources(id)) text += "\n  source " + print_node(g, s);
  throw_error(ErrorKind::Internal, text);
}

}  // namespace

void verify(Graph& graph, std::span<const Id> roots, Spec spec, const char* stage) {
  Reachable reachable;
  Shapes shapes(graph);
  for (Id id : reachable.from(graph, roots)) {
    const char* wrong = check_node({graph, graph[id], graph.sources(id), spec}, shapes);
    if (wrong != nullptr) complain(graph, id, wrong, stage);
  }
}

const char* node_problem(Graph& graph, Shapes& shapes, Spec spec, Op op, DType dtype,
                         std::span<const Id> sources, uint64_t arg) {
  const Node node{op, dtype, static_cast<uint16_t>(sources.size()), {}, 0, arg};
  return check_node({graph, node, sources, spec}, shapes);
}

bool belongs(Op op, Spec spec) {
  return (op_info(op).stages & static_cast<uint8_t>(spec)) != 0;
}

namespace {

/// Whether the value that `reduce` sums contains the Reduce `other`.
bool contains(const Graph& graph, Id reduce, Id other) {
  Reachable reachable;
  const Id value = graph.sources(reduce)[0];
  const auto& inside = reachable.from(graph, std::span<const Id>(&value, 1));
  return std::ranges::binary_search(inside, other);
}

}  // namespace

void verify_kernel_ast(Graph& graph, Id sink) {
  const char* stage = "kernel";
  verify(graph, sink, Spec::Kernel, stage);
  if (graph[sink].op != Op::Sink) complain(graph, sink, "the root must be a sink", stage);
  Reachable reachable;
  std::map<uint32_t, Id> axes;
  std::multimap<Id, Id> closed_by;
  for (Id id : reachable.from(graph, std::span<const Id>(&sink, 1))) {
    const Node& n = graph[id];
    if (n.op == Op::Range && !axes.emplace(range_axis(n), id).second)
      complain(graph, id, "two ranges have one axis number", stage);
    if (n.op != Op::Reduce) continue;
    for (Id range : graph.sources(id).subspan(1)) {
      if (range_kind(graph[range]) != AxisKind::Reduce)
        complain(graph, id, "only reduce ranges are closed", stage);
      const auto [begin, end] = closed_by.equal_range(range);
      if (std::any_of(begin, end, [&](const auto& by) { return contains(graph, id, by.second); }))
        complain(graph, id, "a range is closed twice", stage);
      closed_by.emplace(range, id);
    }
  }
  // A reduce range is open at a store if some path to it passes no Reduce that closes it.
  std::vector<Id> stack{sink};
  std::vector<bool> seen(graph.size());
  while (!stack.empty()) {
    const Id id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    if (graph[id].op == Op::Range && range_kind(graph[id]) == AxisKind::Reduce)
      complain(graph, id, "a reduce range is open at a store", stage);
    if (graph[id].op == Op::Reduce) continue;
    for (Id s : graph.sources(id)) stack.push_back(s);
  }
}

}  // namespace plugrad
