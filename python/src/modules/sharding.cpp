// Modules and optimisers on a mesh: what plugrad.nn's functions of sharding call.
#include "bind.h"
#include "modules/modules.h"
#include "spec_argument.h"

namespace plugrad::python {

namespace {

[[noreturn]] void refuse_rule(const std::string& message) {
  throw Error(ErrorKind::User, "[nn.shard] " + message, ErrorReason::Type);
}

/// Pairs of a pattern and a spec. Errors: User (TypeError) for others.
std::vector<nn::ShardRule> rules_of(const nb::list& given) {
  std::vector<nn::ShardRule> rules;
  for (const nb::handle rule : given) {
    std::pair<std::string, nb::object> pair;
    if (!nb::try_cast(rule, pair))
      refuse_rule("a rule is a pattern and a spec, as (\"*.weight\", (\"data\",)), not " +
                  nb::cast<std::string>(nb::repr(rule)));
    try {
      rules.push_back({pair.first, spec_of_object(pair.second).value().spec});
    } catch (const Error& error) {
      refuse_rule("the rule \"" + pair.first + "\": " + error.what());
    }
  }
  return rules;
}

}  // namespace

void bind_module_sharding(nb::module_& module) {
  module.def(
      "_shard_state",
      [](const nb::dict& state, const Mesh& mesh, const nb::list& given) {
        const Place place;
        const nn::StateDict tensors = state_of_dict(state);
        const std::vector<nn::ShardRule> rules = rules_of(given);
        const Released released;
        nn::shard_state(tensors, mesh, rules);
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
