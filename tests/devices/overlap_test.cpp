// Overlap of host copies and kernels on asynchronous devices: copies need not wait for earlier
// launches, and results equal those of in-order execution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>

#include "devices/at_hand.h"
#include "plugrad/functional.h"
#include "plugrad/jit.h"
#include "plugrad/tensor.h"
#include "runtime/device/device_state.h"

using namespace plugrad;
using testing::ElementsAre;

namespace {

// REFERENCE with a thread as its queue: slow, so that wrong order is most likely detected.
std::vector<std::string> asynchronous_devices() {
  runtime::Registry& registry = runtime::Registry::instance();
  registry.set_plugin_options("REFERENCE", {{"withdraw", "synchrony"}});
  std::vector<std::string> names;
  for (const std::string& name : devices_at_hand())
    if (registry.find_device(name).state().is_asynchronous) names.push_back(name);
  return names;
}

// Larger than the steps of size_class, and different from the size of every kernel result.
constexpr int64_t kRows = 37, kColumns = 64;

std::vector<float> numbers(int seed) {
  std::vector<float> values(kRows * kColumns);
  std::iota(values.begin(), values.end(), static_cast<float>(seed * 1000));
  return values;
}

class Overlap : public testing::TestWithParam<std::string> {
 protected:
  runtime::Device& device() { return runtime::Registry::instance().find_device(GetParam()); }
  runtime::DeviceState& state() { return device().state(); }

  static double seconds(const std::function<void()>& act) {
    const auto begin = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  // Kernels that keep the device busy for about half a second, and an event after them.
  pgr_event* keep_busy() {
    constexpr double kEnough = 0.02;
    Tensor a, b;
    double one = 0;
    for (int64_t size = 64; one < kEnough && size <= 2048; size *= 2) {
      a = Tensor::full({size, size}, 1.0f / static_cast<float>(size), DType::F32, GetParam())
              .contiguous()
              .realize();
      b = matmul(a, a).realize();
      one = 1;
      for (int time = 0; time < 3; ++time) {
        device().synchronize();
        one = std::min(one, seconds([&] {
                         b = matmul(b, a).realize();
                         device().synchronize();
                       }));
      }
    }
    for (double planned = 0; planned < 0.5; planned += one) b = matmul(b, a).realize();
    pgr_event* event = nullptr;
    const std::lock_guard lock(state().queue_mutex);
    EXPECT_EQ(state().queue.record(state().handle, nullptr, &event, nullptr), PGR_STATUS_OK);
    return event;
  }
  bool is_busy(pgr_event* event) {
    return state().queue.event_wait(state().handle, event, 0, nullptr) == PGR_STATUS_TIMED_OUT;
  }
  void end(pgr_event* event) {
    device().synchronize();
    state().queue.event_destroy(state().handle, event);
  }
};

// The host's next data may be placed in memory that a kernel still reads.
TEST_P(Overlap, MemoryThatKernelsStillReadIsNotOverwritten) {
  std::vector<Tensor> sums;
  pgr_event* busy = nullptr;
  for (int step = -1; step < 12; ++step) {
    const Tensor x = Tensor::from(numbers(step), {kRows, kColumns}, GetParam());
    sums.push_back((x * 2).sum(1).realize());
    if (step == -1) busy = keep_busy();
  }
  for (int step = -1; step < 12; ++step) {
    const std::vector<float> got = sums[static_cast<size_t>(step + 1)].to_vector<float>();
    const float first = static_cast<float>(step * 1000);
    for (int64_t row : {int64_t{0}, kRows - 1}) {
      const float mean = first + static_cast<float>(row * kColumns) + (kColumns - 1) / 2.0f;
      EXPECT_FLOAT_EQ(got[static_cast<size_t>(row)], 2 * kColumns * mean) << step << ", " << row;
    }
  }
  end(busy);
}

TEST_P(Overlap, AReplayFindsTheBatchThatItWasGiven) {
  auto step = jit([](const Tensor& x) { return (x * 2).sum(1) + 1; });
  std::vector<Tensor> sums;
  pgr_event* busy = nullptr;
  for (int i = 0; i < 12; ++i) {
    sums.push_back(step(Tensor::from(numbers(i), {kRows, kColumns}, GetParam())));
    if (i == 3) busy = keep_busy();
  }
  for (int i = 0; i < 12; ++i)
    EXPECT_FLOAT_EQ(sums[static_cast<size_t>(i)].to_vector<float>()[0],
                    2 * kColumns * (static_cast<float>(i * 1000) + 31.5f) + 1)
        << i;
  end(busy);
}

// Without overlap the device is never busy at this point; with overlap the host may be delayed by
// other processes, so that several attempts are made.
bool is_ever(const std::function<bool()>& what) {
  for (int attempt = 0; attempt < 5; ++attempt)
    if (what()) return true;
  return false;
}

TEST_P(Overlap, TheHostHandsBytesOverWhileKernelsRun) {
  const auto hand_over = [&](int seed) {
    return (Tensor::from(numbers(seed), {kRows, kColumns}, GetParam()) + 1).realize();
  };
  hand_over(1);  // compiles
  EXPECT_TRUE(is_ever([&] {
    pgr_event* const busy = keep_busy();
    const Tensor y = hand_over(2);
    const bool works_still = is_busy(busy);
    EXPECT_EQ(y.to_vector<float>()[5], 2006.0f);
    end(busy);
    return works_still;
  })) << "the copy waited for all that was launched before";
}

TEST_P(Overlap, AValueThatIsThereIsReadWhileLaterKernelsRun) {
  EXPECT_TRUE(is_ever([&] {
    Tensor y = (Tensor::from(numbers(3), {kRows, kColumns}, GetParam()) * 3).realize();
    pgr_event* const busy = keep_busy();
    EXPECT_EQ(y.to_vector<float>()[1], 9003.0f);
    const bool works_still = is_busy(busy);
    end(busy);
    return works_still;
  })) << "reading waited for what came behind the value";
}

// The value of a replay that was computed in the previous one's memory.
TEST_P(Overlap, AValueThatIsWrittenAgainIsReadAsItIsThen) {
  Tensor weight = Tensor::zeros({kRows, kColumns}, DType::F32, GetParam()).contiguous().realize();
  auto step = jit([&](const Tensor& x) {
    weight.assign(weight + x);
    return Tensor(weight.sum());
  });
  const Tensor one = Tensor::ones({kRows, kColumns}, DType::F32, GetParam()).contiguous().realize();
  for (int i = 0; i < 4; ++i) step(one);
  pgr_event* const busy = keep_busy();
  for (int i = 4; i < 8; ++i) step(one);
  EXPECT_EQ(weight.to_vector<float>()[7], 8.0f);
  EXPECT_EQ(step(one).item<float>(), 9.0f * kRows * kColumns);
  end(busy);
}

// After data is handed over and dropped, the next user of its memory is ordered after it.
TEST_P(Overlap, MemoryOfADroppedCopyIsUsedBehindIt) {
  pgr_event* const busy = keep_busy();
  const std::vector<float> old = numbers(1), fresh = numbers(2);
  const uint64_t bytes = old.size() * sizeof(float);
  pgr_buffer* first = nullptr;
  {
    const auto dropped = device().allocate_for_host_bytes(bytes);
    dropped->copy_in(old.data(), bytes);
    first = dropped->plain_handle();
  }
  const auto buffer = device().allocate(bytes);
  EXPECT_EQ(buffer->plain_handle(), first);
  buffer->copy_in(fresh.data(), bytes);
  std::vector<float> got(old.size());
  buffer->copy_out(got.data(), bytes);
  EXPECT_EQ(got, fresh);
  end(busy);
}

// Records the calls of a device in order: "copy 2", "record 2", "wait 1", "launch 1" with the
// queue's number.
class Recorder {
 public:
  explicit Recorder(runtime::DeviceState& device) : device_(device), tables_(device) {
    recorder = this;
    device.allocator_api.copy_in = [](pgr_device* d, pgr_queue* q, pgr_buffer* dst, uint64_t at,
                                      const void* src, uint64_t size, pgr_error* e) {
      recorder->note("copy", q);
      return recorder->tables_.allocator_api.copy_in(d, q, dst, at, src, size, e);
    };
    device.queue.record = [](pgr_device* d, pgr_queue* q, pgr_event** out, pgr_error* e) {
      recorder->note("record", q);
      return recorder->tables_.queue.record(d, q, out, e);
    };
    device.queue.wait = [](pgr_device* d, pgr_queue* q, pgr_event* event, pgr_error* e) {
      recorder->note("wait", q);
      return recorder->tables_.queue.wait(d, q, event, e);
    };
    device.runner.launch = [](pgr_device* d, pgr_queue* q, pgr_kernel* k, const pgr_launch_desc* l,
                              uint64_t* t, pgr_error* e) {
      recorder->note("launch", q);
      return recorder->tables_.runner.launch(d, q, k, l, t, e);
    };
  }
  ~Recorder() {
    static_cast<runtime::DeviceTables&>(device_) = tables_;
    recorder = nullptr;
  }
  std::vector<std::string> take() { return std::exchange(said_, {}); }

