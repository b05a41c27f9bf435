#include "engine/session.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/launch/forked_child.h"
#include "codegen/kernel.h"
#include "engine/recording/call_observer.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "tuning/schedule_overrides.h"

namespace plugrad::engine {

using Guard = std::lock_guard<InterpreterAwareMutex>;

namespace {

// So that `count` elements can be added without memory.
template <class T>
void make_room_for(std::vector<T>& list, size_t count) {
  if (list.capacity() - list.size() < count) list.reserve(2 * list.size() + count);
}

// The thread that forks and has the session's lock. It may have had the lock before.
std::atomic<std::thread::id> forking{};

void lock_before_fork() {
  if (Session::current().mutex().try_lock()) forking = std::this_thread::get_id();
}

void unlock_after_fork() {
  if (forking.load() != std::this_thread::get_id()) return;
  forking = std::thread::id();
  Session::current().mutex().unlock();
}

// A recursive mutex knows its owner by a thread id that is another one in the child.
void renew_in_child() {
  if (forking.exchange({}) == std::this_thread::get_id())
    new (&Session::current().mutex()) InterpreterAwareMutex;
  else
    lose_session_lock();
}

}  // namespace

Session::Session() : state_(std::make_unique<SessionState>()) {
  shapes_ = std::make_unique<Shapes>(graph_);
  devices_ = std::make_unique<Devices>(graph_);
  extents_ = std::make_unique<Extents>(graph_, *shapes_);
  tuning::check_overrides_at_exit();
  state_->devices.on_open = [this](runtime::Device& device) {
    device.set_reclaim([this](uint64_t bytes, bool must) { reclaim(bytes, must); });
  };
  pthread_atfork(lock_before_fork, unlock_after_fork, renew_in_child);
}

void Session::note_operation(Id first, uint32_t operation) {
  state_->operations.claim(first, graph_.size(), operation);
}
uint32_t Session::operation(Id node) const {
  return state_->operations.of(node);
}
void Session::note_place(Id first, uint32_t place) {
  state_->places.claim(first, graph_.size(), place);
}
uint32_t Session::place(Id node) const {
  return state_->places.of(node);
}

Session& Session::current() {
  static Session* const session = new Session;  // outlives every static Tensor
  return *session;
}

namespace {

thread_local uint32_t locks_here = 0;

}  // namespace

bool holds_session_lock() {
  return locks_here > 0;
}

Session::Lock::Lock(Session& session) : session_(session) {
  session_.mutex_.lock();
  try {
    session_.safe_point();
  } catch (...) {
    session_.mutex_.unlock();
    throw;
  }
  ++session_.locks_held_;
  ++locks_here;
}

Session::Lock::~Lock() {
  --locks_here;
  --session_.locks_held_;
  session_.mutex_.unlock();
}

StatePtr Session::make(Id node, uint32_t device) {
  const Guard guard(mutex_);
  ensure(node < graph_.size(), "node {} is not in the session's graph", node);
  auto state = std::make_unique<TensorState>();
  state->device = device;
  state->number = ++state_->states_made;
  denote(*state, node);
  if (const CallObserver* observer = CallObserver::active()) state->call = observer->call();
  TensorState* const raw = state.release();
  raw->next = state_->first_state;
  if (raw->next) raw->next->previous = raw;
  state_->first_state = raw;
  ++state_->state_count;
  return StatePtr(raw, [this](TensorState* dead) {  // without memory it calls this at once
    if (remove(dead)) delete dead;
  });
}

// False if several views still show its elements: the state stays as their lost base.
bool Session::remove(TensorState* state) noexcept {
  std::unique_lock guard(mutex_, std::defer_lock);
  try {
    guard.lock();
  } catch (...) {  // a forked child that cannot use the session at all
    return false;
  }
  const auto assigned = state_->step_assigned.extract(state);  // destroy what it holds last
  const bool has_views = release_views(*state);
  leave_base(*state);
  (state->previous ? state->previous->next : state_->first_state) = state->next;
  if (state->next) state->next->previous = state->previous;
  state_->forget_assignments(state);
  release_node(*state);
  --state_->state_count;
  state_->maybe_garbage = true;
  if (!has_views) return true;
  const StatePtr gradient = std::exchange(state->grad, nullptr);
  state->links.is_lost = true;
  state->requires_grad = false;
  state->earlier.clear();
  state->previous = state->next = nullptr;
  return false;
}

uint64_t new_identity() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

Id Session::leaf_node(Id node) {
  const Guard guard(mutex_);
  const DType dtype = graph_[node].dtype;
  return graph_.add(Op::Contiguous, dtype, {graph_.unary(Op::Detach, node)}, new_identity());
}

uint64_t Session::states_made() {
  const Guard guard(mutex_);
  return state_->states_made;
}

// Allocates before the state denotes the node: without memory it keeps its value.
void Session::assign(TensorState& state, Id node) {
  const Guard guard(mutex_);
  note_assignment(state);
  prepare_to_denote(state, state.requires_grad);
  const uint32_t before = (*devices_)[state.node];
  const bool keeps_device = before != 0 && before != default_device();
  if (state.pending) {
    state_->versions[&state].push_back(state.node);
  } else {
    make_room_for(state_->pending, 1);
    state_->note_replaced(state, stored_base(state.node, state.device));
    state_->pending.push_back(&state);
    state.pending = true;
  }
  // A value of constants alone has no device: store it on the tensor's previous device.
  if (keeps_device) state.device = before;
  denote(state, node);
  state_->maybe_garbage = true;
}

// No node recorded later is equal to a Buffer.
void Session::release_node(const TensorState& state) noexcept {
  state_->computed.release(state_->held.of(graph_, state.node));  // known since it is denoted
  try {
    const Id base = stored_base(state.node, state.device);
    state_->maybe_unreached_value |=
        state_->has_values_between ||
        (graph_[base].op != Op::Buffer && state_->values.find(base) != nullptr);
  } catch (...) {  // the devices of new nodes take memory
    state_->maybe_unreached_value = true;
  }
}

// Takes memory before it changes anything, and none for a node that a leaf had before.
void Session::denote(TensorState& state, Id node) {
  const Id held = state_->held.of(graph_, node);
  state_->computed.reserve(held);
  if (state.requires_grad) {
    state_->tape.reserve(node + 1);
    const bool had_it = std::ranges::find(state.earlier, node) != state.earlier.end();
    make_room_for(state.earlier, had_it ? 1 : 2);
  }
  set_node(state, node);
}

void Session::set_node(TensorState& state, Id node) noexcept {
  state_->computed.hold(state_->held.of(graph_, node));
  if (state.node != kNoId) release_node(state);
  if (state.requires_grad && state.node != node) {
    state.earlier.push_back(state.node);
    state_->tape.mark_earlier(state.node);
  }
  state.node = node;
  if (state.requires_grad) state_->tape.mark_leaf(node);
}

void Session::prepare_to_denote(TensorState& state, bool is_leaf) {
  const Id last = graph_.size() - 1;
  state_->held.of(graph_, last);
  state_->computed.reserve(last);
  if (!is_leaf) return;
  state_->tape.reserve(graph_.size());
  size_t count = 2;  // of this node, and of that one when this comes back
  for (const TensorState* base = state.links.base; base; base = base->links.base) ++count;
  make_room_for(state.earlier, count);  // a write may show in a view once for each base
}

void Session::set_requires_grad(TensorState& state, bool on) {
  const Guard guard(mutex_);
  if (state.requires_grad == on) return;
  if (on) {
    prepare_to_denote(state, true);
    state.requires_grad = true;
    return state_->tape.mark_leaf(state.node);
  }
  for (Id node : leaf_nodes(state)) state_->tape.unmark_leaf(node);
  state.requires_grad = false;
  state.earlier.clear();
}

std::vector<Id> Session::leaf_nodes(const TensorState& leaf) {
  std::vector<Id> nodes = leaf.earlier;
  nodes.push_back(leaf.node);
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
  return nodes;
}

Id Session::second_buffer(Id node) {
  const Guard guard(mutex_);
  if (graph_[node].op != Op::Buffer || !state_->values.find(node)) return kNoId;
  const ValuePtr value = state_->values.share(node);
  const std::vector<int64_t> sizes(shape(node).begin(), shape(node).end());
  const Id second = add_buffer(graph_, sizes, value->dtype, value->device);
  state_->values.set(second, value);
  return second;
}

std::vector<bool> Session::nodes_beside(Id loss) {
  std::vector<bool> related(graph_.size()), beside(graph_.size());
  const auto mark_tracked_sources = [&](std::vector<bool>& marks, Id id) {
    if (!marks[id] || !state_->tape.has_tracked_source(graph_, id)) return;
    for (Id source : graph_.sources(id))
      if (state_->tape.is_tracked(graph_, source)) marks[source] = true;
  };
  related[loss] = true;
  for (Id id = loss + 1; id-- > 0;) mark_tracked_sources(related, id);
  for (Id id = loss + 1; id < graph_.size(); ++id)
    for (Id source : graph_.sources(id))
      if (source >= loss && related[source]) related[id] = true;
  state_->each_state([&](const TensorState& other) { beside[other.node] = !related[other.node]; });
  for (Id id = graph_.size(); id-- > 0;) mark_tracked_sources(beside, id);
  return beside;
}

void Session::resume_tape(Id node) {
  const Guard guard(mutex_);
  state_->tape.resume(graph_, node);
}

void Session::end_tape(TensorState& state) {
  const Guard guard(mutex_);
  if (state.requires_grad) return;
  const Id loss = state.node;
  const Id detached = graph_.add(Op::Detach, graph_[loss].dtype, {loss}, kDifferentiated);
  prepare_to_denote(state, false);
  state_->tape.end(graph_, loss, nodes_beside(loss));
  denote(state, detached);
}

std::vector<TensorState*> Session::marked_states() {
  const Guard guard(mutex_);
  std::vector<TensorState*> marked;
  state_->each_state([&](TensorState& state) {
    if (state.requires_grad) marked.push_back(&state);
  });
  return marked;
}

bool Session::is_tracked(Id node) {
  const Guard guard(mutex_);
  return state_->tape.is_tracked(graph_, node);
}

size_t Session::live_states() {
  const Guard guard(mutex_);
  return state_->state_count;
}

uint32_t Session::device_number(std::string_view name) {
  const Guard guard(mutex_);
  return state_->devices.number(name);
}

std::string Session::device_name(uint32_t number) {
  const Guard guard(mutex_);
  return state_->devices.name(number == 0 ? default_device() : number);
}

uint32_t Session::default_device() {
  const Guard guard(mutex_);
  return state_->devices.default_number();
}

bool Session::claims(Op op, DType dtype) {
  const Guard guard(mutex_);
  return codegen::claims(state_->devices.open(default_device()).caps(), op, dtype);
}

uint32_t Session::set_default_of_thread(uint32_t device) {
  return DeviceTable::set_default_of_thread(device);
}

void Session::set_default_device(std::string_view selection) {
  runtime::Registry::instance().set_default_device(selection);
}

std::string Session::add_plugin(const std::string& path) {
  return runtime::Registry::instance().add_plugin(path);
}

namespace {

// Below this size values stay on the host until a kernel needs them, as sizes and short lists are
// often read there. Chosen, not measured.
constexpr size_t kLeastStored = 64 << 10;

// A buffer with these bytes; null if the device has no memory left.
std::shared_ptr<runtime::Buffer> stored(runtime::Device& device, std::span<const std::byte> bytes) {
  try {
    auto buffer = device.allocate_for_host_bytes(bytes.size());
    buffer->copy_in(bytes.data(), bytes.size());
    return buffer;
  } catch (const OutOfMemoryError&) {
    return nullptr;
  }
}

}  // namespace

// Copies many bytes to a device that is open already: a copy on the host would be a second one.
Id Session::store_host(std::span<const int64_t> shape, DType dtype, uint32_t device,
                       std::span<const std::byte> bytes) {
  const Guard guard(mutex_);
  if (bytes.size() >= kLeastStored && !CallObserver::active()) {
    runtime::Device* const open =
        state_->devices.find_open(device == 0 ? default_device() : device);
    if (auto buffer = open ? stored(*open, bytes) : nullptr) {
      const Id node = store_shared(shape, dtype, device, bytes, nullptr);
      state_->values.find(node)->buffer = std::move(buffer);
      state_->values.find(node)->host = {};
      return node;
    }
  }
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  const std::span<const std::byte> kept(*copy);
  return store_shared(shape, dtype, device, kept, std::move(copy));
}

Id Session::store_shared(std::span<const int64_t> shape, DType dtype, uint32_t device,
                         std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const Guard guard(mutex_);
  const uint64_t needed = static_cast<uint64_t>(element_count(shape)) * size_of(dtype);
  require(size_of(dtype) != 0, "[store] {} is no dtype that memory holds", name_of(dtype));
  require(bytes.size() == needed, "[store] {} elements of {} take {} bytes, {} were given",
          element_count(shape), name_of(dtype), needed, bytes.size());
  auto value = std::make_shared<Value>();
  value->dtype = dtype;
  value->device = device == 0 ? default_device() : device;
  value->size_bytes = needed;
  value->host = bytes;
  value->host_owner = std::move(owner);
  const Id node = add_buffer(graph_, shape, dtype, value->device);
  if (CallObserver* observer = CallObserver::active()) observer->brought_from_host(value);
  state_->values.set(node, std::move(value));
  state_->note_new_value(needed);
  return node;
}

Id Session::add_buffer(Graph& graph, std::span<const int64_t> shape, DType dtype, uint32_t device) {
  std::vector<int64_t> list = {static_cast<int64_t>(state_->next_buffer++), device};
  list.insert(list.end(), shape.begin(), shape.end());
  return graph.add(Op::Buffer, dtype, {}, graph.list(list));
}

Id Session::bound(Id x, int64_t axis, Id count, int64_t least) {
  const Guard guard(mutex_);
  has_bounds_ = true;
  return bounded().bound(x, axis, count, least);
}

Id Session::with_extents(Id node, const std::vector<Extent>& extents) {
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i].is_counted())
      node = bound(node, static_cast<int64_t>(i), extents[i].count, extents[i].least);
  return node;
}

