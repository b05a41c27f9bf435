// The nonlinearity of a simple recurrent network by its name.
#pragma once

#include <string_view>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"

namespace plugrad::nn {

/// Errors: User for a name other than "tanh" and "relu".
inline bool is_relu_named(std::string_view layer, std::string_view nonlinearity) {
  require(nonlinearity == "tanh" || nonlinearity == "relu",
          "[{}] nonlinearity \"{}\" is unknown; it is \"tanh\" or \"relu\"", layer,
          excerpt(nonlinearity));
  return nonlinearity == "relu";
}

}  // namespace plugrad::nn
