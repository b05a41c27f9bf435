// A plugin and its devices for tests, opened by the suite's own host, which is independent of
// plugrad's core. A call that fails unexpectedly ends the test (Failed) with call, status and the
// plugin's message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/plugin/tables.h"

namespace plugrad::conformance {

class Device;

// The facts of the manifest that the suite needs.
struct ManifestFacts {
  std::string name, device_name, version, sanitizer;
  std::string renderer;  // dialect of the SDK's renderer that the host uses; empty: none
  std::map<std::string, std::string> renderer_options;
};

class Plugin {
 public:
  // dlopen and entry with a hello of this minor version and the plugin-wide options. Throws Failed.
  static std::unique_ptr<Plugin> open(
      const std::string& path, uint32_t device_index,
      std::map<std::string, std::string> device_options,
      const std::map<std::string, std::string>& plugin_options = {});
  virtual ~Plugin() = default;

  virtual const std::string& path() const = 0;
  virtual const ManifestFacts& manifest() const = 0;
  // Of the run's device.
  virtual uint32_t device_index() const = 0;
  virtual const std::map<std::string, std::string>& device_options() const = 0;
  virtual const std::map<std::string, std::string>& plugin_options() const = 0;
  virtual pgr_plugin_entry_fn entry() const = 0;
  // Built with headers of a later minor version than the suite's: its structs are longer.
  virtual bool is_newer() const = 0;
  virtual const pgr_host_api& host() const = 0;
  virtual const pgr_plugin_api& api() const = 0;  // missing slots are stubs that return UNSUPPORTED

  // A table by name, NULL if not offered. The table is clamped and has stubs in missing slots
  // (`offered` of tables.h detects them); lives as long as this object. The first three are
  // mandatory (else Failed).
  virtual const pgr_device_api* device_api() = 0;
  virtual const pgr_allocator_api* allocator_api() = 0;
  virtual const pgr_runner_api* runner_api() = 0;
  // its own, or the SDK's as the manifest specifies
  virtual const pgr_renderer_api* renderer_api() = 0;
  virtual const pgr_compiler_api* compiler_api() = 0;
  virtual const pgr_queue_api* queue_api() = 0;
  virtual const pgr_graph_api* graph_api() = 0;
  virtual const pgr_profile_api* profile_api() = 0;

  virtual Device& shared_device() = 0;
  // Another handle of the run's device.
  virtual std::unique_ptr<Device> open_device() = 0;
};

class Buffer {
 public:
  Buffer(Device& device, pgr_buffer* handle, uint64_t size_bytes)
      : device_(&device), handle_(handle), size_bytes_(size_bytes) {}
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  pgr_buffer* handle() const { return handle_; }
  uint64_t size_bytes() const { return size_bytes_; }
  void write(std::span<const std::byte> bytes, uint64_t offset_bytes = 0);
  void read(std::span<std::byte> bytes, uint64_t offset_bytes = 0) const;

 private:
  Device* device_;
  pgr_buffer* handle_;
  uint64_t size_bytes_;
};

struct KernelLaunch {
  std::vector<pgr_buffer*> buffers;
  std::vector<uint64_t> scalars;
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};
};

// A kernel from a kernel IR block: rendered, compiled, loaded; unloaded by the destructor.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual pgr_kernel* handle() const = 0;
  virtual const std::string& source() const = 0;
  virtual std::span<const std::byte> binary() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;  // closes
  virtual Plugin& plugin() = 0;
  virtual pgr_device* handle() const = 0;
  virtual const pgr_device_info& info() const = 0;
  virtual const pgr_device_caps& caps() const = 0;

  // Whether the op supports the dtype, and whether the dtype can be loaded and stored.
  bool claims(uint32_t op, uint32_t dtype) const;
  bool stores(uint32_t dtype) const;
  // Ends the test as unsupported with the first requirement of the block that the device does not
  // claim: ops and dtypes, lanes, local memory, group sizes, parameters.
  void require_claims(std::span<const std::byte> kernel_ir) const;

  virtual Buffer allocate(uint64_t size_bytes, uint32_t flags = 0) = 0;
  virtual std::unique_ptr<Kernel> compile(std::span<const std::byte> kernel_ir,
                                          bool contract = false) = 0;
  // Waits for completion.
  virtual void launch(const Kernel& kernel, const KernelLaunch& launch,
                      uint64_t* time_ns = nullptr) = 0;
  virtual void synchronize() = 0;

  // Allocates and fills a buffer per parameter, compiles, launches with the block's own group
  // counts and local size, and reads every written buffer back into `buffers`. Each buffer has
  // guard bytes behind it and, if the plugin offers sub_buffer, before it; the guards and the
  // read-only buffers must be unchanged. A buffer may be longer than its parameter, never shorter.
  void run(std::span<const std::byte> kernel_ir, std::span<std::vector<std::byte>> buffers,
           std::span<const uint64_t> scalars = {});
};

// A separate handle of the plugin's device `index`. Throws Failed.
std::unique_ptr<Device> open_device(Plugin& plugin, uint32_t index,
                                    const std::map<std::string, std::string>& options);

}  // namespace plugrad::conformance
