#include "onnx/import/call.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "tensor/sizes/sizes.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {

Tensor on_host(const Tensor& x) {
  auto values = tensor::host_values(x);
  if (!values) return x;
  values->dtype = strong(values->dtype);
  return Value::known(std::move(*values)).tensor();
}

void require_host_elements(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 26;  // 512 MB of f64
  const int64_t count = tensor::checked_count("onnx", shape);
  if (count > kMost)
    fail(ErrorKind::User, "the host would compute {} elements of shape {} for it, more than {}",
         count, to_string(shape), kMost);
}

Call::Call(const NodeMessage& node, std::int64_t opset, std::vector<Value> inputs, bool folds,
           Recording& recording)
    : node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      folds_(folds),
      recording_(recording) {}

tensor::HostValues host_values_of(const Value& tensor, bool is_jitted) {
  if (tensor.known()) return *tensor.known();
  if (is_jitted) throw NeedsHostValues();
  const Tensor& x = tensor.tensor();
  return values_in_memory(x.to_bytes(), x.shape(), x.dtype());
}

std::string Call::name() const {
  return label_of(node_);
}

void Call::wrong(std::string_view what) const {
  fail(ErrorKind::User, "[onnx] {}: {}", name(), what);
}
void Call::unsupported(std::string_view what) const {
  fail(ErrorKind::Unsupported, "[onnx] {}: {}", name(), what);
}

const Value& Call::value(size_t input) const {
  if (!has(input)) wrong(fmt::format("input {} is missing", input));
  return inputs_[input];
}

Tensor Call::parameter(size_t input) const {
  const Value& given = value(input);
  return given.known() ? given.host_tensor() : (*this)[input];
}

Tensor Call::operator[](size_t input) const {
  const Value& given = value(input);
  if (!given.is_tensor()) wrong(fmt::format("input {} is no tensor of numbers", input));
  const bool may_be_sizes =  // whose elements stay on the host, for SizeArithmetic
      recording_.sizes && given.known() && !is_float(given.known()->dtype) &&
      std::ssize(given.known()->bits) <= kMostSizes;
  return folds_ || may_be_sizes ? given.host_tensor() : given.tensor();
}

const Strings& Call::strings(size_t input) const {
  const Strings* const given = value(input).strings();
  if (!given) wrong(fmt::format("input {} is no tensor of strings", input));
  return *given;
}

const std::vector<Value>& Call::sequence(size_t input) const {
  const auto* const given = value(input).elements();
  if (!given) wrong(fmt::format("input {} is no sequence", input));
  return *given;
}

tensor::HostValues Call::read(size_t input, bool is_data) const {
  const Value& given = value(input);
  if (!given.is_tensor()) wrong(fmt::format("input {} is no tensor of numbers", input));
  try {
    return host_values_of(given, recording_.is_jitted);
  } catch (const NeedsHostValues&) {
    throw NeedsHostValues{.input = input, .is_data = is_data};
  }
}

void Call::require_shape(size_t input, std::string_view role, const Shape& wanted) const {
  const Shape shape = (*this)[input].shape();
  if (shape != wanted)
    wrong(fmt::format("{} has the shape {}, not {}", role, to_string(shape), to_string(wanted)));
}

