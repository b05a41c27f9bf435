// Builds nodes of the session's graph for UOp handles, and checks them first.
#include "plugrad/uop.h"

#include <algorithm>

#include "codegen/kernel.h"
#include "ir/facts.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "symbolic/symbolic.h"
#include "tensor/handles.h"
#include "tensor/record.h"
#include "tensor/sizes/sizes.h"
#include "tensor/uop/session_nodes.h"

namespace plugrad::ir {
namespace {

std::vector<Id> nodes_of(const std::vector<UOp>& nodes, const char* function) {
  std::vector<Id> ids;
  for (const UOp& node : nodes) ids.push_back(node_of(node, function));
  return ids;
}
UOp handle(Id id) {
  return tensor::uop_of(session().make(id));
}

Op op_named(std::string_view name) {
  const auto op = op_from_name(name);
  require(op.has_value(), "[UOp] there is no op \"{}\"; names are those that a UOp prints", name);
  return *op;
}

std::string described(Op op, DType dtype, std::span<const Id> sources) {
  std::string text = fmt::format("{} {} of", printed_name(op), name_of(dtype));
  for (Id s : sources)
    text += fmt::format(" {} {}{},", printed_name(graph()[s].op), name_of(graph()[s].dtype),
                        to_string(Shape(session().shape(s).begin(), session().shape(s).end())));
  if (sources.empty()) text += " nothing,";
  text.pop_back();
  return text;
}

const char* sizes_problem(std::span<const int64_t> sizes) {
  if (sizes.size() > tensor::kMostAxes) return "it has more than 64 axes";
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 0) return "a size is negative";
    if (size != 0 && count > kMostElements / size) return "it has more than 2^60 elements";
    count *= std::max<int64_t>(size, 1);
  }
  return nullptr;
}

const char* padded_problem(std::span<const int64_t> shape, std::span<const int64_t> pads) {
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  for (size_t i = 0; i < pads.size(); ++i)
    if (pads[i] > kMostElements)
      return "it has more than 2^60 elements";
    else if (i / 2 < sizes.size() && sizes[i / 2] <= kMostElements)
      sizes[i / 2] += std::max<int64_t>(pads[i], 0);
  return sizes_problem(sizes);
}

// Checks that the verifier omits, because internal code that adds nodes guarantees them.
const char* form_problem(Op op, uint64_t arg) {
  const auto list = [&] { return graph().list(static_cast<ListId>(arg)); };
  switch (op) {
    case Op::Buffer:
    case Op::Copy:
    case Op::Function:
    case Op::UserKernel:
      return "tensors make this op: take Tensor::uop()";
    case Op::Reshape:
    case Op::Expand:
      return sizes_problem(list());
    case Op::Iota:
      return arg >> 40 == 0 ? nullptr : "the count is negative or above 2^40";
    case Op::Param:
      return list().size() == 4 && list()[0] >= 0 && list()[2] >= 0
                 ? nullptr
                 : "the list needs slot, kind, count and flags";
    default:
      return nullptr;
  }
}

/// Errors: User for a node that no form of the IR allows.
Id checked_add(Op op, DType dtype, std::span<const Id> sources, uint64_t arg) {
  const bool closes_ranges = op == Op::Reduce && sources.size() > 1;
  const Spec spec = belongs(op, Spec::Tensor) && !closes_ranges ? Spec::Tensor : Spec::Kernel;
  const char* problem = form_problem(op, arg);
  if (op == Op::Pad && sources.size() == 1)
    problem = padded_problem(session().shape(sources[0]), graph().list(static_cast<ListId>(arg)));
  if (problem == nullptr)
    problem = node_problem(graph(), session().shapes(), spec, op, dtype, sources, arg);
  if (problem != nullptr)
    fail(ErrorKind::User, "[UOp] {}: {}", described(op, dtype, sources), problem);
  return graph().add(op, dtype, sources, arg);
}

DType dtype_that_follows(Op op, std::span<const Id> sources) {
  if (is_compare(op)) return DType::Bool;
  if (op == Op::Store || op == Op::Sink || sources.empty()) return DType::Void;
  const size_t from = op == Op::Where && sources.size() > 1 ? 1 : 0;
  return graph()[sources[from]].dtype;
}

