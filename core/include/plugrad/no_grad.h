/// Tensors without autograd history.
#pragma once

#include "plugrad/export.h"

namespace plugrad {

/// While it lives, results of this thread's tensor functions and the values that it assigns are
/// detached: no gradient flows through them. requires_grad_() still marks leaves. Scopes nest.
///   {
///     const NoGradScope scope;
///     average.assign(average * 0.9 + weight * 0.1);
///   }
class PLUGRAD_API NoGradScope {
 public:
  NoGradScope();
  ~NoGradScope();
  NoGradScope(const NoGradScope&) = delete;
  NoGradScope& operator=(const NoGradScope&) = delete;

 private:
  bool outer_;
};

/// False in a NoGradScope.
PLUGRAD_API bool is_grad_enabled();

}  // namespace plugrad
