// Connects jit() to the JIT engine: passes tensors as states, and adds the thread's modes to the
// key of a call: training, and whether gradients are recorded.
#include "plugrad/jit.h"

#include "base/check.h"
#include "base/hash.h"
#include "jit/calls.h"
#include "plugrad/nn/training.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "tensor/write.h"

namespace plugrad::jit_detail {
namespace {

std::vector<engine::StatePtr> states_of(const std::vector<Tensor>& tensors) {
  std::vector<engine::StatePtr> states;
  states.reserve(tensors.size());
  for (const Tensor& t : tensors) states.push_back(tensor::state_of(t));
  return states;
}

}  // namespace

uint64_t hash_of(std::string_view text) {
  return hash128(std::as_bytes(std::span(text))).low;
}

Calls::Calls(bool is_pure)
    : calls_(std::make_unique<jit_detail::JitCalls>(
          is_pure, [](engine::TensorState& view, const engine::TensorState& value) {
            tensor::write_view("jit", view, value);
          })) {}
Calls::~Calls() = default;

Flat Calls::call(const Flat& arguments, const std::function<Flat()>& function) {
  std::vector<uint64_t> key = arguments.words;
  if (!calls_->is_pure())
    key.insert(key.end(), {uint64_t{nn::is_training()}, uint64_t{is_grad_enabled()}});
  Flat results;
  results.tensors.reserve(calls_->most_results());  // a replay that was done must not fail
  jit_detail::JitOutput output = calls_->call(states_of(arguments.tensors), key, [&] {
    const Flat made = function();
    return jit_detail::JitOutput{states_of(made.tensors), made.words};
  });
  results.words = std::move(output.structure);
  for (engine::StatePtr& state : output.tensors)
    results.tensors.push_back(state ? tensor::tensor_of(std::move(state)) : Tensor());
  return results;
}

size_t Calls::recordings() const {
  return calls_->recordings();
}

}  // namespace plugrad::jit_detail
