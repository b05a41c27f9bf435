// Puts guard bytes before and after every allocation and checks them when a buffer is freed or
// copied out and at every synchronize. The device allocates a larger buffer, of which the host gets
// a sub-buffer; if the plugin has no sub-buffers, the host gets the whole, with a guard at its end
// only.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "runtime/checks/layers.h"

namespace plugrad::runtime {
namespace {

constexpr uint64_t kGuardBytes = 256;

// Varies from byte to byte, so that a write of one repeated value is detected.
unsigned char guard_byte(uint64_t at) {
  return static_cast<unsigned char>(0xA5u ^ (at * 29u));
}

struct Guarded {
  pgr_buffer* whole = nullptr;  // the device's allocation
  uint64_t number = 0, front = 0, size = 0, back = 0;
  std::string last_kernel;  // last kernel launched with the buffer
};

class Redzone final : public Layer {
 public:
  Redzone(const DeviceTables& inner, uint64_t guard_bytes, const std::string& device_name)
      : Layer("redzone", device_name, inner),
        guard_bytes_(guard_bytes),
        device_align_(std::max(1u, caps_of(inner).buffer_align_bytes)) {}

  bool wants_every_free() const override { return true; }

  pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) override;
  void free(pgr_buffer* buffer) override;
  pgr_status copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                     uint64_t size, pgr_error* error) override {
    if (auto bad = outside(dst, offset, size, "copy_in", error)) return bad;
    const auto turn = turn_on(queue);
    return Layer::copy_in(queue, dst, offset, src, size, error);
  }
  pgr_status copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset, uint64_t size,
                      pgr_error* error) override {
    if (auto bad = outside(src, offset, size, "copy_out", error)) return bad;
    const std::string found = check(src);
    if (!found.empty()) return report(error, PGR_STATUS_INTERNAL, found);
    const auto turn = turn_on(queue);
    return Layer::copy_out(queue, dst, src, offset, size, error);
  }
  pgr_status copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                  uint64_t src_offset, uint64_t size, pgr_error* error) override {
    if (auto bad = outside(dst, dst_offset, size, "copy", error)) return bad;
    if (auto bad = outside(src, src_offset, size, "copy", error)) return bad;
    const auto turn = turn_on(queue);
    return Layer::copy(queue, dst, dst_offset, src, src_offset, size, error);
  }
  pgr_status fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                  const void* pattern, uint64_t pattern_bytes, pgr_error* error) override {
    if (auto bad = outside(dst, offset, size, "fill", error)) return bad;
    const auto turn = turn_on(queue);
    return Layer::fill(queue, dst, offset, size, pattern, pattern_bytes, error);
  }
  pgr_status sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                        pgr_error* error) override;
  pgr_status synchronize(pgr_error* error) override;
  pgr_status kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                    pgr_error* error) override;
  pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                    uint64_t* out_time_ns, pgr_error* error) override;
  pgr_status record(pgr_queue* queue, pgr_event** out, pgr_error* error) override {
    const auto turn = turn_on(queue);
    return Layer::record(queue, out, error);
  }
  pgr_status queue_wait(pgr_queue* queue, pgr_event* event, pgr_error* error) override {
    const auto turn = turn_on(queue);
    return Layer::queue_wait(queue, event, error);
  }
  pgr_status replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) override {
    const auto turn = turn_on(queue);
    return Layer::replay(queue, graph, error);
  }
  void closing() override {
    for (const std::string& found : check_all()) report(found);
  }

 private:
  struct Part {
    pgr_buffer* root;  // the host's buffer that contains it
    uint64_t size;
  };

  // Locks the device's own queue (NULL), which takes one call at a time: alloc and free, which
  // callers do not serialise, access guards on it too.
  std::unique_lock<std::mutex> turn_on(const pgr_queue* queue) {
    return queue ? std::unique_lock<std::mutex>() : std::unique_lock(own_queue_);
  }

  pgr_status outside(pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* call,
                     pgr_error* error);
  pgr_status write_guards(const Guarded& g, pgr_error* error);
  pgr_status write_guard(pgr_buffer* whole, uint64_t begin, uint64_t size, pgr_error* error);
  Guarded* root_of(pgr_buffer* buffer);
  /// The damage to the buffer's guards; empty if there is none. Repairs it, so that it is reported
  /// once.
  std::string check(pgr_buffer* buffer);
  std::string check_guards(const Guarded& g);
  std::string damage(const Guarded& g, uint64_t begin, uint64_t size);
  std::vector<std::string> check_all();

  const uint64_t guard_bytes_, device_align_;
  std::mutex mutex_, own_queue_;  // taken in this order
  uint64_t made_ = 0;
  std::unordered_map<pgr_buffer*, Guarded> buffers_;  // by the host's handle
  std::unordered_map<pgr_buffer*, Part> parts_;
  std::unordered_map<pgr_kernel*, std::string> kernel_names_;
};

