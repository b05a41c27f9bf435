// The facts that a call of a jitted function depends on, by name: for explanations, on misses only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/causes/causes.h"
#include "engine/session.h"

namespace plugrad::jit_detail {

/// An argument as the caller names it, and how many tensors and words of the call are of it.
struct JitArgument {
  std::string name, value;
  size_t tensors = 0, words = 0;
};
using DescribeArguments = std::function<std::vector<JitArgument>()>;

/// Appends what add_facts() found, e.g. of a tensor `name`.
void add_named_facts(std::vector<engine::Fact>& to, engine::Session& session,
                     const std::string& name, std::span<const uint64_t> facts);

/// The facts of a call: of each argument, then of the modes and settings.
std::vector<engine::Fact> facts_of_call(engine::Session& session,
                                        std::span<const engine::StatePtr> tensors,
                                        std::span<const uint64_t> words,
                                        std::span<const uint64_t> modes,
                                        std::span<const JitArgument> arguments);

}  // namespace plugrad::jit_detail
