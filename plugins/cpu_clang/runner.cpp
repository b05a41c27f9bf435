// Loads objects and runs kernels on the host's threads.
#include <chrono>
#include <map>

#include "elf_loader.h"
#include "plugin.h"
#include "plugrad/sdk/guard.h"
#include "toolchain.h"

namespace {

// The entry as the renderer's dialect "c" defines it: runs groups [begin, end) of a launch of
// `counts` groups along the three axes; a kernel of one axis ignores `counts`.
using KernelFn = void (*)(void* const* buffers, const uint64_t* scalars, uint64_t begin,
                          uint64_t end, const uint64_t* counts);

}  // namespace

struct pgr_kernel {
  KernelFn function = nullptr;
  // Recent cost of a launch, summed over threads: waking threads for a tiny launch costs more than
  // it saves.
  std::atomic<uint64_t> recent_ns{UINT64_MAX};
};

struct pgr_program {
  std::unique_ptr<plugrad::cpu_clang::LoadedObject> object;
  std::map<std::string, pgr_kernel, std::less<>> kernels;
};

namespace plugrad::cpu_clang {
namespace {

constexpr uint64_t kWorthThreadsNs = 8000;
constexpr uint32_t kFewBuffers = 32;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

pgr_status load(pgr_device* device, const void* binary, uint64_t size, pgr_program** out,
                pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(binary != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "load: binary or out is NULL");
    auto program = std::make_unique<pgr_program>();
    program->object =
        LoadedObject::load(require_object({static_cast<const char*>(binary), size}, device->cpu));
    for (const auto& [name, address] : program->object->functions())
      program->kernels[name].function = reinterpret_cast<KernelFn>(const_cast<void*>(address));
    *out = program.release();
  });
}

pgr_status kernel(pgr_device*, pgr_program* program, const pgr_string* name, pgr_kernel** out,
                  pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(program != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "kernel: program or out is NULL");
    const auto found = program->kernels.find(sdk::to_view(name));
    sdk::require(found != program->kernels.end(), PGR_STATUS_NOT_FOUND,
                 "the program has no kernel \"" + std::string(sdk::to_view(name)) + "\"");
    *out = &found->second;
  });
}

pgr_status limits(pgr_device*, pgr_kernel*, pgr_kernel_limits* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_kernel_limits own;
    PGR_INIT(own, KERNEL_LIMITS);
    own.max_local_total = 1;
    sdk::fill(out, own);
  });
}

struct Launch {
  KernelFn function;
  void* const* buffers;
  const uint64_t* scalars;
  const uint64_t* counts;
};

// Runs all groups; returns the approximate single-threaded time.
void run(const pgr_host_api& host, pgr_kernel& kernel, const Launch& launch, uint64_t groups) {
  const uint64_t begin = now_ns();
  const bool is_tiny =
      groups == 1 || kernel.recent_ns.load(std::memory_order_relaxed) < kWorthThreadsNs;
  if (is_tiny) {
    launch.function(launch.buffers, launch.scalars, 0, groups, launch.counts);
  } else {
    host.parallel_for(
        host.host, groups, 1,
        [](void* context, uint64_t from, uint64_t to, uint32_t) {
          const Launch& self = *static_cast<const Launch*>(context);
          self.function(self.buffers, self.scalars, from, to, self.counts);
        },
        const_cast<Launch*>(&launch));
  }
  const uint64_t threads = is_tiny ? 1 : std::min<uint64_t>(groups, host.thread_count(host.host));
  kernel.recent_ns.store((now_ns() - begin) * threads, std::memory_order_relaxed);
}

// Separate from the checks, so that a launch does not construct unused messages: saves a
// microsecond.
void refuse_local_size(int axis, uint32_t size) {
  sdk::require(false, PGR_STATUS_LIMIT_EXCEEDED,
               "local_size along axis " + std::to_string(axis) + " is " + std::to_string(size) +
                   "; the CPU has groups of one work-item");
}

void refuse_group_count(int axis, uint64_t count) {
  sdk::require(false, PGR_STATUS_LIMIT_EXCEEDED,
               std::to_string(count) + " groups along axis " + std::to_string(axis) +
                   "; the CPU takes " + std::to_string(kMostGroups));
}

void refuse_null_buffer(uint32_t index) {
  sdk::require(false, PGR_STATUS_INVALID_ARGUMENT,
               "launch: buffer " + std::to_string(index) + " is NULL");
}

uint64_t count_groups(const pgr_launch_desc& desc) {
  uint64_t groups = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (desc.local_size[axis] != 1) refuse_local_size(axis, desc.local_size[axis]);
    const uint64_t count = desc.group_count[axis];
    if (count > kMostGroups) refuse_group_count(axis, count);
    sdk::require(count == 0 || groups <= (uint64_t{1} << 62) / count, PGR_STATUS_LIMIT_EXCEEDED,
                 "more than 2^62 groups");
    groups *= count;
  }
  return groups;
}

pgr_status launch(pgr_device* device, pgr_queue*, pgr_kernel* kernel, const pgr_launch_desc* desc,
                  uint64_t* out_time_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "launch: kernel is NULL");
    const pgr_launch_desc own = sdk::read(desc);
    const uint64_t groups = count_groups(own);
    void* few[kFewBuffers];
    std::unique_ptr<void*[]> many;
    if (own.buffer_count > kFewBuffers) many = std::make_unique<void*[]>(own.buffer_count);
    void** addresses = many ? many.get() : few;
    for (uint32_t i = 0; i < own.buffer_count; ++i) {
      if (own.buffers[i] == nullptr) refuse_null_buffer(i);
      addresses[i] = address_of(own.buffers[i]);
    }
    const uint64_t begin = own.timing ? now_ns() : 0;
    if (groups > 0)
      run(*device->plugin->host, *kernel,
          {kernel->function, addresses, own.scalars, own.group_count}, groups);
    if (out_time_ns) *out_time_ns = own.timing ? now_ns() - begin : 0;
  });
}

void unload(pgr_device*, pgr_program* program) {
  delete program;
}

}  // namespace

const pgr_runner_api* runner_table() {
  static const pgr_runner_api table = [] {
    pgr_runner_api made;
    PGR_INIT(made, RUNNER_API);
    made.load = load;
    made.kernel = kernel;
    made.limits = limits;
    made.launch = launch;
    made.unload = unload;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cpu_clang