DType constant_dtype(std::optional<DType> wanted, DType otherwise) {
  if (wanted) tensor::require_dtype("UOp", strong(*wanted));
  return wanted.value_or(otherwise);
}

bool is_weak(Id id) {
  return is_const(graph(), id) &&
         (graph()[id].dtype == DType::Index || graph()[id].dtype == DType::WeakFloat);
}

/// Weak constants take the dtype of the first other source; a float constant never becomes an
/// integer.
void match_literals(std::span<Id> sources) {
  const auto strong = std::ranges::find_if_not(sources, is_weak);
  if (strong == sources.end()) return;
  const DType dtype = graph()[*strong].dtype;
  for (Id& s : sources) {
    if (!is_weak(s) || (is_float(graph()[s].dtype) && !is_float(dtype))) continue;
    s = is_float(graph()[s].dtype) ? graph().constant(dtype, const_float(graph(), s))
                                   : graph().constant(dtype, const_int(graph(), s));
  }
}

UOp binary(Op op, const UOp& a, const UOp& b) {
  const Lock lock;
  Id sources[] = {node_of(a, "UOp"), node_of(b, "UOp")};
  match_literals(sources);
  return handle(checked_add(op, dtype_that_follows(op, sources), sources, 0));
}

}  // namespace

UOp UOp::make_constant(int64_t value, std::optional<DType> dtype) {
  const Lock lock;
  return handle(graph().constant(constant_dtype(dtype, DType::Index), value));
}
UOp UOp::make_constant(double value, std::optional<DType> dtype) {
  const Lock lock;
  return handle(graph().constant(constant_dtype(dtype, DType::WeakFloat), value));
}

UOp UOp::make(std::string_view name, const std::vector<UOp>& sources, std::optional<DType> wanted,
              const std::vector<int64_t>& arg) {
  const Lock lock;
  const Op op = op_named(name);
  require(op != Op::Const && op != Op::Range,
          "[UOp] make() makes no {}; use UOp::constant() or UOp::range()", name);
  std::vector<Id> ids = nodes_of(sources, "UOp");
  if (is_alu(op)) match_literals(std::span(ids).subspan(op == Op::Where ? 1 : 0));
  const DType follows = dtype_that_follows(op, ids), dtype = wanted.value_or(follows);
  if (dtype == DType::Void && follows != DType::Void) tensor::require_dtype("UOp", dtype);
  const bool has_list = op_info(op).arg == ArgKind::List;
  require(has_list || arg.size() <= 1, "[UOp] {} takes one number as its argument, not {}", name,
          arg.size());
  const uint64_t bits = has_list      ? graph().list(arg)
                        : arg.empty() ? 0
                                      : static_cast<uint64_t>(arg[0]);
  return handle(checked_add(op, dtype, ids, bits));
}

UOp UOp::cast(DType to) const {
  const Lock lock;
  const Id id = node_of(*this, "cast");
  return handle(graph()[id].dtype == to ? id : checked_add(Op::Cast, to, std::span(&id, 1), 0));
}

UOp UOp::where(const UOp& yes, const UOp& no) const {
  return make("where", {*this, yes, no});
}

std::vector<UOp> UOp::parse(std::string_view text) {
  Graph scratch;
  const std::vector<Id> roots = plugrad::parse(scratch, text);
  const Lock lock;
  std::vector<Id> new_id(scratch.size(), kNoId);
  Reachable reachable;
  for (Id id : reachable.from(scratch, roots)) {
    const Node& n = scratch[id];
    std::vector<Id> sources;
    for (Id s : scratch.sources(n)) sources.push_back(new_id[s]);
    const bool has_list = op_info(n.op).arg == ArgKind::List;
    new_id[id] =
        checked_add(n.op, n.dtype, sources, has_list ? graph().list(scratch.arg_list(id)) : n.arg);
  }
  std::vector<UOp> result;
  for (Id root : roots) result.push_back(handle(new_id[root]));
  return result;
}

