// The session: process-wide state that tensors share. Owns the tensor graph and the values of its
// nodes, and computes values for nodes.
//
// Threads: every member may be called from any thread. Code that uses node ids across more than one
// call (reads a state's node, adds nodes, makes a state) must hold a Session::Lock; ids are
// renumbered only when no Lock is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/binding.h"
#include "base/internal.h"
#include "engine/computed_nodes.h"
#include "engine/execute/loop_body.h"
#include "engine/functions.h"
#include "engine/kernels/user_kernels.h"
#include "engine/plan/index_ranges.h"
#include "engine/report.h"
#include "engine/tensor_state.h"
#include "ir/extents.h"
#include "ir/facts.h"
#include "ir/graph.h"
#include "plugrad/error.h"
#include "sharding/lowering.h"

namespace plugrad::schedule {
struct Options;
struct Plan;
struct ScheduledGraph;
}  // namespace plugrad::schedule

namespace plugrad::runtime {
class Buffer;
}

namespace plugrad::engine {

using detail::TensorState;
class CutCall;
class NodeOrigins;
struct SessionState;
struct KernelOptions;
struct KernelRequest;
class LengthHistory;
struct CanonicalScratch;
struct LengthForm;
struct LengthPlan;
struct LengthSample;
struct NumberSite;
struct PlanRequest;
struct ReadyPlan;
class DistinctRoots;
class PendingSizeChecks;
struct Value;
using StatePtr = std::shared_ptr<TensorState>;
using States = std::span<TensorState* const>;

/// The nodes of a view after a write to its base.
struct ShownNode {
  TensorState* view;
  Id base = kNoId, moved = kNoId;  // the base's elements that it shows; kNoId: as they are
  Id node = kNoId;                 // kNoId: it stands alone
};

/// A process-wide unique number, for nodes that must not be merged with equal ones.
uint64_t new_identity();

/// The state of the random generator: the next word is number `counter` of the stream of `seed`.
struct RandomState {
  uint64_t seed = 0;
  uint64_t counter = 0;
};

class Session {
 public:
  /// The process's session; made on first use, never destroyed.
  PLUGRAD_INTERNAL static Session& current();

  /// Exclusive use of the session by this thread; locks may nest. Ids stay valid while one is held.
  class Lock {
   public:
    PLUGRAD_INTERNAL explicit Lock(Session& session = Session::current());
    PLUGRAD_INTERNAL ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Session& session_;
  };

  // The graph, under a Lock.
  Graph& graph() { return graph_; }
  Shapes& shapes() { return *shapes_; }
  Devices& devices() { return *devices_; }
  /// The graph with its extents; callers use it only if has_bounds().
  BoundedGraph bounded() { return {graph_, *shapes_, *extents_}; }
  Extents* bounded_extents() { return extents_.get(); }
  /// Whether any tensor may have a Counted axis (ir/extents.h).
  bool has_bounds() const { return has_bounds_; }
  bool is_counted(Id node) { return has_bounds_ && extents_->is_counted(node); }
  const std::vector<Extent>& extents_of(Id node) { return (*extents_)[node]; }
  /// `x` with that extent along the axis.
  Id bound(Id x, int64_t axis, Id count, int64_t least);
  RandomState& random() { return random_; }
  FunctionTable& functions() { return functions_; }
  UserKernelTable& user_kernels() { return user_kernels_; }
  IndexRangeTable& index_ranges() { return index_ranges_; }
  LoopTable& loops() { return loops_; }
  std::span<const int64_t> shape(Id node) { return (*shapes_)[node]; }

  // Operations of nodes, for traces (base/trace/call_site.h), and places, for errors
  // (base/binding.h).
  /// The nodes from `first` on are of the operation, except those noted before.
  void note_operation(Id first, uint32_t operation);
  uint32_t operation(Id node) const;
  PLUGRAD_INTERNAL void note_place(Id first, uint32_t place);
  PLUGRAD_INTERNAL uint32_t place(Id node) const;

