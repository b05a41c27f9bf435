// Wraps a device of an opened plugin with checks: a failing call throws plugrad::Error (kind
// Device) that names the device, the call and the plugin's message. Thread-safe.
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
#include "runtime/queue/device_trace.h"
#include "runtime/queue/live_list.h"
#include "runtime/queue/timeline.h"

namespace plugrad::runtime {

class Device;
class Kernel;
struct DeviceState;

/// Shuts the device down; a device that hangs in a call is never destroyed.
struct DeviceStateDelete {
  void operator()(DeviceState* state) const;
};
struct TakenBuffer;

/// A copy of pgr_device_info.
struct DeviceInfo {
  std::string stable_id, name, arch, vendor, driver;
  std::uint64_t memory_bytes = 0;
  bool is_software = false;
};

/// Memory of a device; returns to the device's allocator cache with its last owner. Initially
/// undefined. Copies are ordered with launches; where possible they run beside the in-order queue,
/// without waiting for earlier launches.
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
  /// The handle for use on the in-order queue, whose later work sees the bytes copied in so far.
  /// Must not be called with the device's queue_mutex held.
  pgr_buffer* handle() const {
    if (is_idle_.load(std::memory_order_acquire) || arrival_.load(std::memory_order_acquire) != 0)
        [[unlikely]]
      enter_queue();
    return handle_;
  }
  /// The handle without queue synchronisation.
  pgr_buffer* plain_handle() const { return handle_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// Whether this is a range of another buffer.
  bool is_part() const;
  /// Errors: Internal if bytes [offset, offset + size) exceed the buffer.
  void require_range(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  /// The source may be reused on return. Errors: Internal if out of range.
  void copy_in(const void* src, std::uint64_t size_bytes, std::uint64_t offset_bytes = 0);
  /// Blocks until the bytes have arrived: after all earlier launches, or after those that
  /// note_written() marks.
  void copy_out(void* dst, std::uint64_t size_bytes, std::uint64_t offset_bytes = 0) const;
  /// Repeats `pattern` (1, 2, 4 or 8 bytes); the buffer's size must be a multiple of its size.
  void fill(std::span<const std::byte> pattern);

  /// Marks that all writes of the buffer were queued; none may follow while it is read. Later
  /// readers wait only for these writes.
  void note_written() noexcept;
  /// The buffer will be written again; no reader may exist.
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
      false};  // the in-order queue does not use it once `after_` is reached
  QueuePlacePtr after_;
  mutable std::atomic<std::uint64_t> arrival_{
      0};  // number of a copy that the in-order queue must wait for
  QueuePlacePtr written_;
};

/// Copies on the device, or between devices through host memory: mapped if a device shares memory
/// with the host, else in pieces. Ordered after earlier work of both devices.
void copy(Buffer& dst, std::uint64_t dst_offset_bytes, const Buffer& src,
          std::uint64_t src_offset_bytes, std::uint64_t size_bytes);

/// Bytes [offset, offset + size) of `parent`, which it keeps alive. Separate memory if the device
/// has no sub-buffers or the offset is not aligned.
std::shared_ptr<Buffer> sub_buffer(const std::shared_ptr<Buffer>& parent,
                                   std::uint64_t offset_bytes, std::uint64_t size_bytes);

struct MemoryStats {
  std::uint64_t used_bytes = 0;    ///< in live buffers
  std::uint64_t cached_bytes = 0;  ///< freed, kept for reuse
  std::uint64_t peak_bytes = 0;    ///< largest use since reset_peak
  std::uint64_t limit_bytes = 0;   ///< PLUGRAD_MEMORY_LIMIT; 0: none
  std::uint64_t allocations = 0,
                reuses = 0;  ///< made by the plugin; taken from the cache
};

/// Frees buffers when the cache cannot serve an allocation. `must`: memory is exhausted, and the
/// allocation fails unless something is freed. Called without locks, on the allocating thread.
using Reclaim = std::function<void(std::uint64_t size_bytes, bool must)>;

/// Keys and values for a plugin, documented by the plugin.
using PluginOptions = std::vector<std::pair<std::string, std::string>>;

struct CompileOptions {
  bool contract = false;         ///< a multiply and its add may round once
  std::uint32_t optimize = 3;    ///< effort of the plugin's compiler, 0 to 3
  bool keep = true;              ///< the device keeps the kernel for later requests
  std::string_view source = {};  ///< source of an earlier render(); empty: render
};

/// Statistics of a device's kernels, since its start.
struct CompileStats {
  std::uint64_t compiled = 0;      ///< by the compiler
  std::uint64_t from_disk = 0;     ///< binaries from the disk cache
  std::uint64_t from_process = 0;  ///< requests served by an existing kernel
  std::uint64_t rejected = 0;      ///< cached binaries, damaged or foreign, that were recompiled
  std::uint64_t compile_ns = 0;    ///< rendering, compiling and loading, summed over threads
};

/// The arguments of a launch, as for pgr_launch_desc.
struct Launch {
  std::span<Buffer* const> buffers;        ///< one for each buffer parameter, in order
  std::span<const std::uint64_t> scalars;  ///< bits, one for each scalar parameter
  std::array<std::uint64_t, 3> group_count{1, 1, 1};
  std::array<std::uint32_t, 3> local_size{1, 1, 1};
  LaunchOrigin origin = {};  ///< for the trace
};

class Device {
 public:
  explicit Device(std::unique_ptr<DeviceState, DeviceStateDelete> state);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const;         ///< "CPU:0"
  const std::string& plugin_name() const;  ///< "CPU": the name that users type
  std::uint32_t index() const;
  const DeviceInfo& info() const;
  const pgr_device_caps& caps() const;          ///< absent fields are 0
  std::span<const std::string> claims() const;  ///< interfaces offered: "pgr.renderer", …

