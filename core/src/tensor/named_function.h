// The name of a function that consists of others, for their messages.
#pragma once

#include <string_view>

#include "base/internal.h"

namespace plugrad::tensor {

/// While it exists, messages of the primitives that this thread calls begin with `[name]`; the name
/// of the outermost one wins. Not for functions that call code of the user. `name` outlives it.
class PLUGRAD_INTERNAL NamedFunction {
 public:
  explicit NamedFunction(std::string_view name);
  ~NamedFunction();
  NamedFunction(const NamedFunction&) = delete;
  NamedFunction& operator=(const NamedFunction&) = delete;

 private:
  const std::string_view outer_;
};

/// The outermost name, else `function`.
PLUGRAD_INTERNAL std::string_view called(std::string_view function);

}  // namespace plugrad::tensor
