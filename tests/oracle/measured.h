// The evaluator with an error analysis: each value carries the largest permitted error of a correct
// device. Devices round each op as the graph says (multiply-adds not contracted), so correctly
// rounded ops are exact; only the order of reductions, exp2, log2 and sin depend on the device.
#pragma once

#include <optional>

#include "oracle/evaluator.h"

namespace plugrad::oracle {

/// Every |device - value| is at most the element's error; infinity: nothing is known. No errors at
/// all: every element is exact, up to the sign of zero.
struct Measured {
  Array value;
  std::vector<double> error;

  double error_of(size_t i) const { return error.empty() ? 0.0 : error[i]; }
};

/// The array of a node that counts as given, or nothing.
using Stored = std::function<std::optional<Array>(Id node)>;

/// One a root, as evaluate() gives the values. What `stored` gives is exact, and not computed.
std::vector<Measured> evaluate_measured(const Graph& graph, std::span<const Id> roots,
                                        const Leaves& leaves, const Stored& stored = {});

/// The leaves that session tensors are computed from: the Buffers below them, or the nearest stored
/// values below them on a device (the tensors' own values are not used).
enum class Leaf : uint8_t { Buffer, Kept };
std::vector<Measured> evaluate_measured(std::span<detail::TensorState* const> states,
                                        Leaf leaf = Leaf::Buffer);

}  // namespace plugrad::oracle
