// Finds the step of training among the plans of a trace, and the role of each of its inputs.
#include "scale/program.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "ir/facts.h"
#include "ir/text/parser.h"
#include "ir/verifier.h"

namespace plugrad::tools::scale {
namespace {

/// Nodes that `from` leads to, by id.
std::vector<bool> reached_from(const Graph& graph, Id from) {
  std::vector<bool> is_reached(graph.size());
  is_reached[from] = true;
  for (Id id = from + 1; id < graph.size(); ++id)
    is_reached[id] =
        std::ranges::any_of(graph.sources(id), [&](Id source) { return is_reached[source]; });
  return is_reached;
}

const TracedPlan& chosen_plan(const std::vector<TracedPlan>& plans, std::optional<int64_t> id) {
  const auto assigned = [](const TracedPlan& plan) {
    return std::ranges::count_if(plan.replaces, [](int64_t input) { return input >= 0; });
  };
  const auto ids = [&] {
    std::vector<int64_t> all;
    for (const TracedPlan& plan : plans) all.push_back(plan.id);
    return all;
  };
  const TracedPlan* chosen = nullptr;
  for (const TracedPlan& plan : plans) {
    if (id ? plan.id != *id : assigned(plan) == 0) continue;
    // A jitted function's first run and its replays are two plans of one graph.
    const auto key = [&](const TracedPlan& p) { return std::pair(assigned(p), p.recorded.size()); };
    const bool is_better = chosen == nullptr || key(plan) > key(*chosen) ||
                           (plan.recorded == chosen->recorded && plan.measured.has_value());
    if (is_better) chosen = &plan;
  }
  if (id)
    require(chosen != nullptr, "[plan-scale] the trace has no plan {}; it has {}", *id,
            fmt::join(ids(), ", "));
  require(chosen != nullptr,
          "[plan-scale] no plan of the trace assigns to tensors, as a step of an optimiser on one "
          "device does; record a step of training without a mesh, or name a plan by --plan: {}",
          fmt::join(ids(), ", "));
  return *chosen;
}

/// The shape in which all readers of a stored value see it; its own if they differ.
ListId shape_read(const Graph& graph, const std::vector<Id>& nodes, Id buffer, ListId own) {
  ListId read = own;
  bool is_first = true;
  for (const Id id : nodes) {
    if (std::ranges::find(graph.sources(id), buffer) == graph.sources(id).end()) continue;
    const auto shape = static_cast<ListId>(graph[id].arg);
    if (graph[id].op != Op::Reshape || (!is_first && shape != read)) return own;
    read = shape;
    is_first = false;
  }
  return read;
}

/// Values may be stored flat and read by a reshape, which is dropped: its outermost dimension is to
/// be cut.
void shape_inputs(Program& program) {
  Graph shaped;
  Shapes shapes(program.graph);
  std::vector<Id> new_id(program.graph.size());
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(program.graph, program.roots);
  for (const Id id : nodes) {
    const Node& node = program.graph[id];
    std::vector<Id> sources;
    for (const Id source : program.graph.sources(id)) sources.push_back(new_id[source]);
    uint64_t arg = node.arg;
    if (node.op == Op::Buffer) {
      const auto shape = program.graph.list(shape_read(program.graph, nodes, id, shapes.id(id)));
      std::vector<int64_t> list(program.graph.arg_list(id).begin(),
                                program.graph.arg_list(id).begin() + 2);
      list.insert(list.end(), shape.begin(), shape.end());
      arg = shaped.list(list);
    } else if (op_info(node.op).arg == ArgKind::List) {
      arg = shaped.list(program.graph.arg_list(id));
    }
    const bool is_done =
        node.op == Op::Reshape && shaped[sources[0]].op == Op::Buffer &&
        std::ranges::equal(program.graph.arg_list(id), shaped.arg_list(sources[0]).subspan(2));
    new_id[id] = is_done ? sources[0] : shaped.add(node.op, node.dtype, sources, arg);
  }
  for (Id& root : program.roots) root = new_id[root];
  program.graph = std::move(shaped);
}

/// Takes the inputs of the graph, in the order of their numbers.
void add_leaves(Program& program, std::span<const int64_t> replaces) {
  Shapes shapes(program.graph);
  Reachable reachable;
  uint32_t device = 0;
  for (const Id id : reachable.from(program.graph, program.roots)) {
    const Op op = program.graph[id].op;
    require(op != Op::Shard && op != Op::Collective,
            "[plan-scale] the traced program is sharded; record it on one device, without a mesh");
    if (op != Op::Buffer) continue;
    require(device == 0 || buffer_device(program.graph, id) == device,
            "[plan-scale] the traced step has inputs on several devices; record it on one");
    device = buffer_device(program.graph, id);
    const uint64_t number = buffer_number(program.graph, id);
    ensure(number < program.graph.size(), "input {} of a recorded graph", number);
    if (program.leaves.size() <= number) program.leaves.resize(number + 1);
    program.leaves[number].node = id;
    program.leaves[number].shape.assign(shapes[id].begin(), shapes[id].end());
    program.leaves[number].dtype = program.graph[id].dtype;
  }
  for (size_t root = 0; root < std::min(replaces.size(), program.roots.size()); ++root)
    if (const int64_t input = replaces[root];
        input >= 0 && static_cast<size_t>(input) < program.leaves.size())
      program.leaves[static_cast<size_t>(input)].root = root;
}

/// The results that replace nothing, such as the loss; all results if there is none.
std::vector<Id> results_of(const Program& program) {
  std::vector<bool> is_assigned(program.roots.size());
  for (const Leaf& leaf : program.leaves)
    if (leaf.root) is_assigned[*leaf.root] = true;
  std::vector<Id> results;
  for (size_t root = 0; root < program.roots.size(); ++root)
    if (!is_assigned[root]) results.push_back(program.roots[root]);
  return results.empty() ? program.roots : results;
}

/// The nodes that depend on an input.
struct Reach {
  std::vector<bool> nodes;
  bool is_reduced = false;    ///< to a reduction
  bool is_in_result = false;  ///< to a result that replaces nothing
};

Reach reach_of(const Program& program, std::span<const Id> results, const Leaf& leaf) {
  Reach reach{reached_from(program.graph, leaf.node)};
  for (Id id = leaf.node; id < program.graph.size(); ++id)
    reach.is_reduced |= reach.nodes[id] && program.graph[id].op == Op::Reduce;
  reach.is_in_result = std::ranges::any_of(results, [&](Id result) { return reach.nodes[result]; });
  return reach;
}

/// A parameter's value goes through a reduction to a result that replaces nothing, such as the
/// loss. State goes to its own next value and to that of its parameter.
void find_parameters_and_state(Program& program) {
  const std::vector<Id> results = results_of(program);
  std::vector<std::pair<Leaf*, Reach>> others;
  for (Leaf& leaf : program.leaves) {
    if (!leaf.root || leaf.shape.empty()) continue;
    Reach reach = reach_of(program, results, leaf);
    if (reach.is_reduced && reach.is_in_result)
      leaf.role = Role::Parameter;
    else
      others.emplace_back(&leaf, std::move(reach));
  }
  for (auto& [leaf, reach] : others)
    for (size_t i = 0; i < program.leaves.size(); ++i) {
      const Leaf& parameter = program.leaves[i];
      if (parameter.role != Role::Parameter || parameter.shape != leaf->shape) continue;
      if (!reach.nodes[program.roots[*parameter.root]]) continue;
      leaf->role = Role::State;
      leaf->parameter = i;
    }
}

/// The inputs with one size in their first dimension.
struct Alike {
  int64_t size = 0;
  size_t count = 0;
  uint64_t bytes = 0;

