// Activation functions that attributes of other operators name.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "onnx/import/call.h"

namespace plugrad::onnx {

using Activation = std::function<Tensor(const Tensor&)>;

/// The defaults of the numbers that an activation function takes, none for one that it does not take.
struct ActivationNumbers {
  std::string_view name;
  std::optional<double> alpha{}, beta{};
};
/// Of a name in any case; `beta` of Selu is its gamma.
ActivationNumbers activation_numbers(std::string_view name);

/// The function of a name in any case, with its numbers or their defaults. Errors: Unsupported for other names.
Activation activation_of(Call& call, std::string_view name, std::optional<double> alpha,
                         std::optional<double> beta);

/// A number that a node may leave out.
std::optional<double> parameter_of(Call& call, std::string_view attribute);

/// x behind the attribute `activation` of a FusedConv, with its `activation_params`; x without one.
Tensor activated(Call& call, const Tensor& x);

}  // namespace plugrad::onnx