  // States.
  PLUGRAD_INTERNAL StatePtr make(Id node, uint32_t device = 0);
  /// The state denotes `node` from now on and is pending until it is realised.
  void assign(TensorState& state, Id node);
  /// Replaces the state's node by one of the same value, e.g. a stored one.
  void denote(TensorState& state, Id node);
  /// Makes room for denote() of any node there is now, and for set_requires_grad() if the state is
  /// to be a leaf, which then need no memory.
  void prepare_to_denote(TensorState& state, bool is_leaf);
  /// A node of its own with the value, for a leaf of the tape, on which no other leaf depends.
  Id leaf_node(Id node);

  // Views (views/linked_views.cpp). Functions of tensors write to them with tensor::write().
  /// Makes `view`, which was just recorded by moving elements of `of`, a view of it or of its base.
  PLUGRAD_INTERNAL void link_view(TensorState& view, TensorState& of);
  /// The state becomes a value of its own, of which nothing is a view.
  PLUGRAD_INTERNAL void make_value(TensorState& state);
  /// The movements from the base to the view.
  PLUGRAD_INTERNAL std::vector<ViewStep> path_of(const TensorState& view);
  /// The nodes of all views of a base, and of their views, once the base denotes `node`. Makes room for
  /// show(), so that a write is done as a whole or not at all.
  std::vector<ShownNode> nodes_of_views(TensorState& base, Id node);
  /// The nodes of a detached view after a write of `node`, and of its views: gradients flow to `node`,
  /// not to the base. Empty if no gradient flows.
  std::vector<ShownNode> nodes_with_gradient(TensorState& view, Id node);
  void show(std::span<const ShownNode> shown) noexcept;
  /// A view that stood alone, and was assigned or its base was, shows the base again.
  void catch_up(TensorState& view);
  /// The views of a lost base get a base that denotes `node`, and hold it.
  void restore_base(TensorState& view, Id node);
  /// Whether both may show an element of one base (views/overlap.h).
  bool may_overlap(const TensorState& a, const TensorState& b);
  std::vector<ViewStep> path_from_outermost(const TensorState& state);
  /// Number of the state that was made last.
  uint64_t states_made();

  /// Marks or unmarks a leaf of the tape.
  void set_requires_grad(TensorState& state, bool on);
  /// Live states marked with requires_grad.
  std::vector<TensorState*> marked_states();
  /// The distinct nodes whose gradients add up to the leaf's.
  static std::vector<Id> leaf_nodes(const TensorState& leaf);
  /// backward() of the state's node was called: the state is a constant in what is recorded later,
  /// and the nodes below no longer belong to values that marked tensors have lost.
  void end_tape(TensorState& state);
  /// Nodes of states that are no part of the loss, nor the loss a part of them: equal expressions
  /// share nodes.
  std::vector<bool> nodes_beside(Id loss);
  /// The node was recorded, perhaps again: undoes what end_tape() did for it.
  void resume_tape(Id node);
  /// Whether a gradient can flow through the node: a marked state's node or, except through Detach,
  /// a float node with such an ancestor.
  bool is_tracked(Id node);
  /// Computes the state's value and cuts it from its inputs.
  void cut_tape(TensorState& state);
  size_t live_states();

  // Devices. Numbers start at 1 and stay. Names follow the grammar of
  // runtime/discovery/selection.h; a device is opened when something runs on it.
  uint32_t device_number(std::string_view name);
  std::string device_name(uint32_t number);  ///< 0: the default device's
  /// The registry's current default; loads its plugin on first use. Errors: User, with the load
  /// records.
  PLUGRAD_INTERNAL uint32_t default_device();
  /// Whether kernels of the default device, which must be no mesh, have the operation in the dtype.
  PLUGRAD_INTERNAL bool claims(Op op, DType dtype);
  /// Sets the calling thread's default, 0 for none; returns the one before.
  static uint32_t set_default_of_thread(uint32_t device);
  void set_default_device(std::string_view selection);  ///< empty: the registry's rule
  std::string add_plugin(const std::string& path);      ///< returns its device name

