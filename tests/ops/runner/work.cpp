#include "ops/runner/work.h"

#include "engine/session.h"
#include "oracle/evaluator.h"
#include "tensor/handles.h"

namespace plugrad::ops {

int64_t work_of(const std::vector<Tensor>& tensors) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  std::vector<Id> roots;
  for (const Tensor& tensor : tensors) roots.push_back(tensor::state_of(tensor)->node);
  Reachable reachable;
  int64_t work = 0;
  for (Id id : reachable.from(session.graph(), roots)) work += element_count(session.shape(id));
  return work;
}

std::vector<double> evaluate(const Tensor& tensor) {
  const oracle::Array array = oracle::evaluate(*tensor::state_of(tensor));
  std::vector<double> values(array.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = array.real(i);
  return values;
}

}  // namespace plugrad::ops
