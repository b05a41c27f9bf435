// Tensor and the small public types: properties, host values, assignment, printing.
#include "plugrad/tensor.h"

#include <cmath>
#include <cstring>
#include <ostream>

#include "engine/report.h"
#include "engine/session_state.h"
#include "ir/round.h"
#include "plugrad/device.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/sizes/sizes.h"
#include "tensor/sizes/variable_sizes.h"
#include "tensor/write.h"

namespace plugrad {

using engine::Session;
using tensor::Recorder;

// ---- Small public types ----

Index::Index(const Tensor& rows) : kind(Kind::Tensor), tensor(std::make_shared<Tensor>(rows)) {}

const std::string& Kernel::name() const {
  return report_->name;
}
const std::string& Kernel::colored_name() const {
  return report_->colored_name;
}
const std::string& Kernel::device() const {
  return report_->device;
}
const std::string& Kernel::source() const {
  return report_->source;
}
const std::string& Kernel::ast() const {
  return report_->ast;
}
const std::string& Kernel::optimisations() const {
  return report_->optimisations;
}
std::span<const KernelRange> Kernel::ranges() const {
  return report_->ranges;
}
int64_t Kernel::flops() const {
  return report_->flops;
}
int64_t Kernel::bytes() const {
  return report_->bytes;
}
int64_t Kernel::work() const {
  return report_->work;
}

std::string explain() {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  return session.state().plan_misses.text();
}

std::ostream& operator<<(std::ostream& out, const Kernel& kernel) {
  out << kernel.name() << " on " << kernel.device();
  if (!kernel.optimisations().empty()) out << ": " << kernel.optimisations();
  out << "\n" << kernel.ast();
  return kernel.source().empty() ? out : out << kernel.source();
}

std::string Device::default_device() {
  Session& session = Session::current();
  return session.device_name(session.default_device());
}

void Device::set_default_device(std::string_view name) {
  Session::current().set_default_device(name);
}

DeviceScope::DeviceScope(std::string_view name)
    : outer_(Session::set_default_of_thread(Session::current().device_number(name))) {}
DeviceScope::~DeviceScope() {
  Session::set_default_of_thread(outer_);
}

std::string add_plugin(const std::string& path) {
  return Session::current().add_plugin(path);
}

// ---- Properties ----

Tensor::Tensor(Literal, detail::LiteralNumber value) {
  Recorder r("Tensor");
  Graph& g = r.graph();
  const bool real = value.dtype == DType::WeakFloat;
  *this =
      r.done(real ? g.constant(value.dtype, value.real) : g.constant(value.dtype, value.integer));
}

Shape Tensor::shape() const {
  Recorder r("Tensor");
  return r.shape(r.use(*this));
}

int64_t Tensor::ndim() const {
  Recorder r("Tensor");
  return static_cast<int64_t>(r.session().shape(r.use(*this)).size());
}

int64_t Tensor::size(int64_t axis) const {
  const Shape s = shape();
  return s[static_cast<size_t>(tensor::checked_axis("size", axis, static_cast<int64_t>(s.size())))];
}

Shape Tensor::bound_shape() const {
  require(defined(), "[bound_shape] the tensor is undefined; assign it a value first");
  return Session::current().counted_shape(*state_);
}

int64_t Tensor::numel() const {
  Recorder r("Tensor");
  return element_count(r.session().shape(r.use(*this)));
}

DType Tensor::dtype() const {
  Recorder r("Tensor");
  return strong_dtype(r.graph(), r.use(*this));
}

std::string Tensor::device() const {
  Recorder r("Tensor");
  const uint32_t device = r.session().devices()[r.use(*this)];
  return r.session().device_name(device != 0 ? device : state_->device);
}

bool Tensor::is_realized() const {
  Recorder r("is_realized");
  r.use(*this);
  return r.session().is_realized(*state_);
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t.defined()) return out << "Tensor(undefined)";
  const std::string shape = tensor::shown_shape(t);
  out << "Tensor" << (t.ndim() == 1 ? shape.substr(0, shape.size() - 2) + ")" : shape) << ' '
      << name_of(t.dtype());
  return out << " on " << t.device() << ", " << (t.is_realized() ? "realized" : "lazy");
}

// ---- Values ----

Tensor Tensor::realize() const {
  realize(std::span(this, 1));
  return *this;
}

void Tensor::realize(std::span<const Tensor> tensors) {
  std::vector<engine::TensorState*> states;
  for (const Tensor& t : tensors) {
    require(t.defined(), "[realize] a tensor is undefined; assign it a value first");
    states.push_back(tensor::state_of(t).get());
  }
  Session::current().realize(
      states);  // not under a Lock: out of memory, the session may drop dead values
}

void Tensor::require_row_length(int64_t length, int64_t first) {
  require(length == first, "[from] a row of {} values after one of {}; rows have one length",
          length, first);
}

