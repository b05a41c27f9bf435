// Activation functions that attributes of other operators name.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "onnx/import/call.h"

namespace plugrad::onnx {

using Activation = std::function<Tensor(const Tensor&)>;

/// The function of a name in any case, with its parameters or the defaults of its operator; `beta` of
/// Selu is its gamma. Errors: Unsupported for other names.
Activation activation_of(Call& call, std::string_view name, std::optional<double> alpha,
                         std::optional<double> beta);

/// A number that a node may leave out.
std::optional<double> parameter_of(Call& call, std::string_view attribute);

/// x behind the attribute `activation` of a FusedConv, with its `activation_params`; x without one.
Tensor activated(Call& call, const Tensor& x);

}  // namespace plugrad::onnx
