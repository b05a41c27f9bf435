// Launches of one device that are given to it again and again with other buffers: prepared once,
// and a graph where the device makes graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugrad/plugin_api/graph.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {

/// Used by one thread at a time. Kernels given to it outlive it.
class LaunchList : public LiveNode<LaunchList> {
 public:
  explicit LaunchList(Device& device);
  ~LaunchList();
  LaunchList(const LaunchList&) = delete;
  LaunchList& operator=(const LaunchList&) = delete;

  Device& device() const { return *device_; }
  size_t size() const { return kernels_.size(); }

  /// One more launch, behind the others; its buffers are those of the places named, which set()
  /// fills.
  void add(const Kernel& kernel, std::span<const std::uint32_t> places,
           std::span<const std::uint64_t> scalars, const std::array<std::uint64_t, 3>& group_count,
           const std::array<std::uint32_t, 3>& local_size);
  /// The buffer of a place from now on. It lives until what run() gave to the device is done.
  void set(std::uint32_t place, const Buffer& buffer);

  /// What run(true) will replay: built, or told of the buffers, now. Nothing where the device makes
  /// no graphs.
  void make_graph();

  /// All launches, in order with earlier and later work of the device. As a graph where
  /// `as_graph` and the device makes them; building one pays when the list runs again. Errors:
  /// Device; what was launched before the failing one stays launched.
  void run(bool as_graph);

  /// The device is about to close.
  void forget_graph() noexcept;

 private:
  struct Use {  // parameter number `slot` of launch `node`
    std::uint32_t node, slot, handle;
  };
  pgr_launch_desc description(size_t launch);
  void launch_each();
  void build_or_patch();
  void build();
  void patch();
  void replay();

  Device* device_;
  std::vector<const Kernel*> kernels_;
  std::vector<pgr_launch_desc> descriptions_;  // their arguments are filled in by description()
  std::vector<std::uint32_t> first_handle_;    // by launch
  std::vector<pgr_buffer*> handles_;           // of all launches
  std::vector<std::uint32_t> first_scalar_;    // by launch
  std::vector<std::uint64_t> scalars_;         // of all launches
  std::vector<std::vector<Use>> uses_;         // by place
  std::vector<std::uint32_t> changed_;         // places set since the graph was built or patched
  pgr_graph* graph_ = nullptr;
};

}  // namespace plugrad::runtime
