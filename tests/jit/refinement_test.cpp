// Replays try other schedules of their kernels: values stay equal, faster schedules are kept and
// stored. The test sets the duration of launches; no result depends on the clock.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/settings.h"
#include "codegen/codegen.h"
#include "engine/refine/candidates.h"
#include "engine/refine/promotion.h"
#include "jit/jit_test.h"
#include "tuning/schedule_database.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

using engine::ReadyKernel;
using List = codegen::KernelSchedule;

// The full schedule of the first kernel that a test launches, and the duration of all other launches.
struct Times {
  std::string first;
  std::atomic<uint64_t> others_ns{500'000};
};
Times times;

uint64_t time_of(const ReadyKernel& kernel) {
  const std::string list = codegen::to_string(kernel.code.schedule);
  if (times.first.empty() && !kernel.promotion) times.first = list;
  return list == times.first ? 1'000'000 : times.others_ns.load();
}

class Refinement : public testing::Test {
 protected:
  Refinement()
      : scope_([&](Settings& s) {
          s.tune = true;
          s.schedule_database = directory_.path() + "/found.tsv";
        }) {
    times.first.clear();
    times.others_ns = 500'000;
    engine::set_launch_times(time_of);
    engine::set_promotion_price(0);
  }
  ~Refinement() override {
    engine::set_launch_times(nullptr);
    engine::set_promotion_price(20e-3);
  }

  // A function of a unique size, so that its kernel is compiled anew.
  static Tensor input(int64_t rows, int64_t columns) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
    return Tensor::from(values, {rows, columns}).realize();
  }

  // Until the database has `count` records; each call is checked by `call`.
  std::vector<tuning::ScheduleRecord> replay(size_t count, const std::function<void()>& call) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
      call();
      if (tuning::schedule_database().all().size() >= count) break;
      if (i > 20) std::this_thread::sleep_for(5ms);
    }
    return tuning::schedule_database().all();
  }

  const TemporaryDirectory directory_;
  const SettingScope scope_;
};

// Whole numbers: any order of the sums gives these very values.
std::vector<float> product(const std::vector<float>& x, const std::vector<float>& y, int64_t m,
                           int64_t k, int64_t n) {
  std::vector<float> out(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += x[static_cast<size_t>(i * k + l)] * y[static_cast<size_t>(l * n + j)];
      out[static_cast<size_t>(i * n + j)] = sum;
    }
  return out;
}

}  // namespace

TEST_F(Refinement, TakesAFasterScheduleAndKeepsIt) {
  const Tensor x = input(93, 101), y = input(101, 87);
  const std::vector<float> want = product(floats(x), floats(y), 93, 101, 87);
  auto f = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b); });
  const auto records = replay(1, [&] { EXPECT_EQ(floats(f(x, y)), want); });
  ASSERT_EQ(records.size(), 1u);
  EXPECT_NE(records[0].list, times.first);
  EXPECT_GT(records[0].tried, 0u);
  EXPECT_DOUBLE_EQ(records[0].seconds, 0.5e-3);
  EXPECT_DOUBLE_EQ(records[0].first_seconds, 1e-3);
}

TEST_F(Refinement, KeepsTheKernelThatNothingBeats) {
  times.others_ns = 990'000;  // within what clocks differ by
  const Tensor x = input(94, 101), y = input(101, 87);
  auto f = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b); });
  const auto records = replay(1, [&] { f(x, y).realize(); });
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].list, times.first);
  EXPECT_DOUBLE_EQ(records[0].seconds, 1e-3);
}

// Each replay halves and adds to the stored value of the previous one: a candidate that ran on the
// tensor itself would change the result.
TEST_F(Refinement, RunsOnCopiesOfWhatAKernelOverwrites) {
  Tensor x = Tensor::full({301, 307}, 1024.0, DType::F32).contiguous().realize();
  const Tensor one = Tensor::full({301, 307}, 1.0, DType::F32).contiguous().realize();
  auto f = jit([&](const Tensor& a) {
    x.assign(x * 0.5 + a);
    return x.sum();
  });
  double want = 1024;
  replay(1, [&] {
    const double sum = f(one).item<double>();
    want = want * 0.5 + 1;
    EXPECT_NEAR(sum / (301 * 307), want, 1e-4 * want);
  });
  EXPECT_NEAR(floats(x)[77], want, 1e-4 * want);
}

TEST_F(Refinement, IsOffWhereSchedulesAreToStay) {
  const std::vector<std::function<void(Settings&)>> changes = {
      [](Settings& s) { s.tune = false; },
      [](Settings& s) { s.deterministic = true; },
      [](Settings& s) { s.noopt = true; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const SettingScope scope(changes[i]);
    const Tensor x = input(90, 33 + static_cast<int64_t>(i)),
                 y = input(33 + static_cast<int64_t>(i), 87);
    auto f = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b); });
    for (int replays = 0; replays < 12; ++replays) f(x, y).realize();
    EXPECT_EQ(times.first, "") << i;  // no launch was timed
  }
}

// An earlier process's record: neither timed again nor lost.
TEST_F(Refinement, BeginsWhereAnEarlierProcessEnded) {
  const Tensor x = input(95, 101), y = input(101, 87);
  auto f = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b); });
  const auto before = replay(1, [&] { f(x, y).realize(); });
  ASSERT_EQ(before.size(), 1u);
  auto g = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b); });
  for (int i = 0; i < 12; ++i) g(x, y).realize();
  std::this_thread::sleep_for(200ms);
  for (int i = 0; i < 12; ++i) g(x, y).realize();
  const auto after = tuning::schedule_database().all();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].list, before[0].list);
  EXPECT_EQ(after[0].tried, before[0].tried);
}
