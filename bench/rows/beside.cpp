// Measures how long the host waits for copies while a device is busy.

#include <vector>

#include "bench/harness.h"
#include "bench/row.h"
#include "plugrad/functional.h"
#include "runtime/device/device_state.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

constexpr uint64_t kBatchBytes = 512 * 28 * 28 * sizeof(float);
constexpr int kKernels = 8;  // in flight when the copy is made
const char* const kInOrder = "in the order of the queue";

// Submits kernels for some milliseconds, and returns before they complete.
class Work {
 public:
  Work() : a_(Tensor::rand({384, 384}).contiguous().realize()) { give(); }
  void give() {
    Tensor b = a_;
    for (int i = 0; i < kKernels; ++i) b = matmul(b, a_).realize();
  }

 private:
  Tensor a_;
};

// Seconds of the copy alone.
Round while_working(runtime::Device& device, Work& work, const std::function<void()>& copy) {
  return [&device, &work, copy] {
    device.synchronize();
    work.give();
    const double seconds = time_of(copy);
    device.synchronize();
    return seconds;
  };
}

// Without queues nothing runs concurrently, and there is no peer.
void compare_copies(const Report& report, runtime::Device& device, Work& work, const char* name,
                    const std::function<void()>& beside, const std::function<void()>& in_order) {
  const std::vector<Timing> timings = measure(
      {while_working(device, work, beside), while_working(device, work, in_order)}, {.least = 15});
  Result result{.name = name, .value = timings[0].median * 1e6, .unit = "us"};
  if (device.state().is_asynchronous) result.peer = Peer{kInOrder, timings[1].median * 1e6};
  result.higher_is_better = false;
  report(result);
}

void report_copies_beside_kernels(const Report& report) {
  runtime::Device& device = runtime::Registry::instance().default_device();
  Work work;
  std::vector<std::byte> bytes(kBatchBytes, std::byte{1});
  compare_copies(
      report, device, work, "batch of 1.6 MB handed over while kernels run",
      [&] { device.allocate_for_host_bytes(kBatchBytes)->copy_in(bytes.data(), kBatchBytes); },
      [&] { device.allocate(kBatchBytes)->copy_in(bytes.data(), kBatchBytes); });
  const auto loss = device.allocate(sizeof(float)), other = device.allocate(sizeof(float));
  loss->copy_in(bytes.data(), sizeof(float));
  other->copy_in(bytes.data(), sizeof(float));
  loss->note_written();
  compare_copies(
      report, device, work, "value read while later kernels run",
      [&] { loss->copy_out(bytes.data(), sizeof(float)); },
      [&] { other->copy_out(bytes.data(), sizeof(float)); });
}

}  // namespace

Row beside_row() {
  return reporting(
      {"batch of 1.6 MB handed over while kernels run", "value read while later kernels run"},
      report_copies_beside_kernels);
}

}  // namespace plugrad::bench
