#include "tensor/sizes/size_arithmetic.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/fold.h"
#include "ir/kernel_ast.h"
#include "jit/trace.h"
#include "symbolic/symbolic.h"
#include "tensor/handles.h"
#include "tensor/host_evaluator.h"
#include "tensor/record.h"

namespace plugrad::tensor {
namespace {

Id size_node(const Tensor& tensor) {
  return state_of(tensor)->node;
}

// Elements are nodes of a graph of its own: constants of any dtype, and expressions of sizes, which
// are of DType::Index or Bool.
class Expressions {
 public:
  using Element = Id;
  using Operands = std::initializer_list<std::pair<DType, Id>>;
  static constexpr bool kTakesResults = false;  // which are of one value of a variable

  Expressions() : simplified_(graph_) {}

  // A new variable that stands for the count.
  void add(const Tensor& count, Interval bounds, std::optional<int64_t> now = {}) {
    if (given(size_node(count))) return;
    const auto number = static_cast<uint32_t>(variables_.size());
    const Id variable = make_scalar(graph_, number, bounds.hi);
    simplified_.bounds().set(variable, bounds);
    variables_.emplace_back(count, variable);
    count_of_.emplace(variable, count);
    if (now) now_.emplace(variable, *now);
  }

  // With the values that the variables have now.
  std::optional<int64_t> value_now(Id expression) {
    if (is_const(graph_, expression)) return const_int(graph_, expression);
    if (const auto at = now_.find(expression); at != now_.end()) return at->second;
    const auto sources = graph_.sources(expression);
    std::vector<Id> numbers;
    for (const Id source : std::vector<Id>(sources.begin(), sources.end())) {
      const auto value = value_now(source);
      if (!value) return {};
      numbers.push_back(number(static_cast<uint64_t>(*value), graph_[source].dtype));
    }
    const Op op = graph_[expression].op;
    const auto folded = fold(graph_, op, graph_[expression].dtype, numbers);
    return folded ? std::optional(static_cast<int64_t>(*folded)) : std::nullopt;
  }

  Id number(uint64_t bits, DType dtype) { return graph_.add(Op::Const, dtype, {}, bits); }
  std::optional<Id> given(Id node) const {
    const auto at = std::ranges::find(
        variables_, node, [](const auto& variable) { return size_node(variable.first); });
    return at == variables_.end() ? std::nullopt : std::optional(at->second);
  }

  Id apply(Op op, DType dtype, Operands operands) {
    std::vector<Id> ids;
    for (const auto& [of, id] : operands) ids.push_back(id);
    const bool all_constant = std::ranges::all_of(ids, [&](Id id) { return is_const(graph_, id); });
    if (!all_constant) return checked(of_sizes(op, dtype, ids), dtype);
    const auto folded = fold(graph_, op, dtype, ids);
    if (!folded) throw NotOnHost();
    return number(*folded, dtype);
  }

  SizeValue value_of(Id id) {
    if (is_const(graph_, id)) {
      const int64_t number = const_int(graph_, id);
      return {number, number, graph_.index(number)};
    }
    const Interval bounds = simplified_.bounds()[id];
    return {bounds.lo, bounds.hi, id};
  }

  // The expression as a count (ir/extents.h) of the tensor graph.
  Id count_of(Id expression, Recorder& r) {
    if (const auto at = count_of_.find(expression); at != count_of_.end()) return r.use(at->second);
    Graph& tensors = r.graph();
    const Node& node = graph_[expression];
    const DType dtype = node.dtype == DType::Bool ? DType::Bool : DType::I32;
    Id count = kNoId;
    if (node.op == Op::Const) {
      count = tensors.constant(dtype, const_int(graph_, expression));
    } else {
      std::vector<Id> sources;
      for (const Id source : graph_.sources(expression)) sources.push_back(count_of(source, r));
      count = tensors.add(node.op, dtype, sources);
    }
    note(r.done(count), expression);
    return count;
  }

  // Equal expressions share the first count, which the engine may have derived.
  void note(const Tensor& count, Id expression) { count_of_.try_emplace(expression, count); }

 private:
  Id index_of(Id id) {
    if (is_const(graph_, id)) return graph_.index(const_int(graph_, id));
    if (graph_[id].dtype != DType::Bool) return id;
    return graph_.where(id, graph_.index(1), graph_.index(0));
  }