  /// Errors: OutOfMemoryError with size, use and limit.
  std::shared_ptr<Buffer> allocate(std::uint64_t size_bytes, std::uint32_t flags = 0);
  /// Memory for host bytes, which can be copied in while earlier work runs.
  std::shared_ptr<Buffer> allocate_for_host_bytes(std::uint64_t size_bytes);
  MemoryStats memory_stats() const;
  void reset_peak();
  /// Frees the cached buffers.
  void flush_allocator_cache();
  /// Replaces the reclaimer; there is only one.
  void set_reclaim(Reclaim reclaim);

  /// Renders kernel IR to source text; empty if the compiler takes kernel IR itself. Errors:
  /// Unsupported; Device.
  std::string render(std::span<const std::byte> kernel_ir);
  /// Compiles kernel IR to a kernel: renders, looks in the disk cache, compiles, loads. Equal
  /// blocks and options give the same kernel and compile once, even from many threads. Errors:
  /// CompileError with source and log; Unsupported; Device.
  std::shared_ptr<Kernel> compile(std::span<const std::byte> kernel_ir, std::string_view name,
                                  const CompileOptions& options = {});
  /// The same for source text in the language of the device's compiler, in which the kernel is
  /// called `name`. Errors: User if the compiler takes kernel IR itself.
  std::shared_ptr<Kernel> compile_source(std::string_view source, std::string_view name,
                                         const CompileOptions& options = {});
  /// Identifies the compiler for binaries with equal source and architecture; empty if the device
  /// has no compiler.
  std::string compiler_identity();
  CompileStats compile_stats() const;
  /// Identifies everything that affects generated code besides the kernel: core, plugin and
  /// renderer, capabilities, compiler. Equal identities give equal code. Errors: Device.
  const std::string& code_identity();

  /// Launches in order with earlier launches and copies. With time_ns, waits for the kernel and
  /// measures it.
  void launch(const Kernel& kernel, const Launch& launch, std::uint64_t* time_ns = nullptr);
  /// Waits for all work given so far.
  void synchronize();

  /// Destroys everything made of the device and closes it; later calls fail. Requires exclusive
  /// use.
  void shut_down();
  DeviceState& state() { return *state_; }

 private:
  std::uint64_t class_of(std::uint64_t size_bytes) const;
  std::shared_ptr<Buffer> own(TakenBuffer taken, std::uint64_t size_bytes,
                              std::uint64_t class_bytes, std::uint32_t flags);

  std::unique_ptr<DeviceState, DeviceStateDelete> state_;
};

/// A loaded kernel; its last owner unloads it.
class Kernel : public LiveNode<Kernel> {
 public:
  const std::string& name() const;
  Device& device() const;
  /// The rendered source; empty if the compiler takes kernel IR itself.
  const std::string& source() const;
  std::span<const std::byte> binary() const;
  /// Whether the binary came from the disk cache.
  bool from_disk_cache() const;
  /// Time of rendering, compiling and loading.
  std::uint64_t compile_ns() const;
  /// For reading; empty if the compiler has no disassembler.
  std::string disassemble() const;

  struct State;
  explicit Kernel(std::unique_ptr<State> state);
  ~Kernel();
  pgr_kernel* handle() const { return handle_; }
  pgr_program* program() const;
  /// Its definition in the trace; 0: none yet.
  std::uint32_t trace_id() const { return trace_id_.load(std::memory_order_relaxed); }
  void set_trace_id(std::uint32_t id) const { trace_id_.store(id, std::memory_order_relaxed); }
  /// True on the first call only.
  bool is_first_launch() const {
    return !was_launched_.load(std::memory_order_relaxed) &&
           !was_launched_.exchange(true, std::memory_order_relaxed);
  }

 private:
  pgr_kernel* handle_;
  mutable std::atomic<bool> was_launched_{false};
  mutable std::atomic<std::uint32_t> trace_id_{0};
  std::unique_ptr<State> state_;
};

}  // namespace plugrad::runtime
