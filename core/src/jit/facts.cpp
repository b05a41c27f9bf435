#include "jit/facts.h"

#include "engine/session_state.h"

namespace plugrad::jit_detail {
namespace {

const sharding::Spec& spec_of(engine::Session& session, Id node) {
  const engine::Value* const value = session.state().values.find(node);
  return value != nullptr && value->sharded ? value->sharded->spec : session.spec(node);
}

}  // namespace

void add_facts(std::vector<uint64_t>& words, engine::Session& session,
               const engine::TensorState& state) {
  const uint32_t own = session.devices()[state.node];
  const uint32_t device = own != 0 ? own : state.device;
  const auto shape = session.shape(state.node);
  words.push_back(static_cast<uint64_t>(session.graph()[state.node].dtype) | shape.size() << 16 |
                  uint64_t{device} << 32);
  words.insert(words.end(), shape.begin(), shape.end());
  if (session.mesh(own) == nullptr) return;
  const std::vector<int64_t> spec =
      sharding::shard_arg(*session.mesh(own), spec_of(session, state.node));
  words.insert(words.end(), spec.begin(), spec.end());
}

}  // namespace plugrad::jit_detail
