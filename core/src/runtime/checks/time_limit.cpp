// Abandons calls that exceed PLUGRAD_DEVICE_TIMEOUT: the caller gets DEVICE_LOST, and the device is
// not called again. The abandoned call continues, so everything it may access stays: it owns copies
// of its arguments, and the device, the layers below and the plugin are never closed.
#include <atomic>
#include <chrono>
#include <cstring>
#include <span>

#include "base/check.h"
#include "runtime/checks/layers.h"
#include "runtime/checks/limited_call.h"
#include "runtime/checks/owned_arguments.h"

namespace plugrad::runtime {
namespace {

class TimeLimit final : public Layer {
 public:
  TimeLimit(const DeviceTables& inner, double seconds, const std::string& device_name)
      : Layer("time limit", device_name, inner),
        seconds_(seconds),
        limit_(static_cast<int64_t>(seconds * 1e9)) {}

  bool is_hung() const override { return is_hung_; }

  pgr_status info(pgr_device_info* out, pgr_error* error) override {
    return give(out, error, [this](auto* to, pgr_error* e) { return Layer::info(to, e); });
  }
  pgr_status caps(pgr_device_caps* out, pgr_error* error) override {
    return give(out, error, [this](auto* to, pgr_error* e) { return Layer::caps(to, e); });
  }
  pgr_status memory_stats(pgr_memory_stats* out, pgr_error* error) override {
    return give(out, error, [this](auto* to, pgr_error* e) { return Layer::memory_stats(to, e); });
  }
  pgr_status health(uint32_t* out, pgr_error* error) override {
    return give(out, error, [this](auto* to, pgr_error* e) { return Layer::health(to, e); });
  }
  pgr_status synchronize(pgr_error* error) override {
    return run(error, [this](pgr_error* e) { return Layer::synchronize(e); });
  }

  pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) override {
    return give(out, error,
                [this, own = *desc](auto* to, pgr_error* e) { return Layer::alloc(&own, to, e); });
  }
  void free(pgr_buffer* buffer) override {
    quietly([this, buffer] { Layer::free(buffer); });
  }
  pgr_status copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                     uint64_t size, pgr_error* error) override {
    const auto own = std::make_shared<Bytes>(copy_of(src, size));
    return run(error, [=, this](pgr_error* e) {
      return Layer::copy_in(queue, dst, offset, own->data(), size, e);
    });
  }
  pgr_status copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset, uint64_t size,
                      pgr_error* error) override {
    const auto own = std::make_shared<Bytes>(size);
    const pgr_status status = run(error, [=, this](pgr_error* e) {
      return Layer::copy_out(queue, own->data(), src, offset, size, e);
    });
    if (status == PGR_STATUS_OK && size) std::memcpy(dst, own->data(), size);
    return status;
  }
  pgr_status copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                  uint64_t src_offset, uint64_t size, pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) {
      return Layer::copy(queue, dst, dst_offset, src, src_offset, size, e);
    });
  }
  pgr_status fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                  const void* pattern, uint64_t pattern_bytes, pgr_error* error) override {
    const auto own = std::make_shared<Bytes>(copy_of(pattern, pattern_bytes));
    return run(error, [=, this](pgr_error* e) {
      return Layer::fill(queue, dst, offset, size, own->data(), pattern_bytes, e);
    });
  }
  pgr_status map(pgr_buffer* buffer, void** out, pgr_error* error) override {
    return give(out, error,
                [this, buffer](auto* to, pgr_error* e) { return Layer::map(buffer, to, e); });
  }
  pgr_status unmap(pgr_buffer* buffer, pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) { return Layer::unmap(buffer, e); });
  }
  pgr_status sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                        pgr_error* error) override {
    return give(out, error, [=, this](auto* to, pgr_error* e) {
      return Layer::sub_buffer(parent, offset, size, to, e);
    });
  }

  pgr_status render(const pgr_render_desc* desc, pgr_blob* out, pgr_error* error) override {
    const auto ir = std::make_shared<Bytes>(copy_of(desc->ir, desc->ir_bytes));
    const auto options =
        std::make_shared<OwnOptions>(desc->options, desc->option_count, desc->option_stride);
    pgr_render_desc own = *desc;
    own.ir = ir->data();
    own.options = options->options.data();
    own.option_stride = sizeof(pgr_option);
    return give(out, error, [this, ir, options, own](auto* to, pgr_error* e) {
      return Layer::render(&own, to, e);
    });
  }
  pgr_status compile(const pgr_compile_desc* desc, pgr_blob* binary, pgr_blob* log,
                     pgr_error* error) override {
    const auto input = std::make_shared<Bytes>(copy_of(desc->input, desc->input_bytes));
    const auto name = std::make_shared<std::string>(view(desc->name));
    const auto options =
        std::make_shared<OwnOptions>(desc->options, desc->option_count, desc->option_stride);
    pgr_compile_desc own = *desc;
    own.input = input->data();
    own.name = c_string(*name);
    own.options = options->options.data();
    own.option_stride = sizeof(pgr_option);
    struct Blobs {
      pgr_blob binary, log;
    } blobs{*binary, pgr_blob{}};
    if (log) blobs.log = *log;
    const bool has_log = log != nullptr;
    const pgr_status status =
        give(&blobs, error, [this, input, name, options, own, has_log](auto* to, pgr_error* e) {
          return Layer::compile(&own, &to->binary, has_log ? &to->log : nullptr, e);
        });
    *binary = blobs.binary;
    if (log) *log = blobs.log;
    return status;
  }
  pgr_status cache_identity(pgr_blob* out, pgr_error* error) override {
    return give(out, error,
                [this](auto* to, pgr_error* e) { return Layer::cache_identity(to, e); });
  }
  pgr_status validate(const void* binary, uint64_t size, uint32_t* out, pgr_error* error) override {
    const auto own = std::make_shared<Bytes>(copy_of(binary, size));
    return give(out, error, [this, own](auto* to, pgr_error* e) {
      return Layer::validate(own->data(), own->size(), to, e);
    });
  }
  pgr_status disassemble(const void* binary, uint64_t size, pgr_blob* out,
                         pgr_error* error) override {
    const auto own = std::make_shared<Bytes>(copy_of(binary, size));
    return give(out, error, [this, own](auto* to, pgr_error* e) {
      return Layer::disassemble(own->data(), own->size(), to, e);
    });
  }

  pgr_status load(const void* binary, uint64_t size, pgr_program** out, pgr_error* error) override {
    const auto own = std::make_shared<Bytes>(copy_of(binary, size));
    const std::span<const std::byte> current = KernelIrScope::current();
    const auto ir = std::make_shared<Bytes>(current.begin(), current.end());
    return give(out, error, [this, own, ir](auto* to, pgr_error* e) {
      const KernelIrScope scope(*ir);
      return Layer::load(own->data(), own->size(), to, e);
    });
  }
  pgr_status kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                    pgr_error* error) override {
    const std::span<const std::byte> current = KernelIrScope::current();
    const auto ir = std::make_shared<Bytes>(current.begin(), current.end());
    const std::function<std::string()> ast = [text = KernelAstScope::current()] { return text; };
    return give(out, error,
                [this, program, ir, ast, own = std::string(view(*name))](auto* to, pgr_error* e) {
                  const KernelIrScope ir_scope(*ir);
                  const KernelAstScope ast_scope(ast);
                  const pgr_string text = c_string(own);
                  return Layer::kernel(program, &text, to, e);
                });
  }
  pgr_status limits(pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error) override {
    return give(out, error,
                [=, this](auto* to, pgr_error* e) { return Layer::limits(kernel, to, e); });
  }
  pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                    uint64_t* out_time_ns, pgr_error* error) override {
    const auto own = std::make_shared<OwnLaunch>(*desc);
    const bool timed = out_time_ns != nullptr;
    uint64_t unused = 0;
    return give(timed ? out_time_ns : &unused, error, [=, this](auto* to, pgr_error* e) {
      return Layer::launch(queue, kernel, &own->desc, timed ? to : nullptr, e);
    });
  }
  void unload(pgr_program* program) override {
    quietly([this, program] { Layer::unload(program); });
  }

  pgr_status queue_create(pgr_queue** out, pgr_error* error) override {
    return give(out, error, [this](auto* to, pgr_error* e) { return Layer::queue_create(to, e); });
  }
  pgr_status queue_finish(pgr_queue* queue, pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) { return Layer::queue_finish(queue, e); });
  }
  pgr_status record(pgr_queue* queue, pgr_event** out, pgr_error* error) override {
    return give(out, error,
                [=, this](auto* to, pgr_error* e) { return Layer::record(queue, to, e); });
  }
  pgr_status queue_wait(pgr_queue* queue, pgr_event* event, pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) { return Layer::queue_wait(queue, event, e); });
  }
  pgr_status event_wait(pgr_event* event, uint64_t timeout_ns, pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) { return Layer::event_wait(event, timeout_ns, e); });
  }
  pgr_status event_time(pgr_event* event, uint64_t* out_ns, pgr_error* error) override {
    return give(out_ns, error,
                [=, this](auto* to, pgr_error* e) { return Layer::event_time(event, to, e); });
  }
  pgr_status graph_build(const pgr_graph_node* nodes, uint32_t count, uint32_t stride,
                         pgr_graph** out, pgr_error* error) override {
    const auto own = std::make_shared<OwnNodes>(nodes, count, stride);
    return give(out, error, [=, this](auto* to, pgr_error* e) {
      return Layer::graph_build(own->nodes.data(), count, sizeof(pgr_graph_node), to, e);
    });
  }
  pgr_status patch_buffer(pgr_graph* graph, uint32_t node, uint32_t slot, pgr_buffer* buffer,
                          pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) {
      return Layer::patch_buffer(graph, node, slot, buffer, e);
    });
  }
  pgr_status patch_scalar(pgr_graph* graph, uint32_t node, uint32_t slot, uint64_t bits,
                          pgr_error* error) override {
    return run(error,
               [=, this](pgr_error* e) { return Layer::patch_scalar(graph, node, slot, bits, e); });
  }
  pgr_status replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) override {
    return run(error, [=, this](pgr_error* e) { return Layer::replay(queue, graph, e); });
  }
  pgr_status calibrate(uint64_t* device_ns, uint64_t* host_ns, uint64_t* error_ns,
                       pgr_error* error) override {
    struct Times {
      uint64_t device, host, error;
    } times{};
    const pgr_status status = give(&times, error, [this](auto* to, pgr_error* e) {
      return Layer::calibrate(&to->device, &to->host, &to->error, e);
    });
    if (status != PGR_STATUS_OK) return status;
    *device_ns = times.device;
    *host_ns = times.host;
    *error_ns = times.error;
    return status;
  }
  pgr_status counter(uint32_t index, pgr_counter* out, pgr_error* error) override {
    return give(out, error,
                [=, this](auto* to, pgr_error* e) { return Layer::counter(index, to, e); });
  }
  void queue_destroy(pgr_queue* queue) override {
    quietly([=, this] { Layer::queue_destroy(queue); });
  }
  void event_destroy(pgr_event* event) override {
    quietly([=, this] { Layer::event_destroy(event); });
  }
  void graph_destroy(pgr_graph* graph) override {
    quietly([=, this] { Layer::graph_destroy(graph); });
  }

 private:
  // `call` captures by value, as it may outlive its caller.
  template <class Call>
  pgr_status run(pgr_error* error, Call call) {
    bool has_returned = false;
    return run(error, std::move(call), has_returned);
  }
  pgr_status run(pgr_error* error, DeviceCall call, bool& has_returned) {
    if (!is_hung_) {
      const std::optional<pgr_status> status = run_limited(std::move(call), limit_, error);
      has_returned = status.has_value();
      if (status) return *status;
      is_hung_ = true;
    }
    return set_error(
        error, PGR_STATUS_DEVICE_LOST,
        fmt::format("a call did not return within the {} s of PLUGRAD_DEVICE_TIMEOUT", seconds_));
  }

  /// Runs call(copy of *out, error); copies the result back if the call has returned.
  template <class Out, class Call>
  pgr_status give(Out* out, pgr_error* error, Call call) {
    const auto own = std::make_shared<Out>(*out);
    bool has_returned = false;
    const pgr_status status =
        run(error, [own, call](pgr_error* e) { return call(own.get(), e); }, has_returned);
    if (has_returned) *out = *own;
    return status;
  }

  template <class Call>
  void quietly(Call call) {
    run(nullptr, [call = std::move(call)](pgr_error*) {
      call();
      return pgr_status{PGR_STATUS_OK};
    });
  }

  const double seconds_;
  const std::chrono::nanoseconds limit_;
  std::atomic<bool> is_hung_{false};
};

}  // namespace

std::unique_ptr<Layer> make_time_limit_layer(const DeviceTables& inner, double seconds,
                                             const std::string& device_name) {
  return std::make_unique<TimeLimit>(inner, seconds, device_name);
}

}  // namespace plugrad::runtime
