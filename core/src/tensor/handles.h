// Opens the public handles (Tensor, UOp, Kernel) to core, its tests and its tools, and makes them.
#pragma once

#include <memory>
#include <utility>

#include "engine/report.h"
#include "engine/session.h"
#include "plugrad/kernel.h"
#include "plugrad/tensor.h"
#include "plugrad/uop.h"

namespace plugrad::detail {

/// The friend of the handles' classes. Use the functions below.
struct HandleAccess {
  static const engine::StatePtr& state_of(const Tensor& tensor) { return tensor.state_; }
  static const engine::StatePtr& state_of(const ir::UOp& node) { return node.state_; }
  static Tensor tensor_of(engine::StatePtr state) { return Tensor(std::move(state)); }
  static ir::UOp uop_of(engine::StatePtr state) { return ir::UOp(std::move(state)); }
  static Kernel kernel_of(std::shared_ptr<const KernelReport> report) {
    return Kernel(std::move(report));
  }
};

}  // namespace plugrad::detail

namespace plugrad::tensor {

/// The engine's state behind a handle; null for an undefined one. Copies of a handle share it.
inline const engine::StatePtr& state_of(const Tensor& tensor) {
  return detail::HandleAccess::state_of(tensor);
}
inline const engine::StatePtr& state_of(const ir::UOp& node) {
  return detail::HandleAccess::state_of(node);
}

inline Tensor tensor_of(engine::StatePtr state) {
  return detail::HandleAccess::tensor_of(std::move(state));
}
inline ir::UOp uop_of(engine::StatePtr state) {
  return detail::HandleAccess::uop_of(std::move(state));
}
inline Kernel kernel_of(std::shared_ptr<const engine::KernelReport> report) {
  return detail::HandleAccess::kernel_of(std::move(report));
}

}  // namespace plugrad::tensor
