#include "runtime/queue/launch_list.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "runtime/device/device_state.h"
#include "runtime/queue/exit_wait.h"

namespace plugrad::runtime {

LaunchList::LaunchList(Device& device) : device_(&device) {
  device.state().lists.add(*this);
}

LaunchList::~LaunchList() {
  DeviceState& d = device_->state();
  d.lists.remove(*this);
  if (d.calls.is_reachable()) forget_graph();
}

void LaunchList::forget_graph() noexcept {
  if (!graph_) return;
  DeviceState& d = device_->state();
  d.calls.quietly("graph_destroy", [&] { d.graph.destroy(d.handle, graph_); });
  graph_ = nullptr;
}

void LaunchList::add(const Kernel& kernel, std::span<const std::uint32_t> places,
                     std::span<const std::uint64_t> scalars,
                     const std::array<std::uint64_t, 3>& group_count,
                     const std::array<std::uint32_t, 3>& local_size) {
  ensure(&kernel.device() == device_, "[launch] kernel {} is of {}, not of {}", kernel.name(),
         kernel.device().name(), device_->name());
  const auto node = static_cast<std::uint32_t>(kernels_.size());
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffer_count = static_cast<std::uint32_t>(places.size());
  desc.scalar_count = static_cast<std::uint32_t>(scalars.size());
  std::ranges::copy(group_count, desc.group_count);
  std::ranges::copy(local_size, desc.local_size);
  descriptions_.push_back(desc);
  kernels_.push_back(&kernel);
  first_scalar_.push_back(static_cast<std::uint32_t>(scalars_.size()));
  scalars_.insert(scalars_.end(), scalars.begin(), scalars.end());
  first_handle_.push_back(static_cast<std::uint32_t>(handles_.size()));
  for (std::uint32_t slot = 0; slot < places.size(); ++slot) {
    if (uses_.size() <= places[slot]) uses_.resize(places[slot] + 1);
    uses_[places[slot]].push_back({node, slot, static_cast<std::uint32_t>(handles_.size())});
    handles_.push_back(nullptr);
  }
}

void LaunchList::set(std::uint32_t place, const Buffer& buffer) {
  if (place >= uses_.size() || uses_[place].empty()) return;
  pgr_buffer* const handle = buffer.handle();
  for (const Use& use : uses_[place]) handles_[use.handle] = handle;
  if (graph_) changed_.push_back(place);  // even for an equal handle, which may be other memory
}

void LaunchList::set_scalars(std::uint32_t launch, std::span<const std::uint64_t> scalars) {
  const auto own = scalars_.begin() + first_scalar_[launch];
  if (std::equal(scalars.begin(), scalars.end(), own)) return;
  std::ranges::copy(scalars, own);
  if (graph_) changed_scalars_.push_back(launch);
}

pgr_launch_desc LaunchList::description(size_t launch) {
  pgr_launch_desc desc = descriptions_[launch];
  desc.buffers = handles_.data() + first_handle_[launch];
  if (desc.scalar_count != 0) desc.scalars = scalars_.data() + first_scalar_[launch];
  return desc;
}

void LaunchList::make_graph() {
  DeviceState& d = device_->state();
  if (kernels_.empty() || !d.has_graph) return;
  d.calls.require_usable("graph_build");
  const std::lock_guard lock(d.queue_mutex);
  build_or_patch();
}

void LaunchList::run(bool as_graph) {
  if (kernels_.empty()) return;
  DeviceState& d = device_->state();
  d.calls.require_usable("launch");
  const std::lock_guard lock(d.queue_mutex);
  const Timeline::Work work(d.timeline);
  // A trace has the time of each launch, which a graph does not give.
  if (as_graph && d.has_graph && !tracing())
    replay();
  else
    launch_each();
  if (!d.is_asynchronous) return;
  prepare_thread_for_exit();
  for (const Kernel* kernel : kernels_)
    d.calls.in_flight().launched(kernel->name(), kernel->is_first_launch());
}

void LaunchList::launch_each() {
  DeviceState& d = device_->state();
  WatchedCall watched(d.calls, "launch");
  const bool is_traced = tracing();
  CallError error;
  size_t at = 0;
  pgr_status status = PGR_STATUS_OK;
  try {
    for (; at < kernels_.size(); ++at) {
      watched.at(kernels_[at]->name());
      const pgr_launch_desc desc = description(at);
      const std::uint64_t submit_ns = is_traced ? monotonic_ns() : 0;
      status =
          d.runner.launch(d.handle, nullptr, kernels_[at]->handle(), &desc, nullptr, error.get());
      if (status != PGR_STATUS_OK) break;
      if (is_traced) trace_launch(at, submit_ns);
    }
  } catch (...) {
    d.calls.fail("launch", kernels_[at]->name(), PGR_STATUS_INTERNAL, describe_escaped());
  }
  if (status != PGR_STATUS_OK)
    d.calls.fail("launch", kernels_[at]->name(), status, error.message());
}

void LaunchList::trace_launch(size_t launch, std::uint64_t submit_ns) {
  LaunchOrigin origin = first_origin_;
  if (origin.plan != 0) origin.step += static_cast<std::int32_t>(launch);
  device_->state().trace.launched(*kernels_[launch], submit_ns, origin);
}

// Nodes depend on each other in order, as on the device's queue.
void LaunchList::build() {
  DeviceState& d = device_->state();
  std::vector<pgr_launch_desc> launches;
  std::vector<std::uint32_t> before(kernels_.size());
  std::vector<pgr_graph_node> nodes(kernels_.size());
  for (size_t i = 0; i < nodes.size(); ++i) launches.push_back(description(i));
  for (size_t i = 0; i < nodes.size(); ++i) {
    PGR_INIT(nodes[i], GRAPH_NODE);
    nodes[i].kind = PGR_GRAPH_LAUNCH;
    nodes[i].kernel = kernels_[i]->handle();
    nodes[i].launch = &launches[i];
    if (i == 0) continue;
    before[i] = static_cast<std::uint32_t>(i - 1);
    nodes[i].depends = &before[i];
    nodes[i].depends_count = 1;
  }
  d.calls.check("graph_build", [&](pgr_error* e) {
    return d.graph.build(d.handle, nodes.data(), static_cast<std::uint32_t>(nodes.size()),
                         sizeof nodes[0], &graph_, e);
  });
}

void LaunchList::patch() {
  DeviceState& d = device_->state();
  for (const std::uint32_t place : changed_)
    for (const Use& use : uses_[place])
      d.calls.check("graph_patch_buffer", kernels_[use.node]->name(), [&](pgr_error* e) {
        return d.graph.patch_buffer(d.handle, graph_, use.node, use.slot, handles_[use.handle], e);
      });
  for (const std::uint32_t launch : changed_scalars_)
    for (std::uint32_t slot = 0; slot < descriptions_[launch].scalar_count; ++slot)
      d.calls.check("graph_patch_scalar", kernels_[launch]->name(), [&](pgr_error* e) {
        return d.graph.patch_scalar(d.handle, graph_, launch, slot,
                                    scalars_[first_scalar_[launch] + slot], e);
      });
}

void LaunchList::build_or_patch() {
  if (graph_)
    patch();
  else
    build();
  changed_.clear();
  changed_scalars_.clear();
}

void LaunchList::replay() {
  DeviceState& d = device_->state();
  build_or_patch();
  d.calls.check("graph_replay",
                [&](pgr_error* e) { return d.graph.replay(d.handle, nullptr, graph_, e); });
}

}  // namespace plugrad::runtime
