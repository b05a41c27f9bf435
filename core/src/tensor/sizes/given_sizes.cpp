#include "tensor/sizes/given_sizes.h"

#include <algorithm>

#include "engine/session_state.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

Size::Size(const Tensor& size) : tensor_(std::make_shared<const Tensor>(size)) {}

Sizes::Sizes(std::initializer_list<Size> sizes) : Sizes(std::vector<Size>(sizes)) {}

Sizes::Sizes(std::vector<Size> sizes) {
  numbers_.reserve(sizes.size());
  for (const Size& size : sizes) numbers_.push_back(size.number());
  if (std::ranges::any_of(sizes, &Size::is_tensor)) list_ = std::move(sizes);
}

namespace tensor {

void realize_sizes(std::span<const Tensor> tensors) {
  engine::Session& session = engine::Session::current();
  std::vector<Tensor> lazy;
  {
    const std::lock_guard guard(session.mutex());
    for (const Tensor& x : tensors) {
      if (!x.defined()) continue;
      const Id node = state_of(x)->node;
      const DType dtype = session.graph()[node].dtype;
      if ((dtype == DType::I32 || dtype == DType::I64) && session.shape(node).empty() &&
          !session.state().values.find(node))
        lazy.push_back(x);
    }
  }
  for (const Tensor& x : lazy) {
    SizeArithmetic sizes;
    const auto value = sizes.of_variables(x);
    if (!value || !value->varies()) continue;
    x.realize();
    const std::lock_guard guard(session.mutex());
    session.state().values.find(state_of(x)->node)->variable = {value->least, value->most,
                                                                sizes.value_now(*value)};
  }
}

GivenSize::GivenSize(std::string_view function, const Size& size, SizeArithmetic& sizes)
    : tensor(size.is_tensor() ? size.tensor() : Tensor(size.number())),
      value{size.number(), size.number(), kNoId} {
  if (!size.is_tensor()) return;
  require(tensor.defined(), "[{}] a size is undefined; assign it a value", called(function));
  require_type(is_integer(tensor.dtype()) && tensor.ndim() == 0,
               "[{}] a size is an integer or an integer tensor of shape (), not a tensor of dtype "
               "{} and shape {}",
               called(function), name_of(tensor.dtype()), lazy_text(tensor));
  if (const auto variable = sizes.of_variables(tensor)) {
    value = *variable;
  } else {
    const auto number = tensor.item<int64_t>();
    tensor = Tensor(number);
    value = {number, number, kNoId};
  }
}

GivenSizes::GivenSizes(std::string_view function, const Sizes& sizes)
    : function_(function), largest_(sizes.numbers()) {
  if (!sizes.list().empty()) sizes_ = std::make_unique<SizeArithmetic>();
  for (size_t axis = 0; axis < sizes.list().size(); ++axis) {
    const GivenSize size(function, sizes.list()[axis], *sizes_);
    largest_[axis] = size.value.most;
    if (!size.value.varies()) continue;
    require(size.value.least >= 0 && size.value.most >= 2,
            "[{}] the size of axis {} is between {} and {}: a variable size is 0 or more, and may "
            "be 2 at least",
            called(function), axis, size.value.least, size.value.most);
    variable_.push_back({axis, size.value});
  }
}

std::optional<Shape> GivenSizes::actual() const {
  Shape shape = largest_;
  for (const Variable& each : variable_) {
    const auto now = sizes_->value_now(each.value);
    if (!now) return {};
    shape[each.axis] = *now;
  }
  return shape;
}

bool GivenSizes::varies(size_t axis) const {
  return std::ranges::find(variable_, axis, &Variable::axis) != variable_.end();
}

Tensor GivenSizes::limited(const Tensor& x) const {
  Tensor y = x;
  for (const Variable& each : variable_)
    y = sizes_->limited(y, static_cast<int64_t>(each.axis), each.value);
  return y;
}

Tensor GivenSizes::checked(const Tensor& x) const {
  if (vary()) sizes_->add(x);
  Tensor y = x;
  for (const Variable& each : variable_) {
    const auto sized = sizes_->with_size(y, static_cast<int64_t>(each.axis), each.value);
    require(sized.has_value(),
            "[{}] axis {} of {} has another size than the variable one, of at most {}",
            called(function_), each.axis, shown_shape(y), each.value.most);
    y = *sized;
  }
  return y;
}

}  // namespace tensor
}  // namespace plugrad