namespace {

/// Compacts row-major elements of shape `all` to those in the leading box of shape `part`.
std::vector<std::byte> first_places(std::vector<std::byte> bytes, const Shape& all,
                                    const Shape& part, size_t element_bytes) {
  if (part == all) return bytes;
  // bytes of the inner axes that are not cut; they move as one block
  size_t row = element_bytes, to = 0;
  size_t outer = all.size();
  while (outer > 0 && part[outer - 1] == all[outer - 1]) row *= static_cast<size_t>(all[--outer]);
  // Each row of the innermost cut axis keeps one contiguous run.
  const auto cut = static_cast<size_t>(part[outer - 1]),
             stride = static_cast<size_t>(all[outer - 1]);
  const int64_t runs = element_count(std::span(part).first(outer - 1));
  for (int64_t run = 0; run < runs; ++run) {
    int64_t left = run, from = 0, step = 1;
    for (size_t axis = outer - 1; axis-- > 0; step *= all[axis], left /= part[axis])
      from += left % part[axis] * step;
    std::memmove(bytes.data() + to, bytes.data() + static_cast<size_t>(from) * stride * row,
                 cut * row);
    to += cut * row;
  }
  bytes.resize(to);
  return bytes;
}

}  // namespace

std::vector<std::byte> Tensor::to_bytes() const {
  tensor::require_host_memory("to_bytes", bound_shape(), size_of(dtype()));
  std::vector<std::byte> bytes(static_cast<size_t>(numel()) * size_of(dtype()));
  Session::current().read(*state_, bytes);
  return first_places(std::move(bytes), shape(), bound_shape(), size_of(dtype()));
}

int64_t Tensor::read_count() const {
  tensor::require_host_memory("to_vector", bound_shape(), size_of(dtype()));
  return element_count(bound_shape());
}

namespace {

std::vector<Kernel> as_kernels(std::vector<engine::KernelReport> reports) {
  std::vector<Kernel> kernels;
  for (engine::KernelReport& report : reports)
    kernels.push_back(
        tensor::kernel_of(std::make_shared<const engine::KernelReport>(std::move(report))));
  return kernels;
}

}  // namespace

std::vector<Kernel> Tensor::schedule() const {
  require(defined(), "[schedule] the tensor is undefined; assign it a value first");
  engine::TensorState* const state = state_.get();
  return as_kernels(Session::current().kernels_of(std::span(&state, 1)));
}

std::vector<Kernel> Tensor::kernelize() const {
  require(defined(), "[kernelize] the tensor is undefined; assign it a value first");
  engine::TensorState* const state = state_.get();
  return as_kernels(Session::current().planned_kernels_of(std::span(&state, 1)));
}

namespace {

/// One stored element as the bits of a graph constant (an int64_t or a double).
uint64_t load_element(const std::byte* at, DType dtype) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(dtype));
  if (dtype == DType::F64) return bits;
  if (dtype == DType::F32)
    return bits_of(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))),
                   DType::F64);
  if (is_float(dtype))
    return bits_of(decode_small_float(static_cast<uint16_t>(bits), dtype), DType::F64);
  return static_cast<uint64_t>(round_int(static_cast<int64_t>(bits), dtype));
}

std::string shown(uint64_t bits, DType from) {
  if (is_float(from)) return fmt::format("{}", std::bit_cast<double>(bits));
  return from == DType::U64 ? fmt::format("{}", bits)
                            : fmt::format("{}", static_cast<int64_t>(bits));
}

/// Whether a C++ value of dtype `to` can represent the number after C++ conversion.
bool has_value(uint64_t bits, DType from, DType to) {
  if (to == DType::Bool || to == DType::F64) return true;
  if (is_float(to))  // f32: infinities convert; a finite number must stay finite
    return !is_float(from) || !std::isfinite(std::bit_cast<double>(bits)) ||
           std::isfinite(static_cast<float>(std::bit_cast<double>(bits)));
  const int width = static_cast<int>(size_of(to)) * 8;
  if (is_float(from)) {
    const double whole = std::trunc(std::bit_cast<double>(bits));
    return is_unsigned(to)
               ? whole >= 0.0 && whole < std::ldexp(1.0, width)
               : whole >= -std::ldexp(1.0, width - 1) && whole < std::ldexp(1.0, width - 1);
  }
  if (from == DType::U64 && static_cast<int64_t>(bits) < 0) return to == DType::U64;
  const auto value = static_cast<int64_t>(bits);
  return round_int(value, to) == value && (value >= 0 || !is_unsigned(to));
}

/// Inverse of load_element; `to` is the dtype of a C++ type.
void store_element(uint64_t bits, DType from, DType to, std::byte* at) {
  if (is_float(from))
    bits = bits_of(std::bit_cast<double>(bits), to);
  else if (from == DType::U64 && is_float(to))
    bits = bits_of(static_cast<double>(bits), to);
  else
    bits = bits_of(static_cast<int64_t>(bits), to);
  if (to == DType::F32)
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  std::memcpy(at, &bits, size_of(to));
}

}  // namespace