pgr_status Redzone::alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) {
  const bool has_ranges = offered(inner_.allocator_api.sub_buffer);
  const uint64_t align = std::max({desc->align_bytes, device_align_, uint64_t{16}});
  Guarded g;
  g.size = desc->size_bytes;
  g.front = has_ranges ? (guard_bytes_ + align - 1) / align * align : 0;
  g.back = guard_bytes_;
  if (g.size > UINT64_MAX - g.front - g.back)
    return set_error(error, PGR_STATUS_OUT_OF_MEMORY, "larger than memory can be");
  pgr_alloc_desc larger = *desc;
  larger.size_bytes = g.front + g.size + g.back;
  pgr_status status = Layer::alloc(&larger, &g.whole, error);
  if (status != PGR_STATUS_OK) return status;
  pgr_buffer* given = g.whole;
  if (has_ranges) status = Layer::sub_buffer(g.whole, g.front, g.size, &given, error);
  if (status == PGR_STATUS_OK) status = write_guards(g, error);
  if (status != PGR_STATUS_OK) {
    if (given != g.whole) Layer::free(given);
    Layer::free(g.whole);
    return status;
  }
  std::lock_guard lock(mutex_);
  g.number = ++made_;
  buffers_[given] = std::move(g);
  *out = given;
  return PGR_STATUS_OK;
}

pgr_status Redzone::write_guards(const Guarded& g, pgr_error* error) {
  const pgr_status status = write_guard(g.whole, 0, g.front, error);
  return status ? status : write_guard(g.whole, g.front + g.size, g.back, error);
}

pgr_status Redzone::write_guard(pgr_buffer* whole, uint64_t begin, uint64_t size,
                                pgr_error* error) {
  if (size == 0) return PGR_STATUS_OK;
  std::vector<unsigned char> bytes(size);
  for (uint64_t i = 0; i < size; ++i) bytes[i] = guard_byte(begin + i);
  const auto turn = turn_on(nullptr);
  return Layer::copy_in(nullptr, whole, begin, bytes.data(), size, error);
}

void Redzone::free(pgr_buffer* buffer) {
  const std::string found = check(buffer);
  if (!found.empty()) report(found);
  pgr_buffer* whole = nullptr;
  {
    std::lock_guard lock(mutex_);
    parts_.erase(buffer);
    const auto at = buffers_.find(buffer);
    if (at != buffers_.end()) {
      whole = at->second.whole;
      buffers_.erase(at);
    }
  }
  Layer::free(buffer);
  if (whole && whole != buffer) Layer::free(whole);
}

pgr_status Redzone::sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                               pgr_error* error) {
  if (auto bad = outside(parent, offset, size, "sub_buffer", error)) return bad;
  const pgr_status status = Layer::sub_buffer(parent, offset, size, out, error);
  if (status != PGR_STATUS_OK) return status;
  std::lock_guard lock(mutex_);
  const auto part = parts_.find(parent);
  parts_[*out] = {part == parts_.end() ? parent : part->second.root, size};
  return status;
}

