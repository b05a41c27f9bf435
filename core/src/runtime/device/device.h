// A device of an opened plugin behind checks: every failing call throws plugrad::Error (kind
// Device) that names the device, the call and the plugin's message. All functions may be called
// from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "plugrad/plugin_api/runner.h"
#include "runtime/queue/live_list.h"
#include "runtime/queue/timeline.h"

namespace plugrad::runtime {

class Device;
class Kernel;
struct DeviceState;

/// Shuts the device down. One that hangs in a call lives for ever.
struct DeviceStateDelete {
  void operator()(DeviceState* state) const;
};
struct TakenBuffer;

/// What pgr_device_info says, copied.
struct DeviceInfo {
  std::string stable_id, name, arch, vendor, driver;
  std::uint64_t memory_bytes = 0;
  bool is_software = false;
};

/// Memory of one device; goes back to the device's allocator cache with its last owner. Contents
/// are unspecified when made. Copies are in order with launches; those that may go beside the
/// device's in-order queue do, and need not wait for what was launched before.
class Buffer : public LiveNode<Buffer> {
 public:
  Buffer(Device& device, pgr_buffer* handle, std::uint64_t size_bytes, std::uint64_t class_bytes,
         std::uint32_t flags);
  Buffer(Device& device, TakenBuffer taken, std::uint64_t size_bytes, std::uint64_t class_bytes,
         std::uint32_t flags);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return *device_; }
  /// For use on the in-order queue: what is given to it from now on finds the bytes that were
  /// copied in. Not to be called with the device's queue_mutex held.
  pgr_buffer* handle() const {
    if (is_idle_.load(std::memory_order_acquire) || arrival_.load(std::memory_order_acquire) != 0)
        [[unlikely]]
      enter_queue();
    return handle_;
  }
  /// For what is no work.
  pgr_buffer* plain_handle() const { return handle_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Whether it is a range of another buffer.
  bool is_part() const;
  /// Errors: Internal where bytes [offset, offset + size) are not all in it.
  void require_range(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  /// The host's bytes may be reused on return. Errors: Internal when out of range.
  void copy_in(const void* src, std::uint64_t size_bytes, std::uint64_t offset_bytes = 0);
  /// Blocks until the bytes are there: after all launches before it, or as far as note_written
  /// says.
  void copy_out(void* dst, std::uint64_t size_bytes, std::uint64_t offset_bytes = 0) const;
  /// Repeats `pattern` (1, 2, 4 or 8 bytes) over the whole buffer, whose size is a multiple of it.
  void fill(std::span<const std::byte> pattern);

  /// All launches and copies that write it were given, and no more come while anybody reads it: who
  /// reads it later waits for them alone.
  void note_written();
  /// It will be written again. Not while others read it.
  void forget_written() { written_ = nullptr; }

 private:
  void enter_queue() const;
  bool copy_in_beside(const void* src, std::uint64_t size_bytes, std::uint64_t offset_bytes);
  bool copy_out_beside(void* dst, std::uint64_t size_bytes, std::uint64_t offset_bytes) const;

  Device* device_;
  pgr_buffer* handle_;
  std::uint64_t size_bytes_, class_bytes_;
  std::uint32_t flags_;
  mutable std::atomic<bool> is_idle_{
      false};  // the in-order queue does not use it, once `after_` is reached
  QueuePlacePtr after_;
  mutable std::atomic<std::uint64_t> arrival_{
      0};  // of a copy that the in-order queue must wait for
  QueuePlacePtr written_;
};

/// Within a device by the device, between devices through host memory: mapped where a device shares
/// memory with the host, else in pieces. Ordered after earlier work of both devices.
void copy(Buffer& dst, std::uint64_t dst_offset_bytes, const Buffer& src,
          std::uint64_t src_offset_bytes, std::uint64_t size_bytes);

/// Bytes [offset, offset + size) of `parent`, which it keeps alive; memory of its own where the
/// device has no such ranges or the offset is not a multiple of its alignment.
std::shared_ptr<Buffer> sub_buffer(const std::shared_ptr<Buffer>& parent,
                                   std::uint64_t offset_bytes, std::uint64_t size_bytes);

struct MemoryStats {
  std::uint64_t used_bytes = 0;    ///< in live buffers
  std::uint64_t cached_bytes = 0;  ///< freed, kept for reuse
  std::uint64_t peak_bytes = 0;    ///< most that was used at once, since reset_peak
  std::uint64_t limit_bytes = 0;   ///< PLUGRAD_MEMORY_LIMIT; 0: none
  std::uint64_t allocations = 0,
                reuses = 0;  ///< buffers made by the plugin, and taken from the cache
};

/// Asked to free buffers when the cache cannot serve an allocation. `must`: memory is used up, and
/// the allocation fails unless something is freed. Called with no lock held, on the allocating
/// thread.
using Reclaim = std::function<void(std::uint64_t size_bytes, bool must)>;

/// Keys and values for a plugin, as its documentation names them.
using PluginOptions = std::vector<std::pair<std::string, std::string>>;

struct CompileOptions {
  bool contract = false;       ///< a multiply and its add may round once
  std::uint32_t optimize = 3;  ///< effort of the plugin's compiler, 0 to 3
  bool keep = true;            ///< the device owns it too, so that it is there when asked for again
  std::string_view source = {};  ///< what rendering gave before; empty: render
};

/// How kernels of a device came to be, since the start.
struct CompileStats {
  std::uint64_t compiled = 0;      ///< by the compiler
  std::uint64_t from_disk = 0;     ///< binaries found in the disk cache
  std::uint64_t from_process = 0;  ///< requests served by a kernel that was there already
  std::uint64_t rejected = 0;      ///< cached binaries that were damaged or foreign: compiled anew
  std::uint64_t compile_ns = 0;    ///< rendering, compiling and loading, summed over threads
};

/// Where a launch runs: what pgr_launch_desc takes.
struct Launch {
  std::span<Buffer* const> buffers;        ///< one for each buffer parameter, in order
  std::span<const std::uint64_t> scalars;  ///< bits, one for each scalar parameter
  std::array<std::uint64_t, 3> group_count{1, 1, 1};
  std::array<std::uint32_t, 3> local_size{1, 1, 1};
};

class Device {
 public:
  explicit Device(std::unique_ptr<DeviceState, DeviceStateDelete> state);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const;         ///< "CPU:0"
  const std::string& plugin_name() const;  ///< "CPU": what a user types
  std::uint32_t index() const;
  const DeviceInfo& info() const;
  const pgr_device_caps& caps() const;          ///< absent fields are 0
  std::span<const std::string> claims() const;  ///< interfaces offered: "pgr.renderer", …

  /// Errors: OutOfMemoryError with size, use and limit.
  std::shared_ptr<Buffer> allocate(std::uint64_t size_bytes, std::uint32_t flags = 0);
  /// Memory for bytes of the host, which can be copied in while earlier work runs.
  std::shared_ptr<Buffer> allocate_for_host_bytes(std::uint64_t size_bytes);
  MemoryStats memory_stats() const;
  void reset_peak();
  /// Gives the cached buffers back to the plugin.
  void flush_allocator_cache();
  /// The one reclaimer; replaces the one before.
  void set_reclaim(Reclaim reclaim);

  /// Kernel IR in, source text out; empty where the compiler takes kernel IR itself. Errors:
  /// Unsupported; Device.
  std::string render(std::span<const std::byte> kernel_ir);
  /// Kernel IR in; a kernel that can be launched out. Renders, looks in the disk cache, compiles,
  /// loads. Equal blocks and options give the same kernel; many threads may ask at once, equal ones
  /// compile once. Errors: CompileError with source and log; Unsupported; Device.
  std::shared_ptr<Kernel> compile(std::span<const std::byte> kernel_ir, std::string_view name,
                                  const CompileOptions& options = {});
  /// The same of source text as the device's compiler takes it, in which the kernel is called
  /// `name`. Errors: User where the compiler takes kernel IR itself.
  std::shared_ptr<Kernel> compile_source(std::string_view source, std::string_view name,
                                         const CompileOptions& options = {});
  /// What binaries depend on beside source and architecture; empty where the device has no
  /// compiler.
  std::string compiler_identity();
  CompileStats compile_stats() const;
  /// All that code made for this device depends on beside the kernel: core, plugin and renderer,
  /// capabilities, compiler. Equal ones make equal code. Errors: Device.
  const std::string& code_identity();

  /// In order with earlier launches and copies. With time_ns it waits for the kernel and measures
  /// it.
  void launch(const Kernel& kernel, const Launch& launch, std::uint64_t* time_ns = nullptr);
  /// Returns when all work given so far is done.
  void synchronize();

  /// Frees all that was made of it and closes it; calls of it fail from now on. Nothing else uses
  /// it meanwhile.
  void shut_down();
  DeviceState& state() { return *state_; }

 private:
  std::uint64_t class_of(std::uint64_t size_bytes) const;
  std::shared_ptr<Buffer> own(TakenBuffer taken, std::uint64_t size_bytes,
                              std::uint64_t class_bytes, std::uint32_t flags);

  std::unique_ptr<DeviceState, DeviceStateDelete> state_;
};

/// A loaded kernel; unloaded with its last owner.
class Kernel : public LiveNode<Kernel> {
 public:
  const std::string& name() const;
  Device& device() const;
  /// What the renderer made; empty where the compiler takes kernel IR itself.
  const std::string& source() const;
  std::span<const std::byte> binary() const;
  /// Whether the binary came from the disk cache.
  bool from_disk_cache() const;
  /// Rendering, compiling and loading.
  std::uint64_t compile_ns() const;
  /// For people; empty where the compiler offers none.
  std::string disassemble() const;

  struct State;
  explicit Kernel(std::unique_ptr<State> state);
  ~Kernel();
  pgr_kernel* handle() const { return handle_; }
  pgr_program* program() const;
  /// True once.
  bool is_first_launch() const {
    return !was_launched_.load(std::memory_order_relaxed) &&
           !was_launched_.exchange(true, std::memory_order_relaxed);
  }

 private:
  pgr_kernel* handle_;
  mutable std::atomic<bool> was_launched_{false};
  std::unique_ptr<State> state_;
};

}  // namespace plugrad::runtime
