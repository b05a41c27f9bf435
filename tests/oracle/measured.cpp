#include "oracle/measured.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "engine/session.h"
#include "ir/facts.h"
#include "ir/user.h"
#include "oracle/alu.h"
#include "oracle/movement.h"
#include "oracle/rounding.h"

namespace plugrad::oracle {
namespace {

// Evaluates node by node, each with the plain evaluator's arithmetic; only errors are new here.
class MeasuredEvaluator {
 public:
  MeasuredEvaluator(const Graph& graph, const Leaves& leaves, const Stored& stored)
      : graph_(graph), leaves_(leaves), stored_(stored) {}

  std::vector<Measured> run(std::span<const Id> roots) {
    Reachable reachable;
    for (Id id : reachable.from(graph_, roots)) found_.emplace(id, compute(id));
    std::vector<Measured> results;
    for (Id root : roots) results.push_back(found_.at(root));
    return results;
  }

 private:
  const Measured& source(const Node& node, size_t i) const {
    return found_.at(graph_.sources(node)[i]);
  }
  Measured compute(Id id) const;
  Measured elementwise(const Node& node) const;
  Measured reduce(Id id, const Node& node) const;
  Measured move(const Node& node) const;

  const Graph& graph_;
  const Leaves& leaves_;
  const Stored& stored_;
  std::unordered_map<Id, Measured> found_;
};

Array move_one(const Node& node, std::span<const int64_t> list, const Array& x) {
  switch (node.op) {
    case Op::Reshape: {
      Array result = x;
      result.shape.assign(list.begin(), list.end());
      ensure(element_count(list) == static_cast<int64_t>(x.size()), "a reshape changes the size");
      return result;
    }
    case Op::Permute:
      return permute(x, list);
    case Op::Expand:
      return expand(x, list);
    case Op::Pad:
      return pad(x, list);
    case Op::Shrink:
      return shrink(x, list);
    default:
      return flip(x, list);
  }
}

// Errors move as an array of doubles does.
Measured MeasuredEvaluator::move(const Node& node) const {
  const auto list = graph_.list(static_cast<ListId>(node.arg));
  const Measured& x = source(node, 0);
  Measured result{move_one(node, list, x.value), {}};
  if (x.error.empty()) return result;
  Array errors{DType::F64, x.value.shape, {}};
  for (double error : x.error) errors.bits.push_back(std::bit_cast<uint64_t>(error));
  for (uint64_t bits : move_one(node, list, errors).bits)
    result.error.push_back(std::bit_cast<double>(bits));
  return result;
}

// A choice is between two values; where the condition is uncertain, it may be either.
double choice_error(double result, const Term& condition, const Term& yes, const Term& no) {
  if (condition.error == 0) return condition.value != 0 ? yes.error : no.error;
  const double error =
      std::max(std::fabs(result - yes.value) + yes.error, std::fabs(result - no.value) + no.error);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

Measured MeasuredEvaluator::elementwise(const Node& node) const {
  const size_t count = node.src_count;
  const Measured* sources[4];
  Measured result{{node.dtype, {}, {}}, {}};
  bool exact = !is_transcendental(node.op) && node.op != Op::Recip && node.op != Op::FDiv &&
               node.op != Op::Bitcast;
  for (size_t s = 0; s < count; ++s) {
    sources[s] = &source(node, s);
    if (result.value.shape.empty()) result.value.shape = sources[s]->value.shape;
    exact = exact && sources[s]->error.empty();
  }
  const auto size = static_cast<size_t>(element_count(result.value.shape));
  result.value.bits.resize(size);
  if (!exact) result.error.resize(size);
  const DType operand = sources[node.op == Op::Where ? 1 : 0]->value.dtype;
  uint64_t args[4];
  Term terms[4];
  for (size_t i = 0; i < size; ++i) {
    for (size_t s = 0; s < count; ++s) {
      const size_t at = sources[s]->value.shape.empty() ? 0 : i;
      args[s] = sources[s]->value.bits[at];
      if (!exact) terms[s] = {sources[s]->value.real(at), sources[s]->error_of(at)};
    }
    result.value.bits[i] = apply(node.op, node.dtype, operand, std::span(args, count));
    if (exact) continue;
    const std::span<const Term> x(terms, count);
    result.error[i] = node.op == Op::Where ? choice_error(result.value.real(i), x[0], x[1], x[2])
                      : is_float(node.dtype)
                          ? float_error(node.op, node.dtype, result.value.real(i), x)
                          : whole_error(node.op, node.dtype, operand, x);
  }
  return result;
}

double reduced_error(Op op, DType dtype, std::span<const Term> terms) {
  double most = 0;
  for (const Term& term : terms) most = std::max(most, term.error);
  if (op == Op::Max) return maximum_error(terms);
  if (most == std::numeric_limits<double>::infinity()) return most;
  if (!is_float(dtype)) return most == 0 ? 0 : std::numeric_limits<double>::infinity();
  return op == Op::Add ? sum_error(dtype, terms) : product_error(dtype, terms);
}

Measured MeasuredEvaluator::reduce(Id id, const Node& node) const {
  const Measured& x = source(node, 0);
  const auto list = graph_.arg_list(id);
  const Op op = static_cast<Op>(list[0]);
  Measured result{{node.dtype, x.value.shape, {}}, {}};
  for (int64_t axis : list.subspan(1)) result.value.shape[static_cast<size_t>(axis)] = 1;
  const bool real = is_float(node.dtype);
  const DType wide = real ? DType::F64 : node.dtype;
  result.value.bits.assign(static_cast<size_t>(element_count(result.value.shape)),
                           identity_of(op, node.dtype, x.value.size() == 0));
  std::vector<std::vector<Term>> terms(result.value.bits.size());
  const auto places = places_when_reduced(x.value.shape, result.value.shape);
  for (size_t i = 0; i < x.value.size(); ++i) {
    uint64_t& total = result.value.bits[places[i]];
    const uint64_t args[] = {total, x.value.bits[i]};
    total = apply(op, wide, wide, args);
    terms[places[i]].push_back({x.value.real(i), x.error_of(i)});
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    if (real)
      result.value.bits[i] = bits_of(std::bit_cast<double>(result.value.bits[i]), node.dtype);
    result.error.push_back(reduced_error(op, node.dtype, terms[i]));
  }
  return result;
}

Measured MeasuredEvaluator::compute(Id id) const {
  const Node& node = graph_[id];
  if (stored_)
    if (std::optional<Array> given = stored_(id)) return {std::move(*given), {}};
  switch (node.op) {
    case Op::Reduce:
      return reduce(id, node);
    case Op::Contiguous:
    case Op::Shard:
    case Op::Detach:
    case Op::Bounded:
    case Op::Function:
    case Op::Copy:
      return source(node, 0);
    case Op::Reshape:
    case Op::Permute:
    case Op::Expand:
    case Op::Pad:
    case Op::Shrink:
    case Op::Flip:
      return move(node);
    case Op::UserKernel:
      fail(ErrorKind::Unsupported, "[evaluate] a user's kernel is not evaluated");
    default:
      break;
  }
  if (node.src_count == 0) return {evaluate(graph_, std::span(&id, 1), leaves_)[0], {}};
  return elementwise(node);
}

}  // namespace

std::vector<Measured> evaluate_measured(const Graph& graph, std::span<const Id> roots,
                                        const Leaves& leaves, const Stored& stored) {
  return MeasuredEvaluator(graph, leaves, stored).run(roots);
}

namespace {

// Movement of a stored value is exact in the evaluator and on the device.
bool computes(const Node& node) {
  const bool moves = node.op == Op::Reshape || node.op == Op::Permute || node.op == Op::Expand ||
                     node.op == Op::Pad || node.op == Op::Shrink || node.op == Op::Flip;
  return node.src_count > 0 && !moves;
}

Stored stored_of(engine::Session& session, std::span<const Id> roots) {
  return [&session, roots](Id node) -> std::optional<Array> {
    if (!computes(session.graph()[node]) || std::ranges::find(roots, node) != roots.end())
      return {};
    const engine::StatePtr state = session.make(node);
    if (!session.is_realized(*state)) return {};
    const auto shape = session.shape(node);
    const DType dtype = strong(session.graph()[node].dtype);
    std::vector<std::byte> bytes(static_cast<size_t>(element_count(shape)) * size_of(dtype));
    session.read(*state, bytes);
    return from_bytes(dtype, {shape.begin(), shape.end()}, bytes);
  };
}

}  // namespace

std::vector<Measured> evaluate_measured(std::span<engine::TensorState* const> states, Leaf leaf) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  std::vector<Id> roots;
  for (const engine::TensorState* state : states) roots.push_back(state->node);
  const Stored stored = leaf == Leaf::Kept ? stored_of(session, roots) : Stored();
  auto results = evaluate_measured(session.graph(), roots, leaves_of(session), stored);
  for (Measured& result : results) result.value.dtype = strong(result.value.dtype);
  return results;
}

}  // namespace plugrad::oracle
