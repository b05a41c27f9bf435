// Launches on one device that are repeated with other buffers: prepared once, as a device graph if
// the device supports them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugrad/plugin_api/graph.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {

/// Not thread-safe. Its kernels must outlive it.
class LaunchList : public LiveNode<LaunchList> {
 public:
  explicit LaunchList(Device& device);
  ~LaunchList();
  LaunchList(const LaunchList&) = delete;
  LaunchList& operator=(const LaunchList&) = delete;

  Device& device() const { return *device_; }
  size_t size() const { return kernels_.size(); }

  /// Appends a launch; `places` are the indices of its buffers, which set() binds.
  void add(const Kernel& kernel, std::span<const std::uint32_t> places,
           std::span<const std::uint64_t> scalars, const std::array<std::uint64_t, 3>& group_count,
           const std::array<std::uint32_t, 3>& local_size);
  /// Binds a buffer to an index. It must live until the work given by run() is finished.
  void set(std::uint32_t place, const Buffer& buffer);

  /// Replaces the scalars of a launch, by order of add().
  void set_scalars(std::uint32_t launch, std::span<const std::uint64_t> scalars);

  /// Builds the graph that run(true) replays, or updates its buffers. No effect if the device does
  /// not support graphs.
  void make_graph();

  /// Runs all launches, in order with earlier and later work of the device. Uses a graph if
  /// `as_graph` and the device supports them; building one pays off when the list runs again.
  /// Errors: Device; launches before the failing one remain.
  void run(bool as_graph);
  /// Says for the trace that the launches are the steps of a plan from this one on.
  void set_origin(LaunchOrigin first) { first_origin_ = first; }
  std::span<const Kernel* const> kernels() const { return kernels_; }

  /// Called before the device closes.
  void forget_graph() noexcept;

 private:
  struct Use {  // parameter number `slot` of launch `node`
    std::uint32_t node, slot, handle;
  };
  pgr_launch_desc description(size_t launch);
  void launch_each();
  void trace_launch(size_t launch, std::uint64_t submit_ns);
  void build_or_patch();
  void build();
  void patch();
  void replay();

  Device* device_;
  std::vector<const Kernel*> kernels_;
  std::vector<pgr_launch_desc> descriptions_;   // description() fills in their arguments
  std::vector<std::uint32_t> first_handle_;     // by launch
  std::vector<pgr_buffer*> handles_;            // of all launches
  std::vector<std::uint32_t> first_scalar_;     // by launch
  std::vector<std::uint64_t> scalars_;          // of all launches
  std::vector<std::vector<Use>> uses_;          // by buffer index
  std::vector<std::uint32_t> changed_;          // indices set since the last graph update
  std::vector<std::uint32_t> changed_scalars_;  // launches, likewise
  pgr_graph* graph_ = nullptr;
  LaunchOrigin first_origin_;
};

}  // namespace plugrad::runtime