  // Sharded values (sharding/).
  /// The number of a mesh: the device of values on it.
  uint32_t mesh_number(sharding::Mesh mesh);
  /// Null if the number is that of a device, or 0.
  const sharding::Mesh* mesh(uint32_t number) const;
  /// The number of the first device that a mesh has in this process; that of a device is itself.
  uint32_t device_of(uint32_t number) const;
  /// How a node on a mesh lies on it. Errors: as sharding::propagate.
  const sharding::Spec& spec(Id node);
  std::string describe_sharding(Id node);  ///< empty if the node is on no mesh
  /// A value on the mesh, of which the states are the parts of this process, in order.
  StatePtr join_parts(const sharding::Mesh& mesh, const sharding::Spec& spec,
                      std::span<const int64_t> shape, States parts);
  /// The state's part on each position of this process.
  std::vector<StatePtr> parts_of(TensorState& state);

  // Values from the host.
  /// A new Buffer node that holds `bytes` (row-major). The device is first used when a kernel needs
  /// the value.
  Id store_host(std::span<const int64_t> shape, DType dtype, uint32_t device,
                std::span<const std::byte> bytes);
  /// As store_host without a copy: `owner` keeps `bytes` valid until they are on the device.
  Id store_shared(std::span<const int64_t> shape, DType dtype, uint32_t device,
                  std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// A Buffer node without a value, for recording the body of a loop.
  PLUGRAD_INTERNAL Id placeholder(std::span<const int64_t> shape, DType dtype, uint32_t device);
  /// Another Buffer node of the same value; kNoId if the node is no Buffer that has one.
  Id second_buffer(Id node);
  /// The values of tensors with pending assignments.
  std::vector<Id> pending_nodes();

  // Realising.
  bool is_realized(const TensorState& state);
  /// Computes every state that has no value yet, in one plan if devices allow. A movement of a
  /// stored value costs nothing. Errors leave every tensor unchanged.
  void realize(States states);
  void realize(TensorState& state);
  /// The same, with all pending assignments.
  void realize_with_pending(States states);
  /// While one lives, this thread records an optimiser's step: assignments are undone if the step
  /// cannot be recorded or computed.
  class StepScope {
   public:
    StepScope();
    ~StepScope();
    StepScope(const StepScope&) = delete;
    StepScope& operator=(const StepScope&) = delete;
    /// Without step_realize(): what was assigned stays.
    void done() const noexcept;

   private:
    bool outer_;
    int exceptions_;
  };
  /// Computes the recorded step in one plan: its assignments, other pending ones and the losses
  /// noted by backward(); on out of memory, without the other pending ones. Errors leave every
  /// tensor as it was before the step.
  void step_realize();
  /// backward() notes its loss, so that the step's plan computes it with the gradients.
  void note_loss(const StatePtr& loss);

  /// Copies the value out, realising it first. Errors: User when `out` has another size.
  PLUGRAD_INTERNAL void read(TensorState& state, std::span<std::byte> out);
  /// The value if the host has it, converted to the dtype's storage form: a constant, host values
  /// that no kernel has read yet, or the size of an axis. Runs nothing.
  std::optional<std::vector<std::byte>> peek(const TensorState& state);
  /// The single element of a state with one element.
  double item(TensorState& state);
  int64_t item_int(TensorState& state);
  /// The shape of read()'s result for a state with counted axes; reads the counts. Errors: User if
  /// a count does not lie within its axis.
  std::vector<int64_t> counted_shape(TensorState& state);

  /// The kernels that realising the states would run, compiled but not run.
  std::vector<KernelReport> kernels_of(States states, PlanWork* work = nullptr);
  /// The same before code generation: without the facts that codegen and compiling add.
  std::vector<KernelReport> planned_kernels_of(States states);
  /// Source texts of their distinct kernels, planned and generated anew but not compiled.
  std::vector<std::string> sources_of(States states);

  Statistics statistics();
  void reset_statistics();

  // Memory.
  /// Drops the values that no live state reaches, and renumbers the graph. The calling thread must
  /// hold no Lock.
  void collect();
  /// Drops plans, compiled kernels and the plans' memory; for tests and benchmarks.
  void clear_caches();

  // For recording and replaying calls (jit/), which runs plans on values that it holds itself.
  InterpreterAwareMutex& mutex() { return mutex_; }
  SessionState& state() { return *state_; }
  /// A new Buffer node of `graph` without a value.
  Id add_buffer(Graph& graph, std::span<const int64_t> shape, DType dtype, uint32_t device);
  /// Whether the node's value has the elements of its source's in the same order. A reshaped value
  /// on a mesh has parts of another shape.
  bool shows_source(Id node);
  /// The bits of a node whose elements all equal one constant.
  std::optional<uint64_t> constant_value(Id node);
  /// The state's elements in row-major order, computed or copied if needed.
  std::shared_ptr<Value> readable_value(TensorState& state);
  /// A value for each root. On out of memory, frees memory and retries. `numbers`: set_numbers().
  using Values = std::vector<std::shared_ptr<Value>>;
  Values run_ready(ReadyPlan& ready, std::span<const std::shared_ptr<Value>> inputs,
                   std::span<const uint64_t> numbers = {});
  /// Nodes that live states reach, ascending; valid until the next call.
  const std::vector<Id>& mark();
  /// Drops the values that no live state reaches.
  void forget_unreached();
  /// Renumbers when the graph has grown enough and no Lock is held.
  void safe_point();

 private:
  friend class Lock;
  friend class JitTrace;
  friend class JitReplay;

  Session();
  ~Session() = delete;
  bool remove(TensorState* state) noexcept;
  void release_node(const TensorState& state) noexcept;
  void set_node(TensorState& state, Id node) noexcept;
  void add_shown(TensorState& view, Id base, std::vector<ShownNode>& shown);
  void add_shown_by_views(TensorState& base, Id node, std::vector<ShownNode>& shown);
  void prepare_to_show(std::span<const ShownNode> shown);
  bool release_views(TensorState& base) noexcept;
  void leave_base(TensorState& state) noexcept;
  Id moved(Id node, const TensorState& view);
  void note_lost_values();
  void keep_paths();

  // realize.cpp
  using RootGroups =
      std::map<uint32_t, std::vector<Id>>;  // by the device of constants alone; 0: default
  bool is_stored(Id base, uint32_t device);
  Id stored_base(Id node, uint32_t device);
  void make_strong(TensorState& state);
  RootGroups missing_roots(States states);
  RootGroups missing_local_roots(States states);
  uint32_t only_device(std::span<const Id> roots, uint32_t default_device);
  struct Work;
  class DonorScope;
  bool find_or_make(Work& work, uint32_t default_device, bool stores_along);
  struct MadeBefore {
    uint64_t kernels, compile_ns;
  };
  void keep_found(Work& work, const Hash128& key, std::shared_ptr<ReadyPlan> ready,
                  const MadeBefore& before);
  bool find_taking_numbers(Work& work, std::span<const NumberSite> sites,
                           const Hash128& without_numbers, const MadeBefore& before);
  std::shared_ptr<LengthPlan> plan_of_form(const Work& work, const Hash128& without_sizes,
                                           LengthForm form, std::shared_ptr<ReadyPlan>& ready);
  bool find_of_any_length(Work& work, const LengthSample& sample,
                          const std::shared_ptr<LengthHistory>& history,
                          const Hash128& without_sizes, const MadeBefore& before);
  Work work_for(std::span<const Id> roots, uint32_t default_device, bool stores_along);
  void walk(std::span<const Id> roots, uint32_t default_device);
  std::vector<uint32_t> origins_of(const schedule::ScheduledGraph& scheduled,
                                   const NodeOrigins& origins) const;
  PlanRequest request_of_walk(uint32_t default_device);
  Hash128 key_of_part(CutCall& call, PlanRequest& request, const Hash128& key);
  schedule::Plan plan_of(CanonicalScratch scratch, const PlanRequest& request);
  schedule::Plan planned(std::span<const Id> roots, uint32_t default_device);
  schedule::Plan kept_or_made(const Hash128& key, const std::function<schedule::Plan()>& make);
  std::shared_ptr<ReadyPlan> ready_of(schedule::Plan plan, const PlanRequest& request,
                                      const ReadyPlan* like = nullptr);
  void add_reports(const schedule::Plan& plan, std::vector<KernelReport>& reports);
  void add_requests(const schedule::Plan& plan, std::vector<KernelRequest>& requests);
  schedule::Plan plan_of_body(const LoopBody& body, uint32_t device);
  void prepare_loops(ReadyPlan& ready, const KernelOptions& kernel_options);
  std::shared_ptr<ReadyPlan> ready_body(const LoopBody& body, uint32_t device, uint32_t depth,
                                        const KernelOptions& kernel_options);
  Values compute(std::span<const Id> roots, uint32_t default_device);
  Values compute_local(std::span<const Id> roots, uint32_t default_device);

  // sharded.cpp
  struct LocalRoots;
  LocalRoots local_roots(std::span<const Id> roots, uint32_t default_device);
  void note_reads();
  void add_unread_collectives(LocalRoots& local);
  void make_lowering();
  bool is_known_to_lowering(Id node) const;
  std::vector<Id> buffers_of_parts(Id node);
  bool is_on_mesh(Id node) { return mesh((*devices_)[node]) != nullptr; }
  StatePtr on_one_device(TensorState& state);
  std::shared_ptr<Value> readable_parts(Id node);
  Values run_work(Work& work);
  void settle(States states);
  void cut(TensorState& state, Id base);
  Id with_extents(Id node, const std::vector<Extent>& extents);

  // recorded_places.cpp
  void name_places_of_request(Error& error, size_t number, const PlanRequest& request);
  void name_places(Error& error, std::span<const Id> nodes);

  // stored_along.cpp
  bool is_computed(Id base, uint32_t device, uint32_t default_device);
  Id latest_computed(TensorState& state, uint32_t default_device);
  void add_assigned(DistinctRoots& roots, uint32_t default_device);
  void note_assigned();
  bool add_gradients(DistinctRoots& roots);
  void note_used_anew(Work& work, Id first);
  struct Repeated {
    size_t again = 0, anew = 0;
    uint32_t last_plan = 0;
  };
  Repeated count_repeated(Id first);
  bool is_work(uint32_t number);
  void add_held(Work& work, DistinctRoots& roots, Id first = 0);
  void add_used_anew(DistinctRoots& roots);
  void add_overdue(DistinctRoots& roots);
  void add_repeated(Work& work, DistinctRoots& roots);
  void add_grown_constants(DistinctRoots& roots, uint32_t default_device);
  bool may_store_constant(uint32_t number);
  bool add_learned(Work& work, std::span<const uint32_t> needed_again);
  bool add_along(Work& work, uint32_t default_device);
  void note_computed(const Work& work);
  void keep_along(std::span<const Id> roots, std::span<const std::shared_ptr<Value>> values);

  // step.cpp
  void note_assignment(TensorState& state);
  void undo_step();

  /// Whether a plan may have sizes or indices to check.
  bool may_have_checks() const { return has_bounds_ || !index_ranges_.empty(); }

  // read.cpp
  struct Source {
    std::shared_ptr<runtime::Buffer> buffer;
    std::shared_ptr<PendingSizeChecks> pending_checks;
  };
  Source read_or_find_source(TensorState& state, std::span<std::byte> out);
  /// The bits of the single element, and its dtype.
  std::pair<uint64_t, DType> read_element(TensorState& state);

  // memory.cpp
  bool needs_no_inputs(Id id, bool for_gradient);
  uint8_t marks_below(Id id, uint8_t marks);
  const std::vector<Id>& mark_without_dead_calls();
  void note_marked();
  void renumber();
  void remark_leaves();
  Id copy_node(Graph& graph, Id id, const std::vector<Id>& new_id);
  void reclaim(uint64_t new_bytes, bool must);

  InterpreterAwareMutex mutex_;
  uint32_t locks_held_ = 0;  // by the thread that owns the mutex
  Graph graph_;
  std::unique_ptr<Shapes> shapes_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Extents> extents_;
  std::unique_ptr<sharding::Lowering> lowering_;  // null until there is a mesh
  bool has_bounds_ = false;
  RandomState random_;
  FunctionTable functions_;
  UserKernelTable user_kernels_;
  IndexRangeTable index_ranges_;  // for PLUGRAD_CHECK_INDICES; otherwise empty
  LoopTable loops_;
  std::unique_ptr<SessionState> state_;
};

}  // namespace plugrad::engine