 private:
  void note(const std::string& what, pgr_queue* queue) {
    said_.push_back(what + (queue ? " 2" : " 1"));
  }
  static inline Recorder* recorder = nullptr;
  runtime::DeviceState& device_;
  const runtime::DeviceTables tables_;
  std::vector<std::string> said_;
};

// The points at which memory is last used may be recorded at any time, and are left out.
std::vector<std::string> without_records(std::vector<std::string> said) {
  std::erase(said, "record 1");
  return said;
}

TEST_P(Overlap, KernelsAreToldToWaitForCopiesAndCopiesForKernels) {
  const auto compute = [&](int seed) {
    return (Tensor::from(numbers(seed), {kRows, kColumns}, GetParam()) * 5).sum(1).realize();
  };
  compute(0);
  EXPECT_TRUE(is_ever([&] {
    pgr_event* const busy = keep_busy();
    device().flush_allocator_cache();
    std::vector<Tensor> held;
    std::vector<std::string> last;
    {
      Recorder recorder(state());
      held.push_back(compute(1));
      EXPECT_THAT(without_records(recorder.take()),
                  ElementsAre("copy 2", "record 2", "wait 1", "launch 1"))
          << "new memory is filled at once";
      for (int seed = 2; seed < 6; ++seed) held.push_back(compute(seed));
      recorder.take();
      held.push_back(compute(6));
      last = without_records(recorder.take());
    }
    EXPECT_EQ(held.back().to_vector<float>()[0], 5 * kColumns * 6031.5f);
    end(busy);
    return last == std::vector<std::string>{"wait 2", "copy 2", "record 2", "wait 1", "launch 1"};
  })) << "memory that a kernel may read still is filled behind it";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Overlap);
INSTANTIATE_TEST_SUITE_P(Devices, Overlap, testing::ValuesIn(asynchronous_devices()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
