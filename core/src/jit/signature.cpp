#include "jit/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "engine/session_state.h"
#include "jit/facts.h"

namespace plugrad::jit_detail {
namespace {

using engine::Cause;
using engine::Fact;

std::string text_of_flag(bool flag) {
  return flag ? "true" : "false";
}

void add_tensor_facts(std::vector<Fact>& to, engine::Session& session, const std::string& name,
                      const engine::TensorState& state) {
  std::vector<uint64_t> words;
  add_facts(words, session, state);
  add_named_facts(to, session, name, words);
  to.push_back(
      {Cause::RequiresGrad, "requires_grad of " + name, text_of_flag(state.requires_grad)});
  if (!is_number(session, state)) return;
  if (const auto bits = session.constant_value(state.node)) {
    const bool is_real = is_float(session.graph()[state.node].dtype);
    to.push_back({Cause::Number, name,
                  is_real ? fmt::format("{}", std::bit_cast<double>(*bits))
                          : fmt::format("{}", static_cast<int64_t>(*bits))});
  }
}

}  // namespace

void add_named_facts(std::vector<Fact>& to, engine::Session& session, const std::string& name,
                     std::span<const uint64_t> facts) {
  const size_t rank = facts[0] >> 16 & 0xffff;
  const size_t bounds = facts[0] >> 15 & 1 ? 2 : 0;
  const auto shape = facts.subspan(1, rank), spec = facts.subspan(1 + rank + bounds);
  to.push_back({Cause::DType, "the dtype of " + name,
                std::string(name_of(static_cast<DType>(facts[0] & 0x7fff)))});
  to.push_back({Cause::Device, "the device of " + name,
                session.state().devices.name(static_cast<uint32_t>(facts[0] >> 32))});
  to.push_back({Cause::Shape, "the shape of " + name,
                fmt::format("({}{})", fmt::join(shape, ", "), rank == 1 ? "," : "")});
  if (bounds != 0)
    to.push_back({Cause::Number, "the range of " + name,
                  fmt::format("{} to {}", static_cast<int64_t>(facts[1 + rank]),
                              static_cast<int64_t>(facts[2 + rank]))});
  if (!spec.empty())
    to.push_back({Cause::Device, "the spec of " + name, "", hash64(std::as_bytes(spec))});
}

std::vector<Fact> facts_of_call(engine::Session& session, std::span<const engine::StatePtr> tensors,
                                std::span<const uint64_t> words, std::span<const uint64_t> modes,
                                std::span<const JitArgument> arguments) {
  const engine::Session::Lock lock(session);
  std::vector<Fact> facts;
  for (const JitArgument& argument : arguments) {
    facts.push_back({argument.value.empty() ? Cause::Structure : Cause::Number, argument.name,
                     argument.value, hash64(std::as_bytes(words.first(argument.words)))});
    for (size_t i = 0; i < argument.tensors; ++i)
      if (tensors[i])
        add_tensor_facts(facts, session,
                         argument.tensors == 1
                             ? argument.name
                             : fmt::format("tensor {} of {}", i + 1, argument.name),
                         *tensors[i]);
    words = words.subspan(argument.words);
    tensors = tensors.subspan(argument.tensors);
  }
  constexpr const char* kModes[] = {"training mode", "whether gradients are recorded"};
  for (size_t i = 0; i < modes.size(); ++i)
    facts.push_back({Cause::Settings, kModes[i], text_of_flag(modes[i] != 0)});
  facts.push_back({Cause::Device, "the default device",
                   session.state().devices.name(session.default_device())});
  const engine::KernelOptions options = engine::KernelOptions::from_settings();
  facts.push_back({Cause::Settings, "a setting of kernels", "", options.bits() ^ options.lists});
  return facts;
}

}  // namespace plugrad::jit_detail
