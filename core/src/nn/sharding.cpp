// Moves the tensors of a state to a mesh, each by the rule that matches its name.
#include "plugrad/nn/sharding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "nn/become.h"
#include "nn/checkpoint/in_all_ranks.h"

namespace plugrad::nn {
namespace {

constexpr size_t kMostNames = 40;  // of an error; further names are counted

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= name.size(); ++at)
    if (matches(pattern.substr(star + 1), name.substr(at))) return true;
  return false;
}

std::string names_of(const StateDict& state) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < std::min(state.size(), kMostNames); ++i) names.push_back(state[i].first);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (state.size() > kMostNames) text += fmt::format(" and {} more", state.size() - kMostNames);
  return text;
}

void require_matches(const StateDict& state, const std::vector<ShardRule>& rules) {
  for (const ShardRule& rule : rules) {
    const bool is_used = std::ranges::any_of(
        state, [&](const auto& entry) { return matches(rule.pattern, entry.first); });
    require(is_used, "[nn::shard] the rule \"{}\" matches no tensor; the names are {}",
            rule.pattern, names_of(state));
    require(rule.spec.partial_sum().empty(),
            "[nn::shard] the rule \"{}\" asks for {}; the tensors of a module are no terms of sums",
            rule.pattern, rule.spec.to_string());
  }
}

/// A tensor, what it becomes, and the first of its names and rules; no rule: every device has all.
struct Change {
  Tensor tensor, value;
  std::string name;
  const ShardRule* rule = nullptr;
};

Tensor on_mesh(const Tensor& tensor, const Mesh& mesh, const ShardSpec& spec) {
  const Tensor value = tensor.detach();
  const bool moves = value.is_sharded() && !(value.mesh() == mesh);
  return (moves ? value.unshard() : value).shard(mesh, spec);
}

class Changes {
 public:
  Changes(const Mesh& mesh, const std::vector<ShardRule>& rules) : mesh_(mesh), rules_(rules) {}

  void add(const std::string& name, const Tensor& tensor) {
    const auto found = std::ranges::find_if(
        rules_, [&](const ShardRule& rule) { return matches(rule.pattern, name); });
    const ShardRule* rule = found == rules_.end() ? nullptr : &*found;
    const auto [known, is_new] = index_.try_emplace(identity_of(tensor), changes_.size());
    if (!is_new) return add_name(name, rule, changes_[known->second]);
    // A tensor without dimensions, such as BatchNorm's counter, cannot be cut.
    changes_.push_back({tensor, {}, name, tensor.ndim() == 0 ? nullptr : rule});
  }

  /// Records all values. Errors: User with all specs that do not fit.
  std::vector<Change>& values() {
    for (Change& change : changes_) {
      try {
        change.value = on_mesh(change.tensor, mesh_, change.rule ? change.rule->spec : ShardSpec());
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::User) throw;
        errors_ += fmt::format("\n  {}: {}", change.name, error.what());
      }
    }
    require(errors_.empty(), "[nn::shard] these tensors do not fit the rules:{}", errors_);
    return changes_;
  }

 private:
  void add_name(const std::string& name, const ShardRule* rule, Change& change) {
    if (rule == nullptr || change.tensor.ndim() == 0) return;
    if (change.rule != nullptr && change.rule->spec != rule->spec)
      errors_ += fmt::format(
          "\n  {0} and {1} are one tensor, of the specs {2} and {3}; put a rule in front that "
          "gives \"{0}\" and \"{1}\" one spec: an empty one (None in Python) keeps it whole",
          change.name, name, change.rule->spec.to_string(), rule->spec.to_string());
    change.rule = rule;
  }

  const Mesh& mesh_;
  const std::vector<ShardRule>& rules_;
  std::vector<Change> changes_;
  std::map<const void*, size_t> index_;  // key: identity of a tensor
  std::string errors_;
};

/// Compares the values of the processes, of tensors that are on no mesh yet: on the mesh they would be
/// copies that differ.
void require_equal_in_all_ranks(const StateDict& state) {
  if (this_rank().count == 1) return;
  StateDict local;
  std::ranges::copy_if(state, std::back_inserter(local),
                       [](const auto& entry) { return !entry.second.is_sharded(); });
  const auto hashes = results_of_all_ranks("nn::shard", [&] {
    ByteWriter out;
    for (const auto& [name, tensor] : local) out.put(hash64(tensor.to_bytes()));
    return std::vector<std::byte>(out.bytes().begin(), out.bytes().end());
  });
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    require(hashes[rank].size() == hashes[0].size(),
            "[nn::shard] rank {} has other tensors than rank 0; all ranks make the same module",
            rank);
    const auto differ = std::ranges::mismatch(hashes[0], hashes[rank]).in1 - hashes[0].begin();
    const auto at = static_cast<size_t>(differ) / sizeof(uint64_t);
    require(at == local.size(),
            "[nn::shard] rank {} has other values of {} than rank 0; call Tensor::manual_seed with "
            "one seed in all ranks before the module is made, or load the same values",
            rank, at == local.size() ? "" : local[at].first);
  }
}

}  // namespace

void shard_state(const StateDict& state, const Mesh& mesh, const std::vector<ShardRule>& rules) {
  require_outside_jit("nn::shard");
  require_matches(state, rules);
  require_equal_in_all_ranks(state);
  Changes changes(mesh, rules);
  for (const auto& [name, tensor] : state) changes.add(name, tensor);
  std::vector<Tensor> changed;
  for (const Change& change : changes.values()) {
    become("nn::shard", change.tensor, change.value);
    changed.push_back(change.tensor);
  }
  if (!changed.empty()) Tensor::realize(changed);
}

}  // namespace plugrad::nn
