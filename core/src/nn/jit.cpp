// Connects jit() to the JIT engine: passes tensors as states, and adds the thread's modes to the
// key of a call: training, and whether gradients are recorded.
#include "plugrad/jit.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "jit/calls.h"
#include "plugrad/nn/training.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "tensor/sizes/given_sizes.h"
#include "tensor/write.h"

namespace plugrad::jit_detail {
namespace {

std::vector<engine::StatePtr> states_of(const std::vector<Tensor>& tensors) {
  std::vector<engine::StatePtr> states;
  states.reserve(tensors.size());
  for (const Tensor& t : tensors) states.push_back(tensor::state_of(t));
  return states;
}

std::vector<JitArgument> named(std::vector<Argument> arguments) {
  std::vector<JitArgument> all;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& [name, value, tensors, words] = arguments[i];
    all.push_back({name.empty() ? fmt::format("argument {}", i + 1) : std::move(name),
                   std::move(value), tensors, words});
  }
  return all;
}

}  // namespace

uint64_t hash_of(std::string_view text) {
  return hash128(std::as_bytes(std::span(text))).low;
}

Calls::Calls(bool is_pure, bool has_cuts)
    : calls_(std::make_unique<jit_detail::JitCalls>(
          is_pure, has_cuts, [](engine::TensorState& view, const engine::TensorState& value) {
            tensor::write_view("jit", view, value);
          })) {}
Calls::~Calls() = default;

std::string text_of(double value) {
  const auto single = static_cast<float>(value);
  return single == value ? fmt::format("{}", single) : fmt::format("{}", value);
}

Flat Calls::call(const Flat& arguments, const std::function<Flat()>& function,
                 const Describe& describe) {
  const uint64_t modes[] = {nn::is_training(), is_grad_enabled()};
  const std::span used = calls_->is_pure() ? std::span<const uint64_t>() : modes;
  tensor::realize_sizes(arguments.tensors);
  Flat results;
  results.tensors.reserve(calls_->most_results());  // a replay that was done must not fail
  DescribeArguments described;
  if (describe) described = [&] { return named(describe()); };
  const auto run = [&] {
    const Flat made = function();
    return JitOutput{states_of(made.tensors), made.words};
  };
  JitOutput output =
      calls_->call(states_of(arguments.tensors), arguments.words, used, run, described);
  results.words = std::move(output.structure);
  for (engine::StatePtr& state : output.tensors)
    results.tensors.push_back(state ? tensor::tensor_of(std::move(state)) : Tensor());
  return results;
}

size_t Calls::recordings() const {
  return calls_->recordings();
}

std::string Calls::explain() const {
  return calls_->explain();
}

}  // namespace plugrad::jit_detail