  Id of_sizes(Op op, DType dtype, const std::vector<Id>& ids) {
    if (is_float(dtype) || is_float(graph_[ids.back()].dtype)) throw NotOnHost();
    const bool is_truth = dtype == DType::Bool;
    switch (op) {
      case Op::Cast:
        return is_truth && graph_[ids[0]].dtype != DType::Bool
                   ? graph_.binary(Op::CmpNe, ids[0], graph_.index(0))
               : is_truth ? ids[0]
                          : index_of(ids[0]);
      case Op::Where:
        return is_truth ? graph_.where(ids[0], ids[1], ids[2])
                        : graph_.where(ids[0], index_of(ids[1]), index_of(ids[2]));
      case Op::CmpLt:
      case Op::CmpEq:
      case Op::CmpNe:
        return graph_.binary(op, index_of(ids[0]), index_of(ids[1]));
      case Op::Xor:  // of integers: ~x, as in a minimum
        if (!is_truth) return complement(ids);
        [[fallthrough]];
      case Op::And:
      case Op::Or:
        if (!is_truth) throw NotOnHost();
        return graph_.binary(op, ids[0], ids[1]);
      case Op::IDiv:
      case Op::Mod:
        return divided(op == Op::IDiv ? Op::FloorDiv : Op::FloorMod, ids);
      case Op::Add:
      case Op::Sub:
      case Op::Mul:
      case Op::Max:
      case Op::FloorDiv:
      case Op::FloorMod:
        if (is_truth) throw NotOnHost();
        return graph_.binary(op, index_of(ids[0]), index_of(ids[1]));
      case Op::Neg:
        return graph_.unary(op, index_of(ids[0]));
      default:
        throw NotOnHost();
    }
  }

  Id complement(const std::vector<Id>& ids) {
    for (const size_t i : {0, 1})
      if (is_const(graph_, ids[i]) && const_int(graph_, ids[i]) == -1)
        return graph_.binary(Op::Sub, ids[i], index_of(ids[1 - i]));
    throw NotOnHost();
  }

  // Division that rounds towards 0 is floor division of numbers that are not negative.
  Id divided(Op op, const std::vector<Id>& ids) {
    const Id x = index_of(ids[0]), y = index_of(ids[1]);
    if (simplified_.bounds()[x].lo < 0 || simplified_.bounds()[y].lo < 0) throw NotOnHost();
    return graph_.binary(op, x, y);
  }

  // Errors: NotOnHost if the dtype may not hold the value, which then wraps.
  Id checked(Id node, DType dtype) {
    const Id result = simplified_(node);
    const Interval all = dtype_interval(strong(dtype)), bounds = simplified_.bounds()[result];
    if (bounds.lo < all.lo || bounds.hi > all.hi) throw NotOnHost();
    return bounds.is_const() ? number(static_cast<uint64_t>(bounds.lo), dtype) : result;
  }

  Graph graph_;
  Simplifier simplified_;
  // Tensors, because the session renumbers its nodes.
  std::vector<std::pair<Tensor, Id>> variables_;  // counts of inputs
  std::map<Id, Tensor> count_of_;                 // by expression
  std::map<Id, int64_t> now_;                     // by variable
};

}  // namespace

struct SizeArithmetic::State {
  Expressions expressions;

  // In the order of their nodes, so that equal sums of several are one expression.
  void add_variables_of(Recorder& r, Id node) {
    constexpr size_t kMost = 256;  // nodes; no size is computed by more
    std::set<Id> leaves, seen{node};
    std::vector<Id> stack{node};
    while (!stack.empty() && seen.size() <= kMost) {
      const Id id = stack.back();
      stack.pop_back();
      const engine::Value* const value = r.session().state().values.find(id);
      if (value && value->variable)
        leaves.insert(id);
      else
        for (const Id source : r.graph().sources(id))
          if (seen.insert(source).second) stack.push_back(source);
    }
    for (const Id leaf : leaves) {
      const engine::BoundVariable& bound = *r.session().state().values.find(leaf)->variable;
      expressions.add(r.done(leaf), {bound.low, bound.high}, bound.value);
    }
  }

