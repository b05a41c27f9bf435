// Values on a mesh: the session knows each by one node and one Value, and computes the nodes of its
// parts (sharding/lowering.h).
#include <algorithm>
#include <map>

#include "base/binding.h"
#include "base/check.h"
#include "base/settings.h"
#include "base/trace/trace.h"
#include "distributed/backend.h"
#include "engine/recording/call_observer.h"
#include "engine/recording/recorded_functions.h"
#include "engine/session_state.h"
#include "engine/views.h"

namespace plugrad::engine {
namespace {

using Guard = std::lock_guard<InterpreterAwareMutex>;

ValuePtr join_values(const sharding::Mesh& mesh, DType dtype, sharding::Spec spec,
                     std::vector<ValuePtr> parts) {
  auto value = std::make_shared<Value>();
  value->dtype = dtype;
  value->device = mesh.device;
  value->sharded =
      std::make_shared<const ShardedParts>(ShardedParts{std::move(spec), std::move(parts)});
  return value;
}

/// The parts of a value are of the operation and the line that made it.
void note_parts(SessionState& state, Id whole, Id begin, Id end) {
  if (tracing()) state.operations.claim(begin, end, state.operations.of(whole));
  if (has_places()) state.places.claim(begin, end, state.places.of(whole));
}

}  // namespace

uint32_t Session::mesh_number(sharding::Mesh mesh) {
  const Guard guard(mutex_);
  if (!lowering_) make_lowering();
  return state_->devices.number(std::move(mesh));
}

const sharding::Mesh* Session::mesh(uint32_t number) const {
  return number == 0 || !state_->devices.has_meshes() ? nullptr : state_->devices.mesh(number);
}

uint32_t Session::device_of(uint32_t number) const {
  const sharding::Mesh* const on = mesh(number);
  return on == nullptr ? number : on->home;
}

void Session::make_lowering() {
  lowering_ = std::make_unique<sharding::Lowering>(
      graph_, *shapes_, *devices_,
      sharding::Owner{
          .mesh = [this](uint32_t device) { return mesh(device); },
          .is_stored = [this](Id node) { return is_known_to_lowering(node); },
          .stored_spec = [this](Id node) { return state_->values.find(node)->sharded->spec; },
          .stored_parts = [this](Id node) { return buffers_of_parts(node); },
          .note_made = [this](Id node,
                              Id first) { note_parts(*state_, node, first, graph_.size()); },
          .has_meshes_of_some = [this] { return state_->devices.has_meshes_of_some(); }});
}

bool Session::is_known_to_lowering(Id node) const {
  return (*devices_)[node] != 0 && state_->values.find(node) != nullptr;
}

std::vector<Id> Session::buffers_of_parts(Id node) {
  const ValuePtr value = state_->values.share(node);
  const sharding::Mesh& on = *mesh(value->device);
  const std::vector<int64_t> whole(shape(node).begin(), shape(node).end());
  std::vector<Id> buffers(on.size(), kNoId);
  for (uint32_t position = 0; position < on.size(); ++position) {
    const std::vector<ValuePtr>& parts = value->sharded->parts;
    const ValuePtr& part = parts[position];
    if (!part) continue;
    const auto same = static_cast<size_t>(std::ranges::find(parts, part) - parts.begin());
    if (same < position) {  // one value serves several positions of a device
      buffers[position] = buffers[same];
      continue;
    }
    const auto local = sharding::local_shape(on, value->sharded->spec, whole, position);
    buffers[position] = add_buffer(graph_, local, part->dtype, part->device);
    state_->values.set(buffers[position], part);
  }
  return buffers;
}

const sharding::Spec& Session::spec(Id node) {
  const Guard guard(mutex_);
  return lowering_->spec(node, settings().fast_math);
}

bool Session::shows_source(Id node) {
  const Op op = graph_[node].op;
  return shows_the_same_elements(op) && (op != Op::Reshape || !is_on_mesh(node));
}

std::string Session::describe_sharding(Id node) {
  const Guard guard(mutex_);
  return is_on_mesh(node) ? lowering_->describe(node, settings().fast_math) : std::string();
}

/// The nodes to compute for some roots, by the device that computes constants, and the roots that
/// each of them is a part of.
struct Session::LocalRoots {
  struct Root {
    const sharding::Mesh* mesh = nullptr;  // null: one device, one part
    sharding::Spec spec;
    std::vector<std::pair<uint32_t, size_t>> parts;  // by position: device, index; or kNone
  };
  static constexpr size_t kNone = SIZE_MAX;
  std::map<uint32_t, std::vector<Id>> nodes;
  std::vector<Root> roots;

