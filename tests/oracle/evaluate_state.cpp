// The evaluator on tensors of the session.
#include "engine/session.h"
#include "oracle/evaluator.h"

namespace plugrad::oracle {

Leaves leaves_of(engine::Session& session) {
  return [&session](Id buffer) {
    const auto shape = session.shape(buffer);
    const DType dtype = session.graph()[buffer].dtype;
    std::vector<std::byte> bytes(static_cast<size_t>(element_count(shape)) * size_of(dtype));
    session.read(*session.make(buffer), bytes);
    return from_bytes(dtype, {shape.begin(), shape.end()}, bytes);
  };
}

Array evaluate(engine::TensorState& state) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  Array result = evaluate(session.graph(), std::span(&state.node, 1), leaves_of(session))[0];
  result.dtype = strong(result.dtype);
  return result;
}

}  // namespace plugrad::oracle
