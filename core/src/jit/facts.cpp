#include "jit/facts.h"

#include "engine/session_state.h"

namespace plugrad::jit_detail {
namespace {

const sharding::Spec& spec_of(engine::Session& session, Id node) {
  const engine::Value* const value = session.state().values.find(node);
  return value != nullptr && value->sharded ? value->sharded->spec : session.spec(node);
}

// Where constants alone are computed: the key of a tensor does not depend on whether it is yet.
uint32_t device_without_operands(engine::Session& session, const engine::TensorState& state) {
  return state.device != 0 ? state.device : session.default_device();
}

}  // namespace

void add_facts(std::vector<uint64_t>& words, engine::Session& session,
               const engine::TensorState& state) {
  const uint32_t own = session.devices()[state.node];
  const uint32_t device = own != 0 ? own : device_without_operands(session, state);
  const auto shape = session.shape(state.node);
  const engine::Value* const value = session.state().values.find(state.node);
  const bool is_variable = value != nullptr && value->variable;
  words.push_back(static_cast<uint64_t>(session.graph()[state.node].dtype) |
                  uint64_t{is_variable} << 15 | shape.size() << 16 | uint64_t{device} << 32);
  words.insert(words.end(), shape.begin(), shape.end());
  if (is_variable)
    words.insert(words.end(), {static_cast<uint64_t>(value->variable->low),
                               static_cast<uint64_t>(value->variable->high)});
  if (session.mesh(own) == nullptr) return;
  const std::vector<int64_t> spec =
      sharding::shard_arg(*session.mesh(own), spec_of(session, state.node));
  words.insert(words.end(), spec.begin(), spec.end());
}

bool is_number(engine::Session& session, const engine::TensorState& state) {
  const DType dtype = session.graph()[state.node].dtype;
  if (strong(dtype) != dtype) return true;
  return session.devices()[state.node] == 0 && state.device == 0 &&
         session.state().devices.opened().size() > 1;
}

std::shared_ptr<engine::Value> value_of_constant(engine::Session& session,
                                                 const engine::TensorState& state) {
  if (!session.constant_value(state.node)) return nullptr;
  auto bytes = std::make_shared<std::vector<std::byte>>(*session.peek(state));
  auto value = std::make_shared<engine::Value>();
  value->dtype = strong(session.graph()[state.node].dtype);
  value->device = device_without_operands(session, state);
  value->size_bytes = bytes->size();
  value->host = *bytes;
  value->host_owner = std::move(bytes);
  return value;
}

}  // namespace plugrad::jit_detail