// ---- Kernels ----

UOp UOp::range(int64_t size, uint32_t axis, bool reduces) {
  require(size >= 0, "[range] a loop of {} iterations", size);
  const Lock lock;
  return handle(make_range(graph(), size, axis, reduces ? AxisKind::Reduce : AxisKind::Loop));
}

UOp UOp::param(uint32_t slot, DType dtype, int64_t elem_count, bool written) {
  require(size_of(dtype) != 0 && elem_count >= 0, "[param] a buffer of {} {}", elem_count,
          name_of(dtype));
  const Lock lock;
  const uint32_t access = written ? PGR_PARAM_WRITE : PGR_PARAM_READ;
  return handle(make_param(graph(), dtype, {slot, elem_count, access | PGR_PARAM_NO_ALIAS}));
}

UOp UOp::load(const UOp& index) const {
  return make("load", {*this, index});
}

UOp UOp::store(const UOp& index, const UOp& value) const {
  const Lock lock;
  Id pair[] = {node_of(*this, "store"), node_of(value, "store")};
  match_literals(pair);
  return make("store", {*this, index, handle(pair[1])});
}

UOp UOp::sink(const std::vector<UOp>& stores) {
  return make("sink", stores);
}

UOp UOp::reduce(std::string_view op, const std::vector<UOp>& ranges) const {
  std::vector<UOp> sources = {*this};
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  return make("reduce", sources, {}, {static_cast<int64_t>(op_named(op))});
}

// ---- Rewriting ----

// Uses a scratch graph, because the simplifier caches facts about all nodes of a graph.
UOp UOp::simplify(bool fast) const {
  tensor::Recorder r("simplify");
  const Id id = node_of(*this, "simplify");
  Reachable reachable;
  for (Id below : reachable.from(graph(), std::span(&id, 1))) {
    const Node& n = graph()[below];
    require(!is_movement(n.op) && (n.op != Op::Reduce || n.src_count > 1),
            "[simplify] {} changes a shape: that is simplified when a tensor is scheduled",
            print_node(graph(), below));
  }
  Graph scratch;
  const Id copy = codegen::copy_into(scratch, graph(), id);
  const Id result = Simplifier(scratch, fast ? RuleSet::Fast : RuleSet::Strict)(copy);
  return handle(r.broadcast_to(codegen::copy_into(graph(), scratch, result), r.shape(id)));
}

Tensor UOp::tensor() const {
  const Lock lock;
  const Id id = node_of(*this, "tensor");
  as_user_error([&] { verify(graph(), id, Spec::Tensor, "tensor()"); });
  require(graph()[id].op != Op::Sink, "[tensor] a sink has no value; take its sources");
  return tensor::tensor_of(session().make(id));
}

// clang-format off
UOp operator+(const UOp& a, const UOp& b) { return binary(Op::Add, a, b); }
UOp operator-(const UOp& a, const UOp& b) { return binary(Op::Sub, a, b); }
UOp operator*(const UOp& a, const UOp& b) { return binary(Op::Mul, a, b); }
UOp operator%(const UOp& a, const UOp& b) { return binary(Op::FloorMod, a, b); }
UOp operator&(const UOp& a, const UOp& b) { return binary(Op::And, a, b); }
UOp operator|(const UOp& a, const UOp& b) { return binary(Op::Or, a, b); }
UOp operator^(const UOp& a, const UOp& b) { return binary(Op::Xor, a, b); }
UOp operator<(const UOp& a, const UOp& b) { return binary(Op::CmpLt, a, b); }
UOp operator-(const UOp& a) { return UOp::make("neg", {a}); }
UOp operator/(const UOp& a, const UOp& b) {
  return binary(is_float(a.dtype()) || is_float(b.dtype()) ? Op::FDiv : Op::FloorDiv, a, b);
}
// clang-format on

}  // namespace plugrad::ir

namespace plugrad {

ir::UOp Tensor::uop() const {
  tensor::Recorder r("uop");
  return tensor::uop_of(r.session().make(r.use(*this), state_->device));
}

}  // namespace plugrad