std::int64_t Call::axis(std::int64_t axis, std::int64_t rank) const {
  if (axis < -rank || axis >= rank)
    wrong(fmt::format("axis {} is out of range for {} axes", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

std::vector<std::int64_t> Call::axes(std::vector<std::int64_t> axes, std::int64_t rank) const {
  for (std::int64_t& each : axes) each = axis(each, rank);
  std::vector<std::int64_t> sorted = axes;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    wrong(fmt::format("an axis is named twice in {}", to_string(axes)));
  return axes;
}

void Call::require_within(size_t input, std::string_view role, std::int64_t least,
                          std::int64_t most) const {
  if (const tensor::HostValues* const known = value(input).known())
    for (const std::int64_t each : integers_of(*known))
      if (each < least || each > most)
        wrong(fmt::format("{} has {}, which is not from {} to {}", role, each, least, most));
}

void Call::require_broadcasts_to(const Tensor& x, size_t input, std::string_view role) const {
  const Shape shape = (*this)[input].shape(), target = x.shape();
  bool fits = shape.size() <= target.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] == 1 || shape[i] == target[target.size() - shape.size() + i];
  if (!fits)
    wrong(fmt::format("{} has the shape {}, which cannot be broadcast to {}", role,
                      to_string(shape), to_string(target)));
}

bool Call::varies(const Tensor& x, std::int64_t axis) const {
  return recording_.sizes && tensor::has_variable_size(x, axis < 0 ? axis + x.ndim() : axis);
}

void Call::needs_exact_sizes(std::string_view why) const {
  throw NeedsExactSizes{fmt::format("{} {}", name(), why)};
}

void Call::require_fixed(const Tensor& x, std::optional<std::int64_t> axis) const {
  if (!recording_.sizes) return;
  for (std::int64_t i = 0; i < x.ndim(); ++i)
    if ((!axis || *axis == i) && varies(x, i))
      needs_exact_sizes(fmt::format("takes no variable size of axis {}", i));
}

std::vector<tensor::SizeValue> Call::sizes(size_t input) const {
  std::vector<tensor::SizeValue> sizes;
  if (recording_.sizes && !value(input).known() && value(input).is_tensor()) {
    auto elements = recording_.sizes->elements((*this)[input]);
    if (!elements) needs_exact_sizes("takes sizes that are computed of elements");
    return *elements;
  }
  for (const std::int64_t size : integers(input)) sizes.push_back({size, size, kNoId});
  return sizes;
}

Tensor Call::with_size(const Tensor& x, std::int64_t axis, const tensor::SizeValue& size) const {
  if (!recording_.sizes) return x;
  if (size.least < 0) needs_exact_sizes("may get a negative size");
  const auto sized = recording_.sizes->with_size(x, axis, size);
  if (!sized)
    needs_exact_sizes(fmt::format("gives axis {} a size that only some sizes have", axis));
  return *sized;
}

Tensor Call::with_fixed_size(const Tensor& x, std::int64_t axis) const {
  if (!recording_.sizes || !tensor::SizeArithmetic::takes_any_size(x, axis)) return x;
  return with_size(x, axis, {x.size(axis), x.size(axis), kNoId});
}

Tensor Call::with_sizes_of(const Tensor& x, const Tensor& model) const {
  if (!recording_.sizes) return x;
  Tensor y = tensor::limited_as(x, model);
  for (std::int64_t axis = 0; axis < y.ndim(); ++axis) y = with_fixed_size(y, axis);
  return y;
}

Tensor Call::size_of_axis(const Tensor& x, std::int64_t axis) const {
  return varies(x, axis) ? tensor::axis_size(x, axis).count.cast(DType::I64) : Tensor(x.size(axis));
}

std::int64_t Call::integer_input(size_t input) const {
  const auto values = integers(input);
  if (values.size() != 1) wrong(fmt::format("input {} must be one integer", input));
  return values[0];
}

std::vector<double> as_numbers(const tensor::HostValues& values) {
  std::vector<double> numbers;
  for (const uint64_t bits : values.bits)
    numbers.push_back(is_float(values.dtype) ? std::bit_cast<double>(bits)
                      : values.dtype == DType::U64
                          ? static_cast<double>(bits)
                          : static_cast<double>(static_cast<int64_t>(bits)));
  return numbers;
}

const AttributeMessage* Call::attribute(std::string_view name) const {
  const auto at = std::ranges::find(node_.attributes, name, &AttributeMessage::name);
  return at == node_.attributes.end() ? nullptr : &*at;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  const AttributeMessage* const given = attribute(name);
  if (!given) return otherwise;
  if (!given->integer) {
    if (given->type == 2) return 0;  // left out, as protobuf leaves out zeros
    wrong(fmt::format("attribute {} is no integer", name));
  }
  return *given->integer;
}

double Call::number(std::string_view name, double otherwise) const {
  const AttributeMessage* const given = attribute(name);
  if (!given) return otherwise;
  if (!given->number && given->type != 1) wrong(fmt::format("attribute {} is no number", name));
  return static_cast<double>(given->number.value_or(0.0F));
}

std::string_view Call::text(std::string_view name, std::string_view otherwise) const {
  const AttributeMessage* const given = attribute(name);
  if (!given) return otherwise;
  if (!given->text && given->type != 3) wrong(fmt::format("attribute {} is no text", name));
  return given->text.value_or("");
}

std::vector<std::int64_t> Call::integers(std::string_view name,
                                         std::vector<std::int64_t> otherwise) const {
  const AttributeMessage* const given = attribute(name);
  return given ? given->integers : otherwise;
}

std::vector<double> Call::numbers(std::string_view name) const {
  const AttributeMessage* const given = attribute(name);
  if (!given) return {};
  return {given->numbers.begin(), given->numbers.end()};
}

std::vector<std::string_view> Call::texts(std::string_view name) const {
  const AttributeMessage* const given = attribute(name);
  return given ? given->texts : std::vector<std::string_view>();
}

std::optional<DType> Call::dtype(std::string_view name) const {
  if (type(name) == DataType::Undefined) return {};
  const auto dtype = dtype_of(type(name));
  if (!dtype) unsupported(fmt::format("no dtype holds {}", name_of(type(name))));
  return dtype;
}

const GraphMessage& Call::graph(std::string_view name) const {
  const AttributeMessage* const given = attribute(name);
  if (!given || given->graphs.size() != 1) wrong(fmt::format("the graph {} is missing", name));
  return *given->graphs[0];
}

}  // namespace plugrad::onnx