  std::optional<std::vector<Id>> rows(Id node) {
    try {
      return HostEvaluator(engine::Session::current(), expressions).of(node);
    } catch (const NotOnHost&) {
      return {};
    }
  }
};

SizeArithmetic::SizeArithmetic() : state_(std::make_unique<State>()) {}
SizeArithmetic::~SizeArithmetic() = default;

void SizeArithmetic::add(const Tensor& x) {
  Recorder r("size");
  const Id node = r.use(x);
  const Shape shape = r.shape(node);
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (const Extent e = r.extent(node, static_cast<int64_t>(axis)); e.is_counted()) {
      state_->add_variables_of(r, e.count);
      if (!state_->rows(e.count)) state_->expressions.add(r.done(e.count), {e.least, shape[axis]});
    }
}

std::optional<SizeValue> SizeArithmetic::of_variables(const Tensor& x) {
  Recorder r("size");
  const Id node = r.use(x);
  if (!is_integer(r.dtype(node)) || !r.shape(node).empty()) return {};
  state_->add_variables_of(r, node);
  const auto rows = state_->rows(node);
  return rows ? std::optional(state_->expressions.value_of(rows->front())) : std::nullopt;
}

std::optional<int64_t> SizeArithmetic::value_now(const SizeValue& value) const {
  if (!value.varies()) return value.most;
  if (jit_detail::JitTrace::active()) return {};  // differs in each call
  return state_->expressions.value_now(value.expression);
}

Tensor SizeArithmetic::tensor_of(const SizeValue& value) {
  if (!value.varies()) return Tensor(value.most);
  Recorder r("size");
  return r.done(state_->expressions.count_of(value.expression, r));
}

std::optional<std::vector<SizeValue>> SizeArithmetic::elements(const Tensor& x) {
  Recorder r("size");
  const Id node = r.use(x);
  if (is_float(r.dtype(node))) return {};
  const auto rows = state_->rows(node);
  if (!rows) return {};
  std::vector<SizeValue> values;
  for (const Id each : *rows) values.push_back(state_->expressions.value_of(each));
  return values;
}

std::optional<SizeValue> SizeArithmetic::of_axis(const Tensor& x, int64_t axis) {
  Recorder r("size");
  const Id node = r.use(x);
  const Extent e = r.extent(node, axis);
  const int64_t size = r.shape(node)[static_cast<size_t>(axis)];
  if (!e.is_counted()) return SizeValue{size, size, kNoId};
  const auto rows = state_->rows(e.count);
  if (!rows) return {};
  const SizeValue value = state_->expressions.value_of(rows->front());
  if (value.varies()) state_->expressions.note(r.done(e.count), value.expression);
  return value;
}

std::optional<Tensor> SizeArithmetic::with_size(const Tensor& x, int64_t axis,
                                                const SizeValue& size) {
  const std::optional<SizeValue> own = of_axis(x, axis);
  Recorder r("size");
  const Id node = r.use(x);
  const Extent e = r.extent(node, axis);
  if (!own || size.most != r.shape(node)[static_cast<size_t>(axis)]) return {};
  if (e.is_counted())
    return size.varies() && own->expression == size.expression ? std::optional(x) : std::nullopt;
  if (e.kind != Extent::Kind::Free) return size.varies() ? std::nullopt : std::optional(x);
  return limited(x, axis, size);  // an axis that takes the size of other operands gets its own
}

Tensor SizeArithmetic::with_equal_counts(const Tensor& x) {
  Recorder r("size");
  Id node = r.use(x);
  if (!r.session().is_counted(node)) return x;
  for (int64_t axis = 0; axis < std::ssize(r.shape(node)); ++axis) {
    const Extent e = r.extent(node, axis);
    const auto rows = e.is_counted() ? state_->rows(e.count) : std::nullopt;
    if (!rows) continue;
    const SizeValue size = state_->expressions.value_of(rows->front());
    if (!size.varies()) continue;
    state_->expressions.note(r.done(e.count), size.expression);
    const Id count = state_->expressions.count_of(size.expression, r);
    if (count != e.count) node = r.session().bound(node, axis, count, e.least);
  }
  return r.done(node);
}

bool SizeArithmetic::takes_any_size(const Tensor& x, int64_t axis) {
  Recorder r("size");
  const Id node = r.use(x);
  return r.extent(node, axis).kind == Extent::Kind::Free &&
         r.shape(node)[static_cast<size_t>(axis)] != 1;
}

Tensor SizeArithmetic::limited(const Tensor& x, int64_t axis, const SizeValue& size) {
  Recorder r("size");
  const Id node = r.use(x);
  const Id count = size.varies() ? state_->expressions.count_of(size.expression, r)
                                 : r.graph().constant(DType::I32, size.most);
  return r.done(r.session().bound(node, axis, count, size.least));
}

}  // namespace plugrad::tensor