  /// More inputs are the batch; of as many, those whose size the others have times another one, of
  /// a merged dimension; else the larger inputs.
  bool is_better(const Alike& other) const {
    if (count != other.count) return count > other.count;
    if (other.size % size == 0) return true;
    return size % other.size != 0 && bytes > other.bytes;
  }
};

bool is_random_key(const Leaf& leaf) {
  return leaf.dtype == DType::U32 && leaf.shape == std::vector<int64_t>{2};
}

/// The batch reaches a result, too, and is not assigned. Its first dimensions may be merged: those
/// of indices, or of an input of as many elements.
void find_batch(Program& program, std::optional<int64_t> given) {
  const std::vector<Id> results = results_of(program);
  std::map<int64_t, Alike> by_size;
  for (const Leaf& leaf : program.leaves) {
    if (leaf.node == kNoId || leaf.root || leaf.shape.empty() || leaf.shape[0] < 2) continue;
    if (is_random_key(leaf) || !reach_of(program, results, leaf).is_in_result) continue;
    Alike& alike = by_size[leaf.shape[0]];
    alike.size = leaf.shape[0];
    ++alike.count;
    alike.bytes += leaf.bytes();
  }
  Alike best;
  for (const auto& [size, alike] : by_size)
    if (best.count == 0 || alike.is_better(best)) best = alike;
  if (given)
    require(
        by_size.contains(*given),
        "[plan-scale] --batch {}: no input that the loss depends on, and that the step does not "
        "assign, has this size in its first dimension",
        *given);
  program.batch = given ? *given : best.size;
  std::set<int64_t> counts;  // elements of inputs that are the batch
  const auto take = [&](const auto& is_batch) {
    for (Leaf& leaf : program.leaves) {
      if (leaf.node == kNoId || leaf.root || leaf.shape.empty() || is_random_key(leaf)) continue;
      if (!is_batch(leaf)) continue;
      leaf.role = Role::Batch;
      counts.insert(element_count(leaf.shape));
    }
  };
  take([&](const Leaf& leaf) { return leaf.shape[0] == program.batch; });
  take([&](const Leaf& leaf) {
    return program.batch > 1 && leaf.shape[0] % program.batch == 0 &&
           (is_integer(leaf.dtype) || counts.contains(element_count(leaf.shape)));
  });
}

void set_roles(Program& program, const std::map<size_t, Role>& roles) {
  for (const auto& [number, role] : roles) {
    require(number < program.leaves.size(),
            "[plan-scale] --role: the step has no input {}; it has {}", number,
            program.leaves.size());
    Leaf& leaf = program.leaves[number];
    require(role != Role::State, "[plan-scale] --role: say parameter, batch or other");
    require(role != Role::Batch || !leaf.shape.empty(),
            "[plan-scale] --role: input {} is one number, which is no batch", number);
    leaf.role = role;
    leaf.parameter.reset();
  }
}

/// A hash of what a value is used for, some nodes far.
std::vector<uint64_t> hashes_of_uses(const Graph& graph, const std::vector<Id>& nodes) {
  // Tells the four matrices of attention apart, and takes the first and the last blocks of a
  // transformer as one with the others: found with that of bench/scale/train.cpp.
  constexpr int kDistance = 10;
  Shapes shapes(const_cast<Graph&>(graph));  // adds no nodes
  std::vector<uint64_t> own(graph.size()), now;
  for (const Id id : nodes) {
    std::vector<int64_t> words = {static_cast<int64_t>(graph[id].op)};
    words.insert(words.end(), shapes[id].begin(), shapes[id].end());
    own[id] = hash64(std::as_bytes(std::span(words)));
  }
  now = own;
  for (int step = 0; step < kDistance; ++step) {
    std::vector<uint64_t> next = own;
    for (const Id id : nodes)
      for (size_t i = 0; i < graph.sources(id).size(); ++i) {
        // Sources of commutative ops are in the order of their ids.
        const uint64_t words[] = {now[id], is_commutative(graph[id].op) ? 0 : i};
        next[graph.sources(id)[i]] += hash64(std::as_bytes(std::span(words)));  // in any order
      }
    now = std::move(next);
  }
  return now;
}

void make_groups(Program& program) {
  Reachable reachable;
  const auto hashes = hashes_of_uses(program.graph, reachable.from(program.graph, program.roots));
  std::map<std::tuple<std::vector<int64_t>, DType, uint64_t>, size_t> known;
  for (size_t i = 0; i < program.leaves.size(); ++i) {
    Leaf& leaf = program.leaves[i];
    if (leaf.role != Role::Parameter) continue;
    const auto [at, is_new] =
        known.try_emplace({leaf.shape, leaf.dtype, hashes[leaf.node]}, program.groups.size());
    if (is_new) program.groups.push_back({leaf.shape, leaf.dtype, {}});
    leaf.group = at->second;
    program.groups[at->second].leaves.push_back(i);
    program.groups[at->second].bytes += leaf.bytes();
  }
}

/// An optimiser detaches the parameter and the gradient, and moves both to where the state lies.
void find_moves_to_state(Program& program) {
  Shapes shapes(program.graph);
  std::map<Id, size_t> moves;
  const auto walk = [&](Id root, size_t state) {
    while (program.graph[root].op == Op::Contiguous || program.graph[root].op == Op::Detach)
      root = program.graph.sources(root)[0];
    Reachable reachable;
    const std::vector<int64_t>& shape = program.leaves[state].shape;
    const auto stops = [&](Id id) { return !is_alu(program.graph[id].op); };
    for (const Id id : reachable.from(program.graph, std::span(&root, 1), stops))
      if (program.graph[id].op == Op::Detach && std::ranges::equal(shapes[id], shape))
        moves.emplace(id, state);
  };
  for (size_t i = 0; i < program.leaves.size(); ++i) {
    const Leaf& leaf = program.leaves[i];
    if (leaf.role != Role::State) continue;
    walk(program.roots[*leaf.root], i);
    walk(program.roots[*program.leaves[*leaf.parameter].root], i);
  }
  program.to_state.assign(moves.begin(), moves.end());
}

}  // namespace

const char* name_of(Role role) {
  constexpr const char* kNames[] = {"parameter", "state", "batch", "other"};
  return kNames[static_cast<size_t>(role)];
}

uint64_t Leaf::bytes() const {
  return node == kNoId ? 0 : static_cast<uint64_t>(element_count(shape)) * size_of(dtype);
}

Program program_of(const std::vector<TracedPlan>& plans, const ProgramOptions& options) {
  const TracedPlan& plan = chosen_plan(plans, options.plan);
  Program program;
  program.plan = plan.id;
  program.measured = plan.measured;
  program.roots = parse(program.graph, plan.recorded);
  verify(program.graph, program.roots, Spec::Tensor, "the trace");
  shape_inputs(program);
  add_leaves(program, plan.replaces);
  find_parameters_and_state(program);
  find_batch(program, options.batch);
  set_roles(program, options.roles);
  make_groups(program);
  find_moves_to_state(program);
  return program;
}

}  // namespace plugrad::tools::scale