void Session::note_loss(const StatePtr& loss) {
  const Guard guard(mutex_);
  state_->losses.push_back(loss);
}

Statistics Session::statistics() {
  const Guard guard(mutex_);
  Statistics now = state_->statistics;
  now.kernels_compiled = state_->kernels.made() - now.kernels_compiled;
  now.codegen_ns = state_->kernels.codegen_ns() - now.codegen_ns;
  now.graph_nodes = graph_.size();
  now.arena_bytes = state_->arenas.size_bytes();
  now.constant_bytes = state_->constants.bytes_on();
  now.plans_kept = state_->plans.size();
  now.kernels_kept = state_->kernels.size();
  now.kept_bytes = state_->plans.size_bytes() + state_->kernels.size_bytes() +
                   state_->number_histories.size_bytes() + state_->length_histories.size_bytes();
  std::vector<const Value*> distinct;  // several nodes may share one value
  state_->values.each([&](const Value& value) {
    distinct.push_back(&value);
    for (size_t i = 0; value.sharded && i < value.sharded->parts.size(); ++i)
      if (value.sharded->parts[i]) distinct.push_back(value.sharded->parts[i].get());
  });
  now.live_values = distinct.size();
  std::ranges::sort(distinct);
  const auto repeated = std::ranges::unique(distinct);
  distinct.erase(repeated.begin(), repeated.end());
  for (const Value* value : distinct) now.value_bytes += value->size_bytes;
  return now;
}

void Session::reset_statistics() {
  const Guard guard(mutex_);
  state_->statistics = {};
  state_->statistics.kernels_compiled = state_->kernels.made();  // counted from here
  state_->statistics.codegen_ns = state_->kernels.codegen_ns();
}

void Session::clear_caches() {
  const Guard guard(mutex_);
  state_->plans.clear();
  state_->number_histories.clear();
  state_->length_histories.clear();
  state_->recorded.clear();
  state_->kernels.clear();
  state_->arenas.release();
}

std::vector<uint32_t> SessionState::replaced_inputs(std::span<const ValuePtr> inputs) const {
  std::vector<uint32_t> numbers;
  if (replaced.empty()) return numbers;
  std::vector<const Value*> before;
  for (const auto& [state, value] : replaced)
    if (const ValuePtr there = value.lock()) {
      before.push_back(there.get());
      if (there->sharded)
        for (const ValuePtr& part : there->sharded->parts) before.push_back(part.get());
    }
  std::ranges::sort(before);
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (std::ranges::binary_search(before, inputs[i].get())) numbers.push_back(i);
  return numbers;
}

}  // namespace plugrad::engine
