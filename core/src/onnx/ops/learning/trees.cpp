// Ensembles of decision trees: all samples go down all trees together, one level after the other.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/learning/post_transform.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "plugrad/scan.h"

namespace plugrad::onnx {
namespace {

using Numbers = std::vector<double>;

constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                       "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
constexpr int64_t kMember = 6, kLeaf = 7;

constexpr int64_t kMostLevels = 64;  // of trees whose levels are recorded one by one

struct Vote {
  int64_t node, target;
  double weight;
};

// The nodes of all trees. Both branches of a leaf lead back to it.
struct Forest {
  Integers roots, feature, mode, yes, no, missing_is_yes;
  Numbers split;
  std::vector<Numbers> members;  // of each node; empty unless it tests for them
  std::vector<Vote> votes;
  int64_t targets = 1;
};

int64_t at(const Integers& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

Numbers numbers_of(Call& call, const std::string& name) {
  for (const std::string& attribute : {name + "_as_tensor", name}) {
    const auto* given = call.attribute(attribute);
    if (!given || given->tensors.empty()) continue;
    const Value value = call.recording().files->constant(given->tensors[0]);
    const tensor::HostValues values = host_values_of(value, call.recording().is_jitted);
    Numbers numbers;
    for (const uint64_t bits : values.bits)
      numbers.push_back(is_float(values.dtype) ? std::bit_cast<double>(bits)
                                               : static_cast<double>(static_cast<int64_t>(bits)));
    return numbers;
  }
  return call.numbers(name);
}

// The longest way from a root to a leaf. Errors: User for nodes that lead back to themselves or that
// are not there.
int64_t depth_of(Call& call, const Forest& forest) {
  constexpr int64_t kNew = -1, kOpen = -2;  // open: on the way from the root
  Integers height(forest.mode.size(), kNew), way = forest.roots;
  while (!way.empty()) {
    poll_interruption();
    const auto i = static_cast<size_t>(way.back());
    if (i >= height.size()) call.wrong(fmt::format("there is no node {}", way.back()));
    if (height[i] == kNew && forest.mode[i] != kLeaf) {
      height[i] = kOpen;
      for (const int64_t below : {forest.yes[i], forest.no[i]}) {
        const auto next = static_cast<size_t>(below);
        if (next < height.size() && height[next] == kOpen)
          call.wrong("a tree's nodes lead in a circle");
        way.push_back(below);
      }
      continue;
    }
    if (height[i] == kNew) height[i] = 0;
    if (height[i] == kOpen)
      height[i] = 1 + std::max(height[static_cast<size_t>(forest.yes[i])],
                               height[static_cast<size_t>(forest.no[i])]);
    way.pop_back();
  }
  int64_t depth = 0;
  for (const int64_t root : forest.roots)
    depth = std::max(depth, height[static_cast<size_t>(root)]);
  return depth;
}

Tensor numbers_as(const Numbers& numbers, DType dtype) {
  if (dtype == DType::F64) return Tensor::from(numbers);
  return Tensor::from(std::vector<float>(numbers.begin(), numbers.end())).cast(dtype);
}

// Whether each sample takes the branch of each node that it is at.
Tensor takes_branch(const Forest& forest, const Tensor& x, const Tensor& node,
                    const Tensor& value) {
  const Tensor split = numbers_as(forest.split, x.dtype()).index_select(0, node);
  const Tensor mode = Tensor::from(forest.mode).index_select(0, node);
  const auto compared = [&](int64_t kind) {
    switch (kind) {
      case 0:
        return value <= split;
      case 1:
        return value < split;
      case 2:
        return value >= split;
      case 3:
        return value > split;
      case 4:
        return value == split;
      default:
        return value != split;
    }
  };
  Tensor result = Tensor(false);
  for (int64_t kind = 0; kind < kMember; ++kind)
    if (std::ranges::find(forest.mode, kind) != forest.mode.end())
      result = (mode == kind).where(compared(kind), result);
  size_t most = 0;
  for (const Numbers& members : forest.members) most = std::max(most, members.size());
  if (most > 0) {
    Numbers table;  // filled up with NaN, which equals nothing
    for (const Numbers& members : forest.members)
      for (size_t i = 0; i < most; ++i)
        table.push_back(i < members.size() ? members[i] : std::numeric_limits<double>::quiet_NaN());
    const Tensor rows = numbers_as(table, x.dtype())
                            .reshape({-1, static_cast<int64_t>(most)})
                            .index_select(0, node);
    result = (mode == kMember).where((rows == value.unsqueeze(-1)).any(-1), result);
  }
  if (std::ranges::find(forest.missing_is_yes, 1) == forest.missing_is_yes.end()) return result;
  const Tensor missing = Tensor::from(forest.missing_is_yes).index_select(0, node) != 0;
  return result | (value.isnan() & missing);
}

// The leaf of each sample (n, features) in each tree. Shape: (n, trees).
Tensor leaves_of(Call& call, const Forest& forest, const Tensor& x) {
  const auto trees = static_cast<int64_t>(forest.roots.size());
  const auto [least, most] = std::ranges::minmax(forest.feature);
  if (x.ndim() != 2 || least < 0 || most >= x.size(1))
    call.wrong(fmt::format("the nodes read features {} to {}, the input has the shape {}", least,
                           most, to_string(x.shape())));
  const Tensor root = Tensor::from(forest.roots).expand({x.size(0), trees});
  const Tensor feature = Tensor::from(forest.feature), yes = Tensor::from(forest.yes),
               no = Tensor::from(forest.no);
  const auto below = [&](const Tensor& node) {
    const Tensor value = x.gather(1, feature.index_select(0, node));
    return takes_branch(forest, x, node, value)
        .where(yes.index_select(0, node), no.index_select(0, node));
  };
  const int64_t depth = depth_of(call, forest);
  if (depth > kMostLevels)
    return scan([&](const auto& states, const auto&) { return ScanResult{{below(states[0])}, {}}; },
                {root.contiguous()}, {Tensor::arange(depth)})
        .state[0];
  Tensor node = root;
  for (int64_t left = depth; left > 0; --left) node = below(node).contiguous();
  return node;
}

// The votes of the leaves together, for each target. Shape: (n, targets).
Tensor scores_of(Call& call, const Forest& forest, const Tensor& x, std::string_view how) {
  const size_t nodes = forest.mode.size(), targets = static_cast<size_t>(forest.targets);
  require_host_elements({static_cast<int64_t>(nodes), forest.targets});
  if (forest.roots.empty() || nodes == 0) call.wrong("it has no trees");
  Numbers weight(nodes * targets, 0);
  std::vector<uint8_t> votes(nodes * targets, 0);
  for (const Vote& vote : forest.votes) {
    const auto place = static_cast<size_t>(vote.node) * targets + static_cast<size_t>(vote.target);
    if (vote.target < 0 || vote.target >= forest.targets || place >= weight.size())
      call.wrong(fmt::format("target {} is none of {}", vote.target, forest.targets));
    weight[place] += vote.weight;
    votes[place] = 1;
  }
  const Shape table{static_cast<int64_t>(nodes), forest.targets};
  const Tensor leaf = leaves_of(call, forest, x);
  const Tensor of_leaves =
      numbers_as(weight, x.dtype()).reshape(table).index_select(0, leaf);  // (n, trees, targets)
  if (how == "SUM") return of_leaves.sum(1);
  if (how == "AVERAGE") return of_leaves.sum(1) / static_cast<double>(forest.roots.size());
  const Tensor has_vote = Tensor::from(votes, table).index_select(0, leaf) != 0;
  const double none = how == "MIN" ? kInfinity : -kInfinity;
  const Tensor counted = has_vote.where(of_leaves, of_leaves.full_like(none));
  const Tensor chosen = how == "MIN" ? counted.min(1) : counted.max(1);
  return has_vote.any(1).where(chosen, chosen.zeros_like());
}

// Nodes and leaves in lists of their own: leaf i is node i after all others.
Forest forest_of_lists(Call& call) {
  Forest f;
  f.roots = call.integers("tree_roots");
  f.feature = call.integers("nodes_featureids");
  f.yes = call.integers("nodes_truenodeids");
  f.no = call.integers("nodes_falsenodeids");
  f.split = numbers_of(call, "nodes_splits");
  for (const double mode : numbers_of(call, "nodes_modes")) {
    if (!(mode >= 0 && mode <= kMember)) call.wrong(fmt::format("there is no mode {}", mode));
    f.mode.push_back(static_cast<int64_t>(mode));
  }
  const size_t inner = f.mode.size();
  if (f.feature.size() != inner || f.yes.size() != inner || f.no.size() != inner ||
      f.split.size() != inner)
    call.wrong("the lists of the nodes have different lengths");
  const auto yes_is_leaf = call.integers("nodes_trueleafs"),
             no_is_leaf = call.integers("nodes_falseleafs"),
             missing = call.integers("nodes_missing_value_tracks_true");
  const Numbers members = numbers_of(call, "membership_values");
  auto next = members.begin();
  f.members.resize(inner);
  for (size_t i = 0; i < inner; ++i) {
    if (at(yes_is_leaf, i, 0) != 0) f.yes[i] += static_cast<int64_t>(inner);
    if (at(no_is_leaf, i, 0) != 0) f.no[i] += static_cast<int64_t>(inner);
    f.missing_is_yes.push_back(at(missing, i, 0));
    if (f.mode[i] != kMember) continue;
    for (; next != members.end() && !std::isnan(*next); ++next) f.members[i].push_back(*next);
    if (next != members.end()) ++next;
  }
  const Numbers weights = numbers_of(call, "leaf_weights");
  const auto targets = call.integers("leaf_targetids");
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto own = static_cast<int64_t>(inner + i);
    f.feature.push_back(0);
    f.mode.push_back(kLeaf);
    f.yes.push_back(own);
    f.no.push_back(own);
    f.split.push_back(0);
    f.missing_is_yes.push_back(0);
    f.members.emplace_back();
    f.votes.push_back({own, at(targets, i, 0), weights[i]});
  }
  f.targets = call.integer("n_targets", 1);
  return f;
}

Values tree_ensemble(Call& call) {
  constexpr std::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                              "PROBIT"};
  const int64_t how = call.integer("aggregate_function", 1),
                transform = call.integer("post_transform", 0);
  const Tensor scores = scores_of(call, forest_of_lists(call), call[0], kAggregates[how]);
  return {post_transformed(call, kTransforms[transform], scores)};
}

// The older form: each node has the numbers of its tree and of itself within it, and votes come in
// lists with the prefix `votes`.
Forest forest_of_nodes(Call& call, const std::string& votes, const std::string& ids) {
  Forest f;
  f.feature = call.integers("nodes_featureids");
  f.split = numbers_of(call, "nodes_values");
  const auto tree = call.integers("nodes_treeids"), own = call.integers("nodes_nodeids"),
             yes = call.integers("nodes_truenodeids"), no = call.integers("nodes_falsenodeids"),
             missing = call.integers("nodes_missing_value_tracks_true");
  const auto modes = call.texts("nodes_modes");
  const size_t count = modes.size();
  if (f.feature.size() != count || f.split.size() != count || tree.size() != count ||
      own.size() != count || yes.size() != count || no.size() != count)
    call.wrong("the lists of the nodes have different lengths");
  std::map<std::pair<int64_t, int64_t>, int64_t> index;
  for (size_t i = 0; i < count; ++i) {
    if (index.empty() || tree[i] != tree[i - 1]) f.roots.push_back(static_cast<int64_t>(i));
    index.emplace(std::pair(tree[i], own[i]), static_cast<int64_t>(i));
  }
  if (index.size() != count) call.wrong("two nodes of a tree have one number");
  const auto node = [&](int64_t of_tree, int64_t id) {
    const auto found = index.find({of_tree, id});
    if (found == index.end()) call.wrong(fmt::format("tree {} has no node {}", of_tree, id));
    return found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    const auto* const mode = std::ranges::find(kModes, modes[i]);
    f.mode.push_back(mode - std::begin(kModes));
    const bool is_leaf = f.mode.back() == kLeaf;
    if (is_leaf) f.feature[i] = 0;
    f.yes.push_back(is_leaf ? static_cast<int64_t>(i) : node(tree[i], yes[i]));
    f.no.push_back(is_leaf ? static_cast<int64_t>(i) : node(tree[i], no[i]));
    f.missing_is_yes.push_back(at(missing, i, 0));
  }
  f.members.resize(count);
  const Numbers weights = numbers_of(call, votes + "_weights");
  const auto vote_tree = call.integers(votes + "_treeids"),
             vote_node = call.integers(votes + "_nodeids"), target = call.integers(ids);
  for (size_t i = 0; i < weights.size(); ++i)
    f.votes.push_back(
        {node(at(vote_tree, i, 0), at(vote_node, i, 0)), at(target, i, 0), weights[i]});
  return f;
}

Tensor with_base(Call& call, const Tensor& scores) {
  const Numbers base = numbers_of(call, "base_values");
  if (!base.empty() && base.size() != 1 && std::ssize(base) != scores.size(1))
    call.wrong(fmt::format("there are {} base_values for {} targets", base.size(), scores.size(1)));
  return base.empty() ? scores : scores + numbers_as(base, scores.dtype());
}

Values tree_ensemble_regressor(Call& call) {
  Forest forest = forest_of_nodes(call, "target", "target_ids");
  forest.targets = call.integer("n_targets", 1);
  const Tensor x = call[0].dtype() == DType::F64 ? call[0] : call[0].cast(DType::F32);
  const Tensor scores =
      with_base(call, scores_of(call, forest, x, call.text("aggregate_function", "SUM")));
  return {post_transformed(call, call.text("post_transform", "NONE"), scores).cast(DType::F32)};
}

// Trees of two classes may vote for one of them only. Then its score is a probability, of which the
// other class has the rest, if no vote is negative; else the other class has the negative score.
Values tree_ensemble_classifier(Call& call) {
  Forest forest = forest_of_nodes(call, "class", "class_ids");
  forest.targets = static_cast<int64_t>(std::max(call.texts("classlabels_strings").size(),
                                                 call.integers("classlabels_int64s").size()));
  const bool votes_once =
      forest.targets == 2 && std::ranges::all_of(forest.votes, [&](const Vote& vote) {
        return vote.target == forest.votes[0].target;
      });
  const std::string_view transform = call.text("post_transform", "NONE");
  const Tensor x = call[0].dtype() == DType::F64 ? call[0] : call[0].cast(DType::F32);
  if (!votes_once) {
    const Tensor scores = with_base(call, scores_of(call, forest, x, "SUM"));
    return {labels_of(call, scores.argmax(1), "classlabels_int64s"),
            post_transformed(call, transform, scores).cast(DType::F32)};
  }
  const bool is_probability =
      std::ranges::all_of(forest.votes, [](const Vote& vote) { return vote.weight >= 0; });
  for (Vote& vote : forest.votes) vote.target = 0;
  forest.targets = 1;
  Tensor score = scores_of(call, forest, x, "SUM");
  if (const Numbers base = numbers_of(call, "base_values"); !base.empty())
    score = score + base.back();
  const Tensor index = (score > (is_probability ? 0.5 : 0.0)).squeeze(1).cast(DType::I32);
  const Tensor other = is_probability && transform != "LOGISTIC" ? 1 - score : -score;
  const Tensor scores = cat({other, score}, 1);
  return {labels_of(call, index, "classlabels_int64s"),
          post_transformed(call, transform, scores).cast(DType::F32)};
}

constexpr OperatorRow kTreeRows[] = {
    {"TreeEnsemble", tree_ensemble, false, kMachineLearning},
    {"TreeEnsembleClassifier", tree_ensemble_classifier, false, kMachineLearning},
    {"TreeEnsembleRegressor", tree_ensemble_regressor, false, kMachineLearning},
};

}  // namespace

std::span<const OperatorRow> tree_operators() {
  return kTreeRows;
}

}  // namespace plugrad::onnx
