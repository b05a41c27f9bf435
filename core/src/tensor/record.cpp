// Brings operands of primitives to one device, dtype and shape. No other file does this.
#include "tensor/record.h"

#include <algorithm>
#include <iterator>

#include "base/binding.h"
#include "base/hash.h"
#include "base/trace/call_site.h"
#include "base/trace/trace.h"
#include "engine/recording/recorded_functions.h"
#include "engine/session_state.h"
#include "jit/trace.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "tensor/sizes/sizes.h"

namespace plugrad {

std::string to_string(const Shape& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

namespace tensor {

namespace {
thread_local std::string_view outermost_function;
}  // namespace

NamedFunction::NamedFunction(std::string_view name) : outer_(outermost_function) {
  if (outer_.empty()) outermost_function = name;
}
NamedFunction::~NamedFunction() {
  outermost_function = outer_;
}

std::string_view called(std::string_view function) {
  return outermost_function.empty() ? function : outermost_function;
}

Recorder::Recorder(std::string_view function)
    : session_(engine::Session::current()),
      lock_(session_),
      function_(function),
      first_(session_.graph().size()) {}

Recorder::~Recorder() {
  if (first_ >= session_.graph().size()) return;
  try {
    if (has_places()) session_.note_place(first_, current_place());
    if (tracing()) session_.note_operation(first_, trace::operation(function_));
  } catch (...) {  // without memory a message or a trace says less
  }
}

Id Recorder::use(const Tensor& tensor) {
  require(
      tensor.defined(),
      "[{}] a tensor is undefined; assign it a value first (a grad() has none before backward())",
      function());
  engine::TensorState& state = *tensor::state_of(tensor);
  if (jit_detail::JitTrace* trace = jit_detail::JitTrace::active()) trace->use(state);
  const uint32_t device = session_.devices()[state.node];
  if (device != 0 && device_ != 0 && device != device_ &&
      (session_.mesh(device) != nullptr || session_.mesh(device_) != nullptr))
    fail(ErrorKind::User,
         "[{}] tensors are on {} and on {}; x.shard(mesh) puts all of x on every device of a "
         "mesh, x.unshard() brings it to one device",
         function(), session_.device_name(device_), session_.device_name(device));
  if (device != 0 && device_ != 0 && device != device_)
    fail(ErrorKind::User, "[{}] tensors are on {} and on {}; move one with to(\"{}\")", function(),
         session_.device_name(device_), session_.device_name(device),
         session_.device_name(device_));
  if (device != 0) device_ = device;
  if (device == 0) note_number(state.node);
  if (hint_ == 0) hint_ = state.device;
  return state.node;
}

void Recorder::note_number(Id node) {
  if (!session_.state().devices.has_meshes()) return;
  const std::optional<uint64_t> bits = session_.constant_value(node);
  if (!bits) return;
  const uint64_t words[] = {numbers_, *bits};
  numbers_ = hash64(std::as_bytes(std::span(words)));
}

Id Recorder::detached_in_no_grad(Id node) {
  const Op op = graph()[node].op;
  const bool has_none = op == Op::Detach || op == Op::Const || !is_float(dtype(node));
  return has_none || is_grad_enabled() ? node : graph().unary(Op::Detach, node);
}

Tensor Recorder::done(Id node) {
  checked_count(function(), shape(node));
  if (session_.has_bounds()) require_decided(node);
  uint64_t number = 0;
  if (session_.mesh(session_.devices()[node]) != nullptr) {
    const sharding::Spec& spec = session_.spec(node);  // the rules apply
    auto& functions = engine::RecordedFunctions::of_this_thread();
    functions.add(function_, numbers_, dtype(node), shape(node), spec);
    number = functions.number();
  }
  node = detached_in_no_grad(node);
  session_.resume_tape(node);
  engine::StatePtr state = session_.make(node, device_ != 0 ? device_ : hint_);
  state->recorded = number;
  return tensor_of(std::move(state));
}

Tensor Recorder::view_of(const Tensor& of, Id node) {
  Tensor view = done(node);
  session_.link_view(*state_of(view), *state_of(of));
  return view;
}

Tensor own_handle(const Tensor& tensor) {
  Recorder r("tensor");
  return r.done(r.use(tensor));
}

Tensor without_writes(Tensor x) {
  state_of(x)->links.writes = detail::ViewLinks::Writes::Computed;
  return x;
}

Shape Recorder::shape(Id node) const {
  const auto sizes = session_.shape(node);
  return {sizes.begin(), sizes.end()};
}

void Recorder::match(std::vector<Id>& nodes, Takes takes) {
  match_dtypes(nodes, takes);
  match_shapes(nodes);
}

void Recorder::match_dtypes(std::vector<Id>& nodes, Takes takes) {
  DType common = dtype(nodes[0]);
  for (Id node : nodes) common = promote(common, dtype(node));
  common = strong(common);
  if (takes == Takes::Floats) common = real_dtype(common);
  if (takes == Takes::Numbers && common == DType::Bool)
    fail(ErrorKind::User, "[{}] takes numbers, not bool; cast it, or use &, | and ^", function());
  if (takes == Takes::Bits && is_float(common))
    fail(ErrorKind::User, "[{}] takes integers or bool, not {}; cast it", function(),
         name_of(common));
  common = dtype_for_literals(nodes, common);
  for (Id& node : nodes) node = take(node, common);
}

namespace {

bool is_integer_literal(const Graph& g, Id node) {
  return g[node].op == Op::Const && g[node].dtype == DType::Index;
}

}  // namespace

// Sums, products and bit operations are equal modulo 2^n for all numbers with the same low n bits.
bool Recorder::is_modular() const {
  constexpr std::string_view kModular[] = {"add", "sub", "mul", "and", "or", "xor"};
  return std::ranges::find(kModular, function_) != std::end(kModular);
}

// Operands become i64 where the common dtype does not hold a literal and all are literals, or the
// function is a comparison, which is exact.
DType Recorder::dtype_for_literals(std::span<const Id> nodes, DType common) {
  if (!is_integer(common)) return common;
  constexpr std::string_view kComparisons[] = {"eq", "ne", "lt", "gt"};
  const bool compares = std::ranges::find(kComparisons, function_) != std::end(kComparisons);
  const bool literals_alone =
      std::ranges::all_of(nodes, [&](Id id) { return is_integer_literal(graph(), id); });
  if (!(literals_alone || compares) || common == DType::U64) return common;
  for (Id node : nodes)
    if (is_integer_literal(graph(), node) && !holds(common, const_int(graph(), node)))
      return DType::I64;
  return common;
}

Id Recorder::take(Id node, DType to) {
  static constexpr const char* kNotHeld =
      "[{}] {} does not hold the number {}; cast the tensor to a wider dtype";
  const Node& n = graph()[node];
  const bool is_beyond_i64 = n.op == Op::Const && n.dtype == DType::U64 && n.arg > INT64_MAX;
  require(!is_beyond_i64 || !is_integer(to) || to == DType::U64, kNotHeld, function(), name_of(to),
          n.arg);
  if (!is_integer_literal(graph(), node) || !is_integer(to)) return cast(node, to);
  const int64_t value = const_int(graph(), node);
  const int bits = static_cast<int>(size_of(to)) * 8;
  const bool is_held = to == DType::U64 ? value >= 0 : holds(to, value);
  const bool same_bits =
      bits == 64 || (value >= -(int64_t{1} << (bits - 1)) && value < (int64_t{1} << bits));
  require(is_held || (is_modular() && same_bits), kNotHeld, function(), name_of(to), value);
  return cast(node, to);
}

// Whether all shapes but () are one.
bool Recorder::have_one_shape(std::span<const Id> nodes) {
  std::optional<ListId> common;
  for (const Id node : nodes) {
    const ListId shape = session_.shapes().id(node);
    if (graph().list(shape).empty()) continue;
    if (common.value_or(shape) != shape) return false;
    common = shape;
  }
  return true;
}

void Recorder::match_shapes(std::vector<Id>& nodes) {
  if (have_one_shape(nodes)) return;
  Shape common;
  std::vector<Shape> shapes;
  for (Id node : nodes) shapes.push_back(shape(node));
  for (const Shape& s : shapes)
    if (s.size() > common.size()) common.insert(common.begin(), s.size() - common.size(), 1);
  for (const Shape& s : shapes)
    for (size_t i = 0; i < s.size(); ++i) {
      int64_t& size = common[common.size() - s.size() + i];
      if (size == 1) size = s[i];
      if (s[i] == size || s[i] == 1) continue;
      std::string text;
      bool varies = false;
      for (Id node : nodes) {
        text += (text.empty() ? "" : " and ") + shown(node);
        varies |= session_.is_counted(node);
      }
      fail(
          ErrorKind::User,
          "[{}] shapes {} do not broadcast: sizes must be equal or 1, counted from the last axis{}",
          function(), text,
          varies ? "; a variable size (≤) equals only that of the same binding" : "");
    }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!shapes[i].empty()) nodes[i] = broadcast_to(nodes[i], common);
}

Id Recorder::cast(Id node, DType to) {
  Graph& g = graph();
  const Node& n = g[node];
  if (n.dtype == to) return node;
  if (n.op != Op::Const) return g.cast(node, to);
  const bool is_real = is_float(n.dtype) || (n.dtype == DType::U64 && is_float(to));
  return is_real ? g.constant(to, const_float(g, node)) : g.constant(to, const_int(g, node));
}

Id Recorder::reshape(Id node, const Shape& to) {
  return shape(node) == to ? node : graph().add(Op::Reshape, dtype(node), {node}, graph().list(to));
}

Id Recorder::expand(Id node, const Shape& to) {
  return shape(node) == to ? node : graph().add(Op::Expand, dtype(node), {node}, graph().list(to));
}

Id Recorder::permute(Id node, const std::vector<int64_t>& order) {
  return std::ranges::is_sorted(order)
             ? node
             : graph().add(Op::Permute, dtype(node), {node}, graph().list(order));
}

Id Recorder::broadcast_to(Id node, const Shape& to) {
  Shape from = shape(node);
  from.insert(from.begin(), to.size() - from.size(), 1);
  return expand(reshape(node, from), to);
}

int64_t checked_axis(std::string_view function, int64_t axis, int64_t rank) {
  require_index(axis >= -rank && axis < rank,
                "[{}] axis {} is out of range for {} axes: allowed are {} to {}", called(function),
                axis, rank, -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> checked_axes(std::string_view function, const Axes& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes.list()) result.push_back(checked_axis(function, axis, rank));
  if (axes.is_all())
    for (int64_t axis = 0; axis < rank; ++axis) result.push_back(axis);
  std::ranges::sort(result);
  require(std::ranges::adjacent_find(result) == result.end(), "[{}] an axis is named twice in ({})",
          called(function), fmt::join(axes.list(), ", "));
  return result;
}

void require_dtype(std::string_view name, DType dtype) {
  if (size_of(dtype) != 0) return;
  const std::string_view function = called(name);
  require(dtype != DType::Index && dtype != DType::WeakFloat,
          "[{}] {} is the dtype of numbers of the program, not of a tensor; give one such as i32, "
          "i64 or f32, or none",
          function, name_of(dtype));
  if (dtype == DType::Void) fail(ErrorKind::User, "[{}] void is no dtype of a tensor", function);
  fail(ErrorKind::User, "[{}] number {} is no dtype of a tensor", function,
       static_cast<int>(dtype));
}

DType dtype_or(std::string_view function, std::optional<DType> wanted, DType otherwise) {
  if (!wanted) return otherwise;
  require_dtype(function, *wanted);
  return *wanted;
}

DType narrow_sum_dtype(DType dtype) {
  if (dtype == DType::Bool || (is_integer(dtype) && size_of(dtype) < 4))
    return is_unsigned(dtype) && dtype != DType::Bool ? DType::U32 : DType::I32;
  return strong(dtype);
}

Tensor stored_once(const Tensor& x) {
  Recorder r("stored_once");
  const Id node = r.use(x), base = base_that_may_differ(r.graph(), node);
  if (base == kNoId) return x;
  return r.done(replace_node(r.graph(), node, base, r.graph().unary(Op::Contiguous, base)));
}

}  // namespace tensor
}  // namespace plugrad
