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

/// Reports an internal error as a user error, because the user made the graph or rule.
template <class Run>
auto as_user_error(Run run) {
  try {
    return run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Internal) throw;
    throw Error(ErrorKind::User, error.what());
  }
}

}  // namespace plugrad::ir
