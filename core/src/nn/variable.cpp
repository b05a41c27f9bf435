// Variables: bounded host integers as tensors and as axis sizes.
#include <cstring>
#include <map>
#include <mutex>

#include "engine/session_state.h"
#include "jit/trace.h"
#include "plugrad/jit.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

// Sizes are equal if they are the same tensor, so equal values must share a tensor.
struct Variable::Bound {
  static constexpr size_t kMost = 4096;  // tensors; then all are dropped
  std::mutex mutex;
  std::map<std::pair<int64_t, uint32_t>, Tensor> tensors;  // by value and device
};

Variable::Variable(std::string name, int64_t low, int64_t high)
    : name_(std::move(name)), low_(low), high_(high), bound_(std::make_shared<Bound>()) {
  require(low <= high && low >= INT32_MIN && high <= INT32_MAX,
          "[Variable] {} has the bounds {} and {}; they are i32, the smaller one first", name_, low,
          high);
}

Tensor Variable::bind(int64_t value, std::string_view device) const {
  require(value >= low_ && value <= high_, "[Variable] {} is {}; it is bound to {} to {}", name_,
          value, low_, high_);
  const auto make = [&] {
    const Tensor made = Tensor::from<int32_t>({static_cast<int32_t>(value)}, Shape{}, device);
    Recorder r("Variable");
    r.session().state().values.find(r.use(made))->variable = {low_, high_, value};
    return made;
  };
  if (jit_detail::JitTrace::active()) return make();  // not cached: lives no longer than the call
  const std::lock_guard lock(bound_->mutex);
  if (bound_->tensors.size() >= Bound::kMost) bound_->tensors.clear();
  engine::Session& session = engine::Session::current();
  const uint32_t number = device.empty() ? session.default_device() : session.device_number(device);
  Tensor& known = bound_->tensors[{value, number}];
  if (!known.defined()) known = make();
  return known.clone();
}

Tensor Variable::limit(const Tensor& x, int64_t axis, int64_t value) const {
  require(x.defined(), "[Variable] {}.limit of an undefined tensor; assign it a value", name_);
  return limit(x, axis, bind(value, x.device()));
}

Tensor Variable::limit(const Tensor& x, int64_t axis, const Tensor& value) const {
  require(low_ >= 0 && high_ >= 2,
          "[Variable] {} is between {} and {}: a variable size is 0 or more, and may be 2 at least",
          name_, low_, high_);
  Recorder r("limit");
  Id node = r.use(x);
  const Shape shape = r.shape(node);
  const int64_t at = tensor::checked_axis("limit", axis, static_cast<int64_t>(shape.size()));
  const int64_t size = shape[static_cast<size_t>(at)];
  require(size >= high_, "[limit] axis {} of {} has {} elements, {} may be {}", at,
          to_string(shape), size, name_, high_);
  require(!r.extent(node, at).is_counted(), "[limit] axis {} of {} has a variable size already", at,
          tensor::shown_shape(x));
  const Id count = r.use(value);
  require(r.shape(count).empty() && r.dtype(count) == DType::I32,
          "[limit] the value of {} is a tensor of shape {} and dtype {}; bind() makes one, which "
          "is i32 and of shape ()",
          name_, to_string(r.shape(count)), name_of(strong(r.dtype(count))));
  if (is_const(r.graph(), count)) {
    const int64_t number = const_int(r.graph(), count);
    require(number >= low_ && number <= high_, "[Variable] {} is {}; it is bound to {} to {}",
            name_, number, low_, high_);
  }
  if (size > high_) {
    std::vector<Part> box(shape.size());
    box[static_cast<size_t>(at)] = {0, high_};
    node = r.use(x.shrink(box));
  }
  return r.done(r.session().bound(node, at, count, low_));
}

Tensor Variable::fit(const Tensor& x, int64_t axis) const {
  require(x.defined(), "[Variable] {}.fit of an undefined tensor; assign it a value", name_);
  const Shape shape = x.shape();
  const auto at =
      static_cast<size_t>(tensor::checked_axis("fit", axis, static_cast<int64_t>(shape.size())));
  const Tensor value = bind(shape[at], x.device());
  tensor::require_fixed("fit", x);
  Shape room = shape;
  room[at] = high_;
  const std::vector<std::byte> given = x.to_bytes();
  const size_t inner =
      static_cast<size_t>(element_count(std::span(shape).subspan(at + 1))) * size_of(x.dtype());
  const size_t row = static_cast<size_t>(shape[at]) * inner;
  const size_t wide_row = static_cast<size_t>(high_) * inner;
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(room)) * size_of(x.dtype()));
  for (size_t from = 0, to = 0; row > 0 && from < given.size(); from += row, to += wide_row)
    std::memcpy(bytes.data() + to, given.data() + from, row);
  return limit(Tensor::from_bytes(bytes, room, x.dtype(), x.device()), axis, value);
}

}  // namespace plugrad