void Tensor::read_as(void* out, size_t count, DType wanted) const {
  read_converted("copy_to", out, count, wanted);
}

void Tensor::read_converted(std::string_view function, void* out, size_t count,
                            DType wanted) const {
  const Shape sizes = bound_shape();
  const int64_t expected = element_count(sizes);
  require(static_cast<int64_t>(count) == expected,
          "[copy_to] {} elements of space for the {} of {}", count, expected,
          tensor::lazy_text(sizes));
  auto* to = static_cast<std::byte*>(out);
  const DType own = dtype();
  if (own == wanted && sizes == shape())
    return Session::current().read(*state_, std::span(to, count * size_of(own)));
  const std::vector<std::byte> bytes = to_bytes();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t element = load_element(bytes.data() + i * size_of(own), own);
    if (!has_value(element, own, wanted))
      fail(ErrorKind::User,
           "[{}] element {} is {}, which {} does not hold; read it as another type", function, i,
           shown(element, own), name_of(wanted));
    store_element(element, own, wanted, to + i * size_of(wanted));
  }
}

void Tensor::read_item(void* out, DType wanted) const {
  require(numel() == 1,
          "[item] a tensor of shape {} has {}{} elements; only one element is an item",
          tensor::shown_shape(*this), tensor::has_variable_size(*this) ? "up to " : "", numel());
  read_converted("item", out, 1, wanted);
}

// ---- Assignment ----

Tensor& Tensor::assign(const Tensor& value) {
  Recorder r("assign");
  const Id old = r.use(*this);
  Id node = r.use(value);
  const Shape shape = r.shape(old), given = r.shape(node);
  const DType own = strong(r.dtype(old));
  bool fits = given.size() <= shape.size();
  for (size_t i = 0; fits && i < given.size(); ++i) {
    const int64_t size = given[given.size() - 1 - i];
    fits = size == 1 || size == shape[shape.size() - 1 - i];
  }
  if (!fits)
    fail(ErrorKind::User, "[assign] {} does not broadcast to {}", r.shown(node), r.shown(old));
  require_type(is_float(own) || !is_float(r.dtype(node)),
               "[assign] a {} value into a {} tensor; cast it first", name_of(value.dtype()),
               name_of(own));
  tensor::require_writable(r.function(), *state_, false);
  node = r.assigned(old, r.detached_in_no_grad(r.broadcast_to(r.take(node, own), shape)));
  tensor::write(r, *state_, node);
  state_->recorded = value.state_->recorded;
  return *this;
}

Tensor& Tensor::operator+=(const Tensor& other) & {
  return assign(*this + other);
}
Tensor& Tensor::operator-=(const Tensor& other) & {
  return assign(*this - other);
}
Tensor& Tensor::operator*=(const Tensor& other) & {
  return assign(*this * other);
}
Tensor& Tensor::operator/=(const Tensor& other) & {
  return assign(*this / other);
}
Tensor& Tensor::operator%=(const Tensor& other) & {
  return assign(*this % other);
}
Tensor& Tensor::operator&=(const Tensor& other) & {
  return assign(*this & other);
}
Tensor& Tensor::operator|=(const Tensor& other) & {
  return assign(*this | other);
}
Tensor& Tensor::operator^=(const Tensor& other) & {
  return assign(*this ^ other);
}
Tensor& Tensor::operator<<=(const Tensor& other) & {
  return assign(*this << other);
}
Tensor& Tensor::operator>>=(const Tensor& other) & {
  return assign(*this >> other);
}

// ---- Representation ----

Tensor Tensor::clone() const {
  return tensor::own_handle(*this);
}

Tensor Tensor::contiguous() const {
  Recorder r("contiguous");
  const Id node = r.use(*this);
  const Op op = r.graph()[node].op;
  return r.done(op == Op::Buffer || op == Op::Contiguous ? node
                                                         : r.graph().unary(Op::Contiguous, node));
}

Tensor Tensor::detach() const {
  Recorder r("detach");
  return r.view_of(*this, r.graph().unary(Op::Detach, r.use(*this)));
}

Tensor Tensor::to(std::string_view name) const {
  Recorder r("to");
  const Id node = r.use(*this);
  const uint32_t device = r.session().device_number(name), from = r.session().devices()[node];
  const uint32_t would_be = state_->device != 0 ? state_->device : r.session().default_device();
  if ((from != 0 ? from : would_be) == device) {
    if (from == 0) state_->device = device;  // also where the default changes before it is stored
    return *this;
  }
  if (from == 0) return Tensor(r.session().make(node, device));  // constants have no device
  return Tensor(r.session().make(r.graph().add(Op::Copy, r.dtype(node), {node}, device), device));
}

}  // namespace plugrad
