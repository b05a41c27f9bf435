// Writes to tensors and to views of tensors: what a view is given goes to the elements of its base.
#pragma once

#include <string_view>

#include "tensor/record.h"

namespace plugrad::tensor {

/// While one lives, this thread records gradients, also within a NoGradScope.
class GradScope {
 public:
  GradScope();
  ~GradScope();
  GradScope(const GradScope&) = delete;
  GradScope& operator=(const GradScope&) = delete;

 private:
  bool outer_;
};

/// Errors: User where a write to all of the tensor, or to `part` of it, is refused: expanded
/// tensors, and while gradients are recorded parts of leaves.
void require_writable(std::string_view function, const engine::TensorState& state, bool part);

/// The state denotes `node`, of its shape and dtype, which differs where `mask`, of that shape, is
/// true (kNoId: everywhere). So do the elements of the tensor of which it is a view. The views of
/// both show it.
void write(Recorder& r, engine::TensorState& state, Id node, Id mask = kNoId);

/// The same for all of `view`, by what is no function of tensors.
void write_view(std::string_view function, engine::TensorState& view,
                const engine::TensorState& value);

}  // namespace plugrad::tensor
