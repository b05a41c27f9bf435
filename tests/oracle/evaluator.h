// Evaluates tensor graphs; the first of the two oracles. Each op is computed in double and rounded
// to the node's dtype, integers are exact, reductions accumulate in double and round once. The
// evaluator does not depend on schedule, codegen or devices.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "oracle/array.h"

namespace plugrad::engine {
class Session;
}

namespace plugrad::detail {
struct TensorState;
}

namespace plugrad::oracle {

/// Gives the array of a Buffer node.
using Leaves = std::function<Array(Id buffer)>;

/// The values that the session's Buffers have.
Leaves leaves_of(engine::Session& session);

/// One array per root. Errors: Unsupported for an op that tensor graphs do not allow.
std::vector<Array> evaluate(const Graph& graph, std::span<const Id> roots, const Leaves& leaves);

/// The expected value of a session tensor, from the values of the Buffers below it. Realises
/// nothing.
Array evaluate(detail::TensorState& state);

}  // namespace plugrad::oracle
