// Backwards of Python functions, for functions and kernels of the user's.
#pragma once

#include <string>

#include "arguments.h"
#include "programs/callbacks.h"

namespace plugrad::python {

/// Shared by forward and backward of one call. Python code may set attributes of its own.
struct CallContext {
  FunctionContext* forward = nullptr;        // while forward runs
  const FunctionContext* current = nullptr;  // while either runs
  /// Errors: UserError after the call.
  const FunctionContext& get() const;
};

/// The context of a call while a function of it runs.
class CurrentCall {
 public:
  CurrentCall(nb::handle context, const FunctionContext& current, FunctionContext* forward);
  ~CurrentCall();
  CurrentCall(const CurrentCall&) = delete;
  CurrentCall& operator=(const CurrentCall&) = delete;

 private:
  CallContext& context_;
  CallContext outer_;
};

nb::object new_context();
/// Calls `backward(context, *gradients)`, which C++ may do on any thread and drop at any time.
CustomFunction::Backward backward_of(const std::string& name, nb::object backward,
                                     nb::object context);

/// The tensors of a result: one tensor, or a tuple or list of them. `what` begins the message.
/// Errors: TypeError for anything else.
std::vector<Tensor> tensors_of_result(nb::handle result, const std::string& what, bool may_be_none);
/// One tensor alone, several as a tuple.
nb::object object_of_results(const std::vector<Tensor>& tensors);

}  // namespace plugrad::python