  std::pair<uint32_t, size_t> add(uint32_t device, Id node) {
    std::vector<Id>& all = nodes[device];
    const auto known = std::ranges::find(all, node);
    const auto index = static_cast<size_t>(known - all.begin());
    if (known == all.end()) all.push_back(node);
    return {device, index};
  }
};

// Collectives that other processes need and this one does not.
void Session::add_unread_collectives(LocalRoots& local) {
  const std::vector<Id>& all = lowering_->between_processes();
  if (all.empty()) return;
  Reachable reachable;
  const auto ends = [&](Id node) { return is_known_to_lowering(node); };
  std::vector<Id> nodes;
  for (const auto& [device, group] : local.nodes)
    nodes.insert(nodes.end(), group.begin(), group.end());
  const std::vector<Id> reached = reachable.from(graph_, nodes, ends);
  for (const Id collective : all)
    if (!std::ranges::binary_search(reached, collective)) local.add(0, collective);
}

Session::LocalRoots Session::local_roots(std::span<const Id> roots, uint32_t default_device) {
  LocalRoots local;
  std::vector<Id> placed;  // roots that are computed of constants alone get a device
  for (const Id root : roots) {
    const bool is_constant = (*devices_)[root] == 0 && mesh(default_device) != nullptr;
    placed.push_back(is_constant ? graph_.add(Op::Copy, graph_[root].dtype, {root}, default_device)
                                 : root);
  }
  for (const auto& lowered : lowering_->lower(placed, settings().fast_math)) {
    const uint32_t own = (*devices_)[placed[local.roots.size()]];
    const sharding::Mesh* on = mesh(own);
    LocalRoots::Root made{on, lowered.spec, {}};
    for (uint32_t position = 0; position < lowered.parts.size(); ++position) {
      const Id part = lowered.parts[position];
      if (part == kNoId) {
        made.parts.emplace_back(0, LocalRoots::kNone);
        continue;
      }
      const bool is_constant = (*devices_)[part] == 0;
      const uint32_t device = on ? on->places[position].device : default_device;
      made.parts.push_back(local.add(is_constant && on ? device : 0, part));
    }
    local.roots.push_back(std::move(made));
  }
  add_unread_collectives(local);
  return local;
}

// A process does not know what meshes of others read.
void Session::note_reads() {
  if (lowering_->between_processes().empty() || state_->devices.has_meshes_of_some()) return;
  for (const uint64_t number : std::exchange(state_->reads, {}))
    RecordedFunctions::of_this_thread().read(number);
}

std::vector<ValuePtr> Session::compute(std::span<const Id> roots, uint32_t default_device) {
  if (!lowering_) return compute_local(roots, default_device);
  // Values of former steps, such as gathered parameters, make room before new ones come.
  if (state_->maybe_garbage && distributed::backend() != nullptr && locks_held_ == 0)
    forget_unreached();
  const LocalRoots local = local_roots(roots, default_device);
  note_reads();
  std::map<uint32_t, std::vector<ValuePtr>> computed;
  const uint32_t here = mesh(default_device) == nullptr ? default_device : this->default_device();
  for (const auto& [device, nodes] : local.nodes)
    computed[device] = compute_local(nodes, device == 0 ? here : device);
  std::vector<ValuePtr> values;
  for (size_t i = 0; i < roots.size(); ++i) {
    const LocalRoots::Root& root = local.roots[i];
    std::vector<ValuePtr> parts;
    for (const auto& [device, index] : root.parts)
      parts.push_back(index == LocalRoots::kNone ? nullptr : computed.at(device)[index]);
    if (root.mesh == nullptr) {
      values.push_back(parts[0]);
      continue;
    }
    values.push_back(join_values(*root.mesh, graph_[roots[i]].dtype, root.spec, parts));
    if (CallObserver* observer = CallObserver::active()) observer->joined(values.back());
  }
  lowering_->clear();  // the roots are stored from now on
  return values;
}

// As missing_roots, with the parts of roots on a mesh instead of the roots.
Session::RootGroups Session::missing_local_roots(States states) {
  RootGroups groups = missing_roots(states);
  if (!lowering_) return groups;
  RootGroups local;
  for (const auto& [device, roots] : groups)
    for (const auto& [part_device, nodes] :
         local_roots(roots, device == 0 ? default_device() : device).nodes) {
      std::vector<Id>& all = local[part_device == 0 ? device : part_device];
      all.insert(all.end(), nodes.begin(), nodes.end());
    }
  lowering_->clear();  // the caller may replace values
  return local;
}

/// The value of all elements of the state, on the first device of this process; null if the state
/// is on no mesh.
StatePtr Session::on_one_device(TensorState& state) {
  const Guard guard(mutex_);
  const uint32_t own = (*devices_)[state.node];
  const sharding::Mesh* const on = mesh(own == 0 ? state.device : own);
  if (on == nullptr) return nullptr;
  if (own == 0) return make(state.node, device_of(on->device));  // of constants alone
  realize(state);
  const uint32_t device = device_of(on->device);
  StatePtr whole =
      make(graph_.add(Op::Copy, graph_[state.node].dtype, {state.node}, device), device);
  whole->recorded = state.recorded;
  return whole;
}

ValuePtr Session::readable_parts(Id node) {
  while (!state_->values.find(node) && shows_source(node)) node = graph_.sources(node)[0];
  if (state_->values.find(node)) return state_->values.share(node);
  const Id root = graph_.add(Op::Contiguous, graph_[node].dtype, {node});
  if (!state_->values.find(root)) {
    state_->values.set(root, compute(std::span(&root, 1), 0)[0]);
    state_->maybe_garbage = state_->maybe_unreached_value = true;  // the value has no holder
  }
  return state_->values.share(root);
}

StatePtr Session::join_parts(const sharding::Mesh& mesh, const sharding::Spec& spec,
                             std::span<const int64_t> shape, States parts) {
  const Guard guard(mutex_);
  realize(parts);
  std::vector<ValuePtr> values(mesh.size());
  size_t next = 0;
  for (uint32_t position = 0; position < mesh.size(); ++position)
    if (mesh.is_here(position)) values[position] = readable_value(*parts[next++]);
  ensure(next != 0, "the parts of a mesh are joined that has none in this process");
  const DType dtype = values[mesh.first_here()]->dtype;
  const Id node = add_buffer(graph_, shape, dtype, mesh.device);
  state_->values.set(node, join_values(mesh, dtype, spec, std::move(values)));
  return make(node, mesh.device);
}

std::vector<StatePtr> Session::parts_of(TensorState& state) {
  const Guard guard(mutex_);
  realize(state);
  const ValuePtr value = readable_parts(state.node);
  const sharding::Mesh& on = *mesh(value->device);
  const std::vector<int64_t> whole(shape(state.node).begin(), shape(state.node).end());
  std::vector<StatePtr> parts;
  for (uint32_t position = 0; position < on.size(); ++position) {
    const ValuePtr& part = value->sharded->parts[position];
    if (!part) continue;
    const auto local = sharding::local_shape(on, value->sharded->spec, whole, position);
    const Id node = add_buffer(graph_, local, part->dtype, part->device);
    state_->values.set(node, part);
    parts.push_back(make(node, part->device));
  }
  return parts;
}

}  // namespace plugrad::engine
