// Injects faults into a working device: the n-th allocation, compilation, load, launch, copy or
// synchronisation fails with a given status, or all calls from the n-th on.
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "base/check.h"
#include "runtime/checks/layers.h"

namespace plugrad::runtime {
namespace {

// Parses "3", "3+" (and all later), "3@TIMED_OUT", "3@12345" (an undefined code), "3@THROW",
// "3@HANG".
struct Fault {
  uint64_t first = 0;  // counted from 1; 0: never
  bool and_later = false;
  bool throws = false, hangs = false;
  pgr_status status = PGR_STATUS_INTERNAL;
};

std::optional<pgr_status> status_of(std::string_view text) {
#define PLUGRAD_ROW(NAME, number, meaning) \
  if (text == #NAME) return number;
  PGR_STATUSES(PLUGRAD_ROW)
#undef PLUGRAD_ROW
  pgr_status code = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), code);
  return bad == std::errc() && end == text.data() + text.size() && code != 0 ? std::optional(code)
                                                                             : std::nullopt;
}

std::optional<Fault> parse_fault(std::string_view text, pgr_status by_default) {
  Fault out;
  out.status = by_default;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out.first);
  if (bad != std::errc() || out.first == 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('+')) {
    out.and_later = true;
    text.remove_prefix(1);
  }
  if (text.empty()) return out;
  if (!text.starts_with('@')) return std::nullopt;
  text.remove_prefix(1);
  out.throws = text == "THROW";
  out.hangs = text == "HANG";
  if (out.throws || out.hangs) return out;
  const std::optional<pgr_status> status = status_of(text);
  if (!status || *status == PGR_STATUS_OK) return std::nullopt;
  out.status = *status;
  return out;
}

// A function that can be made to fail.
class Point {
 public:
  Point(const LayerChoice& choice, const char* key, pgr_status by_default) : key_(key) {
    const auto found = choice.values.find(key);
    if (found != choice.values.end())
      fault_ = parse_fault(found->second, by_default).value_or(Fault{});
  }
  /// Counts the call. Returns its fault, or null.
  const Fault* count() {
    const uint64_t now = ++calls_;
    const bool hit =
        fault_.first != 0 && (now == fault_.first || (fault_.and_later && now > fault_.first));
    last_ = now;
    return hit ? &fault_ : nullptr;
  }
  std::string message() const {
    return fmt::format("{} number {} fails because the layer \"faults\" was asked for it", key_,
                       last_.load());
  }

 private:
  const char* const key_;
  Fault fault_;
  std::atomic<uint64_t> calls_{0}, last_{0};
};

class Faults final : public Layer {
 public:
  Faults(const DeviceTables& inner, const LayerChoice& choice, const std::string& device_name)
      : Layer("faults", device_name, inner),
        alloc_(choice, "alloc", PGR_STATUS_OUT_OF_MEMORY),
        compile_(choice, "compile", PGR_STATUS_COMPILE_FAILED),
        load_(choice, "load", PGR_STATUS_BAD_BINARY),
        launch_(choice, "launch", PGR_STATUS_LAUNCH_FAILED),
        copy_(choice, "copy", PGR_STATUS_INTERNAL),
        synchronize_(choice, "synchronize", PGR_STATUS_INTERNAL),
        lost_(choice, "lost", PGR_STATUS_DEVICE_LOST) {}

  pgr_status health(uint32_t* out, pgr_error* error) override {
    if (!is_lost_) return Layer::health(out, error);
    *out = PGR_HEALTH_LOST;
    return PGR_STATUS_OK;
  }
  pgr_status synchronize(pgr_error* error) override {
    const pgr_status status = fault_of(synchronize_, error);
    return status ? status : Layer::synchronize(error);
  }
  pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) override {
    const pgr_status status = fault_of(alloc_, error);
    return status ? status : Layer::alloc(desc, out, error);
  }
  pgr_status copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                     uint64_t size, pgr_error* error) override {
    const pgr_status status = fault_of(copy_, error);
    return status ? status : Layer::copy_in(queue, dst, offset, src, size, error);
  }
  pgr_status copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset, uint64_t size,
                      pgr_error* error) override {
    const pgr_status status = fault_of(copy_, error);
    return status ? status : Layer::copy_out(queue, dst, src, offset, size, error);
  }
  pgr_status copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                  uint64_t src_offset, uint64_t size, pgr_error* error) override {
    const pgr_status status = fault_of(copy_, error);
    return status ? status : Layer::copy(queue, dst, dst_offset, src, src_offset, size, error);
  }
  pgr_status fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                  const void* pattern, uint64_t pattern_bytes, pgr_error* error) override {
    const pgr_status status = fault_of(copy_, error);
    return status ? status : Layer::fill(queue, dst, offset, size, pattern, pattern_bytes, error);
  }
  pgr_status compile(const pgr_compile_desc* desc, pgr_blob* binary, pgr_blob* log,
                     pgr_error* error) override {
    const pgr_status status = fault_of(compile_, error);
    return status ? status : Layer::compile(desc, binary, log, error);
  }
  pgr_status load(const void* binary, uint64_t size, pgr_program** out, pgr_error* error) override {
    const pgr_status status = fault_of(load_, error);
    return status ? status : Layer::load(binary, size, out, error);
  }
  pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                    uint64_t* out_time_ns, pgr_error* error) override {
    const pgr_status status = fault_of(launch_, error);
    return status ? status : Layer::launch(queue, kernel, desc, out_time_ns, error);
  }

  pgr_status queue_finish(pgr_queue* queue, pgr_error* error) override {
    const pgr_status status = fault_of(synchronize_, error);
    return status ? status : Layer::queue_finish(queue, error);
  }
  pgr_status event_wait(pgr_event* event, uint64_t timeout_ns, pgr_error* error) override {
    const pgr_status status = fault_of(synchronize_, error);
    return status ? status : Layer::event_wait(event, timeout_ns, error);
  }
  pgr_status replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) override {
    const pgr_status status = fault_of(launch_, error);
    return status ? status : Layer::replay(queue, graph, error);
  }

 private:
  static void meet(const Fault& fault, const Point& point) {
    if (fault.throws) throw std::runtime_error(point.message());
    while (fault.hangs) pause();
  }

  // OK if the call may go on to the device. A lost device stays lost.
  pgr_status fault_of(Point& point, pgr_error* error) {
    if (const Fault* fault = lost_.count()) {
      is_lost_ = true;
      meet(*fault, lost_);
    }
    if (is_lost_)
      return set_error(error, PGR_STATUS_DEVICE_LOST,
                       "the layer \"faults\" was asked to lose the device");
    const Fault* fault = point.count();
    if (!fault) return PGR_STATUS_OK;
    meet(*fault, point);
    return set_error(error, fault->status, point.message());
  }

  Point alloc_, compile_, load_, launch_, copy_, synchronize_;
  Point lost_;  // counts every call of the others
  std::atomic<bool> is_lost_{false};
};

}  // namespace

std::string faults_value_error(std::string_view, std::string_view value) {
  if (parse_fault(value, PGR_STATUS_INTERNAL)) return "";
  return "it takes N, N+ (and all later ones), N@STATUS, N@THROW or N@HANG, counted from 1: 3, "
         "1+@TIMED_OUT";
}

std::unique_ptr<Layer> make_faults_layer(const DeviceTables& inner, const LayerChoice& choice,
                                         const std::string& device_name) {
  return std::make_unique<Faults>(inner, choice, device_name);
}

}  // namespace plugrad::runtime
