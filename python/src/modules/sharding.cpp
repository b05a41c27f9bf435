// Modules and optimisers on a mesh: what plugrad.nn's functions of sharding call.
#include "bind.h"
#include "modules/modules.h"
#include "spec_argument.h"

namespace plugrad::python {

namespace {

using Rule = std::pair<std::string, SpecArgument>;

std::vector<nn::ShardRule> rules_of(const std::vector<Rule>& given) {
  std::vector<nn::ShardRule> rules;
  for (const auto& [pattern, spec] : given) rules.push_back({pattern, spec.spec});
  return rules;
}

}  // namespace

void bind_module_sharding(nb::module_& module) {
  module.def(
      "_shard_state",
      [](const nb::dict& state, const Mesh& mesh, const std::vector<Rule>& rules) {
        const Place place;
        const nn::StateDict tensors = state_of_dict(state);
        const Released released;
        nn::shard_state(tensors, mesh, rules_of(rules));
      },
      "state"_a, "mesh"_a, "rules"_a,
      nb::sig("def _shard_state(state: dict[str, Tensor], mesh: Mesh, rules: "
              "Sequence[tuple[str, SpecLike | None]]) -> None"),
      doc("nn::shard_state"));
  module.def(
      "_tensor_parallel_rules",
      [](const nb::dict& state, std::string_view axis) {
        std::vector<std::pair<std::string, ShardSpec>> rules;
        for (const nn::ShardRule& rule : nn::tensor_parallel_rules(state_of_dict(state), axis))
          rules.emplace_back(rule.pattern, rule.spec);
        return rules;
      },
      "state"_a, "axis"_a,
      nb::sig("def _tensor_parallel_rules(state: dict[str, Tensor], axis: str) -> list[tuple[str, "
              "ShardSpec]]"),
      doc("nn::tensor_parallel_rules"));
}

}  // namespace plugrad::python
