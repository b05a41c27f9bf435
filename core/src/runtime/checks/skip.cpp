// Compiles kernels but runs nothing and allocates nothing, so that programs can be traced whose
// networks are larger than this machine (docs/scale.md). Every value read from the device is 0.
#include <cstring>

#include "runtime/checks/layers.h"

namespace plugrad::runtime {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{1} << 50;
// Replaces the hardware's name: times in such a trace are not those of the hardware.
constexpr std::string_view kName = "skip: nothing runs";

class Skip final : public Layer {
 public:
  Skip(const DeviceTables& inner, const std::string& device_name)
      : Layer("skip", device_name, inner) {}

  bool wants_every_launch() const override { return true; }

  pgr_status info(pgr_device_info* out, pgr_error* error) override {
    const pgr_status status = Layer::info(out, error);
    if (status != PGR_STATUS_OK) return status;
    out->memory_bytes = kMemoryBytes;
    out->name = {kName.data(), kName.size()};
    return status;
  }
  pgr_status caps(pgr_device_caps* out, pgr_error* error) override {
    const pgr_status status = Layer::caps(out, error);
    if (status == PGR_STATUS_OK) out->max_buffer_bytes = kMemoryBytes;
    return status;
  }
  pgr_status memory_stats(pgr_memory_stats* out, pgr_error*) override {
    out->total_bytes = out->free_bytes = kMemoryBytes;
    out->used_bytes = 0;
    return PGR_STATUS_OK;
  }

  /// A handle that no call reads.
  pgr_status alloc(const pgr_alloc_desc*, pgr_buffer** out, pgr_error*) override {
    *out = reinterpret_cast<pgr_buffer*>(new char);
    return PGR_STATUS_OK;
  }
  void free(pgr_buffer* buffer) override { delete reinterpret_cast<char*>(buffer); }
  pgr_status sub_buffer(pgr_buffer*, uint64_t, uint64_t, pgr_buffer** out, pgr_error*) override {
    return alloc(nullptr, out, nullptr);
  }
  pgr_status map(pgr_buffer*, void**, pgr_error*) override { return PGR_STATUS_UNSUPPORTED; }

  pgr_status copy_in(pgr_queue*, pgr_buffer*, uint64_t, const void*, uint64_t,
                     pgr_error*) override {
    return PGR_STATUS_OK;
  }
  pgr_status copy_out(pgr_queue*, void* dst, pgr_buffer*, uint64_t, uint64_t size,
                      pgr_error*) override {
    if (size != 0) std::memset(dst, 0, size);
    return PGR_STATUS_OK;
  }
  pgr_status copy(pgr_queue*, pgr_buffer*, uint64_t, pgr_buffer*, uint64_t, uint64_t,
                  pgr_error*) override {
    return PGR_STATUS_OK;
  }
  pgr_status fill(pgr_queue*, pgr_buffer*, uint64_t, uint64_t, const void*, uint64_t,
                  pgr_error*) override {
    return PGR_STATUS_OK;
  }
  pgr_status launch(pgr_queue*, pgr_kernel*, const pgr_launch_desc*, uint64_t* out_time_ns,
                    pgr_error*) override {
    if (out_time_ns != nullptr) *out_time_ns = 0;
    return PGR_STATUS_OK;
  }
};

}  // namespace

std::unique_ptr<Layer> make_skip_layer(const DeviceTables& inner, const LayerChoice&,
                                       const std::string& device_name) {
  return std::make_unique<Skip>(inner, device_name);
}

}  // namespace plugrad::runtime