// The device itself would allow accesses to the guards.
pgr_status Redzone::outside(pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* call,
                            pgr_error* error) {
  uint64_t has = 0;
  {
    std::lock_guard lock(mutex_);
    if (const auto part = parts_.find(buffer); part != parts_.end()) {
      has = part->second.size;
    } else if (const auto at = buffers_.find(buffer); at != buffers_.end()) {
      has = at->second.size;
    } else {
      return PGR_STATUS_OK;  // not a buffer of this layer: the device checks it
    }
  }
  if (size <= has && offset <= has - size) return PGR_STATUS_OK;
  return report(error, PGR_STATUS_INVALID_ARGUMENT,
                fmt::format("{}: {} bytes at {} of a buffer of {}", call, size, offset, has));
}

Guarded* Redzone::root_of(pgr_buffer* buffer) {
  if (const auto part = parts_.find(buffer); part != parts_.end()) buffer = part->second.root;
  const auto at = buffers_.find(buffer);
  return at == buffers_.end() ? nullptr : &at->second;
}

std::string Redzone::check(pgr_buffer* buffer) {
  std::lock_guard lock(mutex_);
  const Guarded* g = root_of(buffer);
  return g ? check_guards(*g) : "";
}

std::string Redzone::check_guards(const Guarded& g) {
  std::string found = damage(g, 0, g.front);
  if (found.empty()) found = damage(g, g.front + g.size, g.back);
  if (!found.empty()) write_guards(g, nullptr);
  return found;
}

std::string Redzone::damage(const Guarded& g, uint64_t begin, uint64_t size) {
  if (size == 0) return "";
  std::vector<unsigned char> bytes(size);
  const auto turn = turn_on(nullptr);
  if (Layer::copy_out(nullptr, bytes.data(), g.whole, begin, size, nullptr) != PGR_STATUS_OK)
    return "";  // a lost device cannot be read
  uint64_t bad = 0;
  while (bad < size && bytes[bad] == guard_byte(begin + bad)) ++bad;
  if (bad == size) return "";
  const bool before = begin < g.front;
  const auto offset = static_cast<int64_t>(begin + bad) - static_cast<int64_t>(g.front);
  return fmt::format("{} was written {}: the first bad byte is at offset {} and holds 0x{:02x}; {}",
                     named("buffer", g.number, g.size),
                     before ? "before its begin" : "behind its end", offset, bytes[bad],
                     g.last_kernel.empty()
                         ? "no kernel was launched with it"
                         : "the last kernel launched with it is " + g.last_kernel);
}

std::vector<std::string> Redzone::check_all() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (const auto& [buffer, g] : buffers_)
    if (std::string one = check_guards(g); !one.empty()) found.push_back(std::move(one));
  return found;
}

pgr_status Redzone::synchronize(pgr_error* error) {
  const pgr_status status = Layer::synchronize(error);
  if (status != PGR_STATUS_OK) return status;
  pgr_status out = PGR_STATUS_OK;
  for (const std::string& found : check_all()) out = report(error, PGR_STATUS_INTERNAL, found);
  return out;
}

pgr_status Redzone::kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                           pgr_error* error) {
  const pgr_status status = Layer::kernel(program, name, out, error);
  if (status != PGR_STATUS_OK) return status;
  std::lock_guard lock(mutex_);
  kernel_names_[*out] = std::string(view(*name));
  return status;
}

pgr_status Redzone::launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                           uint64_t* out_time_ns, pgr_error* error) {
  {
    std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < desc->buffer_count; ++i)
      if (Guarded* g = root_of(desc->buffers[i])) g->last_kernel = kernel_names_[kernel];
  }
  const auto turn = turn_on(queue);
  return Layer::launch(queue, kernel, desc, out_time_ns, error);
}

}  // namespace

std::unique_ptr<Layer> make_redzone_layer(const DeviceTables& inner, const LayerChoice& choice,
                                          const std::string& device_name) {
  const auto bytes = choice.values.find("bytes");
  const uint64_t guard = bytes == choice.values.end() ? kGuardBytes : std::stoull(bytes->second);
  return std::make_unique<Redzone>(inner, std::max<uint64_t>(guard, 1), device_name);
}

}  // namespace plugrad::runtime
