#include "plugrad/host_view.h"

#include "base/check.h"
#include "engine/plan/ready_plan.h"
#include "engine/plan/size_checks.h"
#include "engine/recording/call_observer.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "plugrad/tensor.h"
#include "runtime/memory/mapping.h"
#include "tensor/handles.h"

namespace plugrad {

namespace {

/// Members are destroyed in reverse: the mapping ends before its buffer is released.
struct MappedBuffer {
  explicit MappedBuffer(std::shared_ptr<runtime::Buffer> memory)
      : buffer(std::move(memory)), mapping(*buffer) {}
  std::shared_ptr<runtime::Buffer> buffer;
  runtime::Mapping mapping;
};

/// The value if it has not been on a device yet, also of a dtype that the device does not hold.
std::optional<engine::Value> value_on_host(const Tensor& tensor) {
  engine::Session& session = engine::Session::current();
  const std::lock_guard guard(session.mutex());
  Id base = tensor::state_of(tensor)->node;
  while (engine::shows_the_same_elements(session.graph()[base].op))
    base = session.graph().sources(base)[0];
  const engine::Value* const value = session.state().values.find(base);
  const bool is_whole =
      value && !value->buffer &&
      value->host.size() == static_cast<size_t>(tensor.numel()) * size_of(strong(tensor.dtype()));
  if (!is_whole || value->dtype != strong(tensor.dtype())) return {};
  return *value;
}

/// A copy of the computed value, which shares its memory; nothing if the tensor is a constant.
std::optional<engine::Value> value_of(const Tensor& tensor) {
  engine::Session& session = engine::Session::current();
  engine::TensorState& state = *tensor::state_of(tensor);
  const std::lock_guard guard(session.mutex());
  if (session.constant_value(state.node)) return {};
  engine::CallObserver::note_read();
  const engine::ValuePtr value = session.readable_value(state);
  engine::require_there(*value);
  return *value;
}

}  // namespace

std::optional<HostView> host_view(const Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.bound_shape() != tensor.shape()) return {};
  if (tensor.is_sharded()) return {};  // parts, maybe of other processes
  if (const auto value = value_on_host(tensor); value && !engine::CallObserver::active())
    return HostView{value->host, value->host_owner};
  tensor.realize();
  // Waits for the device without the session's lock.
  const std::optional<engine::Value> value = value_of(tensor);
  if (!value || value->sharded)
    return {};  // a constant on a mesh is known to be there once computed
  if (value->pending_checks) value->pending_checks->require_within();
  if (!value->buffer) return HostView{value->host, value->host_owner};
  auto mapped = std::make_shared<MappedBuffer>(value->buffer);
  if (!mapped->mapping) return {};
  const std::span<const std::byte> bytes(mapped->mapping.bytes(), value->size_bytes);
  return HostView{bytes, std::move(mapped)};
}

}  // namespace plugrad
