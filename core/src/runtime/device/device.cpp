#include "runtime/device/device.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "runtime/checks/layers.h"
#include "runtime/device/device_state.h"
#include "runtime/device/kernel.h"
#include "runtime/memory/format_size.h"
#include "runtime/queue/exit_wait.h"

namespace plugrad::runtime {
namespace {

constexpr std::size_t kInlineBuffers = 32;
constexpr std::uint64_t kPartOfAnother = 0;  // class of sub-buffers; others are >= 256

Hash128 kernel_key(std::span<const std::byte> ir, std::string_view name,
                   const CompileOptions& options) {
  std::string text(reinterpret_cast<const char*>(ir.data()), ir.size());
  text += name;
  text += options.contract ? 'c' : '-';
  text += static_cast<char>('0' + options.optimize);
  return hash128(as_bytes(text));
}

// Requests contraction only if the device supports it; others may not read the option.
CompileOptions options_on(const pgr_device_caps& caps, CompileOptions options) {
  options.contract = options.contract && caps.contract_supported != 0;
  return options;
}

// The sizes of a refused launch and the device's limits, for its error.
std::string launch_sizes(const pgr_launch_desc& desc, const pgr_device_caps& caps) {
  const auto three = [](const auto& n) { return fmt::format("{} x {} x {}", n[0], n[1], n[2]); };
  return fmt::format(
      "; it was launched with {} groups of {} work-items and {} buffers; the device allows {} "
      "groups of {} work-items, {} in all, with {} bytes of local memory (0: not stated)",
      three(desc.group_count), three(desc.local_size), desc.buffer_count, three(caps.max_groups),
      three(caps.max_local_size), caps.max_local_total, caps.local_bytes);
}

}  // namespace

Buffer::Buffer(Device& device, pgr_buffer* handle, std::uint64_t size_bytes,
               std::uint64_t class_bytes, std::uint32_t flags)
    : device_(&device),
      handle_(handle),
      size_bytes_(size_bytes),
      class_bytes_(class_bytes),
      flags_(flags) {
  device.state().buffers.add(*this);
}

Buffer::Buffer(Device& device, TakenBuffer taken, std::uint64_t size_bytes,
               std::uint64_t class_bytes, std::uint32_t flags)
    : Buffer(device, taken.handle, size_bytes, class_bytes, flags) {
  is_idle_ = taken.is_idle;
  after_ = std::move(taken.earlier.after);
  arrival_ = taken.earlier.arrival;
}

Buffer::~Buffer() {
  DeviceState& d = device_->state();
  d.buffers.remove(*this);
  if (!d.calls.is_reachable()) return;
  if (is_part())
    d.calls.quietly("free", [&] { d.allocator_api.free(d.handle, handle_); });
  else
    d.allocator->give(handle_, class_bytes_, flags_, arrival_);
}

bool Buffer::is_part() const {
  return class_bytes_ == kPartOfAnother;
}

void Buffer::require_range(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
  ensure(size_bytes <= size_bytes_ && offset_bytes <= size_bytes_ - size_bytes,
         "[copy] bytes {} to {} of a buffer of {} bytes", offset_bytes, offset_bytes + size_bytes,
         size_bytes_);
}

void Buffer::enter_queue() const {
  is_idle_ = false;
  device_->state().transfers.join(arrival_);
  arrival_.store(0, std::memory_order_release);
}

void Buffer::note_written() noexcept try {
  written_ = device_->state().timeline.here();
} catch (...) {  // without a place a reader waits for all work
}

// With an idle in-order queue, a second queue has no advantage.
bool Buffer::copy_in_beside(const void* src, std::uint64_t size_bytes, std::uint64_t offset_bytes) {
  DeviceState& d = device_->state();
  if (!is_idle_ || !d.timeline.has_work() || !d.transfers.can()) return false;
  arrival_ = d.transfers.copy_in(handle_, offset_bytes, src, size_bytes, after_.get());
  after_ = nullptr;
  return true;
}

void Buffer::copy_in(const void* src, std::uint64_t size_bytes, std::uint64_t offset_bytes) {
  require_range(offset_bytes, size_bytes);
  DeviceState& d = device_->state();
  d.calls.require_usable("copy_in");
  if (size_bytes == 0 || copy_in_beside(src, size_bytes, offset_bytes)) return;
  pgr_buffer* const to = handle();
  d.on_queue("copy_in", {trace::Direction::In, size_bytes}, [&](pgr_error* e) {
    return d.allocator_api.copy_in(d.handle, nullptr, to, offset_bytes, src, size_bytes, e);
  });
}

// Reads bytes written before the newest work without waiting for that work.
bool Buffer::copy_out_beside(void* dst, std::uint64_t size_bytes,
                             std::uint64_t offset_bytes) const {
  DeviceState& d = device_->state();
  if (!written_ || !d.timeline.has_passed(*written_) || !d.transfers.can()) return false;
  d.timeline.wait(*written_);
  d.transfers.copy_out(dst, handle_, offset_bytes, size_bytes);
  return true;
}

void Buffer::copy_out(void* dst, std::uint64_t size_bytes, std::uint64_t offset_bytes) const {
  require_range(offset_bytes, size_bytes);
  DeviceState& d = device_->state();
  d.calls.require_usable("copy_out");
  if (size_bytes == 0 || copy_out_beside(dst, size_bytes, offset_bytes)) return;
  pgr_buffer* const from = handle();
  if (d.is_asynchronous) device_->synchronize();  // wait without holding queue_mutex
  std::uint64_t done = 0;
  d.on_queue("copy_out", {trace::Direction::Out, size_bytes}, [&](pgr_error* e) {
    done = d.timeline.count() + 1;  // when this call ends, its bytes have arrived
    return d.allocator_api.copy_out(d.handle, nullptr, dst, from, offset_bytes, size_bytes, e);
  });
  d.timeline.waited(done);
}

void Buffer::fill(std::span<const std::byte> pattern) {
  bool sized =
      pattern.size() == 1 || pattern.size() == 2 || pattern.size() == 4 || pattern.size() == 8;
  ensure(sized && size_bytes_ % pattern.size() == 0, "[fill] {} bytes by a pattern of {}",
         size_bytes_, pattern.size());
  DeviceState& d = device_->state();
  d.calls.require_usable("fill");
  if (size_bytes_ == 0) return;
  if (offered(d.allocator_api.fill)) {
    pgr_buffer* const to = handle();
    d.on_queue("fill", {trace::Direction::Fill, size_bytes_}, [&](pgr_error* e) {
      return d.allocator_api.fill(d.handle, nullptr, to, 0, size_bytes_, pattern.data(),
                                  pattern.size(), e);
    });
    return;
  }
  std::vector<std::byte> host(size_bytes_);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = pattern[i % pattern.size()];
  copy_in(host.data(), host.size());
}

std::shared_ptr<Buffer> sub_buffer(const std::shared_ptr<Buffer>& parent,
                                   std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  parent->require_range(offset_bytes, size_bytes);
  DeviceState& d = parent->device().state();
  d.calls.require_usable("sub_buffer");
  const std::uint64_t align = std::max(1u, d.caps.buffer_align_bytes);
  if (!offered(d.allocator_api.sub_buffer) || offset_bytes % align != 0 || size_bytes == 0) {
    return parent->device().allocate(size_bytes);
  }
  struct Part {
    std::shared_ptr<Buffer> parent;
    Buffer buffer;  // destroyed first
  };
  pgr_buffer *const whole = parent->handle(), *handle = nullptr;
  d.calls.check("sub_buffer", [&](pgr_error* e) {
    return d.allocator_api.sub_buffer(d.handle, whole, offset_bytes, size_bytes, &handle, e);
  });
  try {
    auto* part = new Part{parent, {parent->device(), handle, size_bytes, kPartOfAnother, 0}};
    handle = nullptr;  // the part frees it
    const std::shared_ptr<Part> owner(part);
    return {owner, &part->buffer};
  } catch (...) {
    if (handle) d.calls.quietly("free", [&] { d.allocator_api.free(d.handle, handle); });
    throw;
  }
}

Device::Device(DeviceStatePtr state) : state_(std::move(state)) {}
Device::~Device() = default;

const std::string& Device::name() const {
  return state_->name;
}
const std::string& Device::plugin_name() const {
  return state_->plugin_name;
}
std::uint32_t Device::index() const {
  return state_->index;
}
const DeviceInfo& Device::info() const {
  return state_->info;
}
const pgr_device_caps& Device::caps() const {
  return state_->caps;
}
std::span<const std::string> Device::claims() const {
  return state_->claims;
}

// Errors: Unsupported if the size exceeds the device's largest buffer.
std::uint64_t Device::class_of(std::uint64_t size_bytes) const {
  const std::uint64_t most = state_->caps.max_buffer_bytes;
  if (most != 0 && size_bytes > most)
    fail(ErrorKind::Unsupported,
         "[alloc] {}: a buffer of {}, and the device's largest is {}; use smaller tensors, or "
         "another device",
         name(), format_size(size_bytes), format_size(most));
  std::uint64_t class_bytes =  // layers check the end of each buffer
      state_->keeps_nothing() ? std::max<std::uint64_t>(size_bytes, 1) : size_class(size_bytes);
  if (most != 0) class_bytes = std::min(class_bytes, std::max<std::uint64_t>(most, 1));
  return class_bytes;
}

std::shared_ptr<Buffer> Device::own(TakenBuffer taken, std::uint64_t size_bytes,
                                    std::uint64_t class_bytes, std::uint32_t flags) {
  try {
    return std::make_shared<Buffer>(*this, taken, size_bytes, class_bytes, flags);
  } catch (...) {
    state_->allocator->give(taken.handle, class_bytes, flags, taken.earlier.arrival);
    throw;
  }
}

std::shared_ptr<Buffer> Device::allocate(std::uint64_t size_bytes, std::uint32_t flags) {
  state_->calls.require_usable("alloc");
  const std::uint64_t class_bytes = class_of(size_bytes);
  return own(state_->allocator->take(class_bytes, flags), size_bytes, class_bytes, flags);
}

std::shared_ptr<Buffer> Device::allocate_for_host_bytes(std::uint64_t size_bytes) {
  if (!state_->timeline.is_kept()) return allocate(size_bytes);
  state_->calls.require_usable("alloc");
  const std::uint64_t class_bytes = class_of(size_bytes);
  return own(state_->allocator->take_idle(class_bytes), size_bytes, class_bytes, 0);
}

MemoryStats Device::memory_stats() const {
  return state_->allocator->stats();
}
void Device::reset_peak() {
  state_->allocator->reset_peak();
}
void Device::flush_allocator_cache() {
  state_->allocator->flush();
}
void Device::set_reclaim(Reclaim reclaim) {
  state_->allocator->set_reclaim(std::move(reclaim));
}

std::string Device::render(std::span<const std::byte> kernel_ir) {
  state_->calls.require_usable("render");
  const KernelIrScope scope(kernel_ir);
  return runtime::render(*state_, kernel_ir);
}

std::shared_ptr<Kernel> Device::compile(std::span<const std::byte> kernel_ir, std::string_view name,
                                        const CompileOptions& asked) {
  state_->calls.require_usable("compile");
  const CompileOptions options = options_on(caps(), asked);
  return state_->kernels.get(kernel_key(kernel_ir, name, options), options.keep,
                             [&] { return make_kernel(*this, kernel_ir, name, options); });
}

std::shared_ptr<Kernel> Device::compile_source(std::string_view source, std::string_view name,
                                               const CompileOptions& asked) {
  state_->calls.require_usable("compile");
  const CompileOptions options = options_on(caps(), asked);
  require(state_->has_renderer,
          "[{}] {} compiles kernel IR, not source text; give the kernel as IR or as an AST", name,
          this->name());
  return state_->kernels.get(kernel_key(as_bytes(source), name, options), options.keep,
                             [&] { return make_kernel_of_source(*this, source, name, options); });
}

std::string Device::compiler_identity() {
  state_->calls.require_usable("cache_identity");
  return runtime::compiler_identity(*state_);
}

CompileStats Device::compile_stats() const {
  const KernelCache& k = state_->kernels;
  return {k.compiled, k.from_disk, k.from_process, k.rejected, k.compile_ns};
}

const std::string& Device::code_identity() {
  state_->calls.require_usable("cache_identity");
  std::call_once(state_->identity_made, [&] { state_->identity = make_identity(*state_); });
  return state_->identity;
}

void Device::launch(const Kernel& kernel, const Launch& launch, std::uint64_t* time_ns) {
  DeviceState& d = *state_;
  d.calls.require_usable("launch");
  ensure(&kernel.device() == this, "[launch] kernel {} is of {}, not of {}", kernel.name(),
         kernel.device().name(), name());
  pgr_buffer* few[kInlineBuffers];
  std::vector<pgr_buffer*> many;
  pgr_buffer** handles = few;
  if (launch.buffers.size() > kInlineBuffers) {
    many.resize(launch.buffers.size());
    handles = many.data();
  }
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) handles[i] = launch.buffers[i]->handle();
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = handles;
  desc.buffer_count = static_cast<std::uint32_t>(launch.buffers.size());
  desc.scalars = launch.scalars.data();
  desc.scalar_count = static_cast<std::uint32_t>(launch.scalars.size());
  std::copy_n(launch.group_count.begin(), 3, desc.group_count);
  std::copy_n(launch.local_size.begin(), 3, desc.local_size);
  desc.timing = time_ns ? 1 : 0;
  const std::lock_guard lock(d.queue_mutex);
  const Timeline::Work work(d.timeline);
  const std::uint64_t submit_ns = tracing() ? monotonic_ns() : 0;
  d.calls.check(
      "launch", kernel.name(),
      [&](pgr_error* e) {
        return d.runner.launch(d.handle, nullptr, kernel.handle(), &desc, time_ns, e);
      },
      [&](pgr_status status) {
        return status == PGR_STATUS_LIMIT_EXCEEDED ? launch_sizes(desc, d.caps) : "";
      });
  if (submit_ns != 0) d.trace.launched(kernel, submit_ns, launch.origin, time_ns ? *time_ns : 0);
  if (!d.is_asynchronous) return;
  prepare_thread_for_exit();
  if (!time_ns) d.calls.in_flight().launched(kernel.name(), kernel.is_first_launch());
}

void Device::shut_down() {
  state_->shut_down();
}

void Device::synchronize() {
  DeviceState& d = *state_;
  d.calls.require_usable("synchronize");
  if (!offered(d.device.synchronize)) return;  // synchronous: everything has finished
  const std::uint64_t covered = d.is_asynchronous ? d.calls.in_flight().count() : 0;
  const std::uint64_t given = d.timeline.count();
  const std::uint64_t begin_ns = tracing() ? monotonic_ns() : 0;
  d.calls.check("synchronize", [&](pgr_error* e) { return d.device.synchronize(d.handle, e); });
  if (begin_ns != 0) d.trace.waited(begin_ns);
  if (covered) d.calls.in_flight().waited(covered);
  d.timeline.waited(given);
}

}  // namespace plugrad::runtime
