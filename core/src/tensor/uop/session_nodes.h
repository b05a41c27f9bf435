// The nodes of the session's graph that UOp handles denote.
#pragma once

#include "plugrad/uop.h"
#include "tensor/handles.h"
#include "tensor/record.h"

namespace plugrad::ir {

using Lock = engine::Session::Lock;

inline engine::Session& session() {
  return engine::Session::current();
}
inline Graph& graph() {
  return session().graph();
}

/// Errors: User if `node` is undefined.
inline Id node_of(const UOp& node, const char* function) {
  require(node.defined(), "[{}] a UOp is undefined; assign it a node first", function);
  return tensor::state_of(node)->node;
}

}  // namespace plugrad::ir
