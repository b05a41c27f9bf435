// Kernels are made with little code first and get the full schedule once they have run for long.
#include "engine/refine/promotion.h"

#include <chrono>
#include <thread>

#include "base/settings.h"
#include "codegen/codegen.h"
#include "engine/session_state.h"
#include "jit/jit_test.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace std::chrono_literals;

namespace {

class FrugalSchedules : public testing::Test {
 protected:
  FrugalSchedules()
      : scope_([&](Settings& s) {
          s.tune = true;
          s.lift = false;                   // schedules of exact sizes
          s.cache_dir = directory_.path();  // full schedules of earlier runs are in the other
        }) {}
  ~FrugalSchedules() override { engine::set_promotion_price(20e-3); }

  // Whole numbers: any order of a sum gives these very values.
  static Tensor whole(int64_t rows, int64_t columns) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
    return Tensor::from(values, {rows, columns}).realize();
  }

  // The schedules of the kernels that compute the value.
  static std::string list_of(const Tensor& value) {
    std::string lists;
    for (const Kernel& kernel : value.schedule()) lists += kernel.optimisations() + ";";
    return lists;
  }

  // The schedules of these kernels where nothing is refined.
  static std::string full_list_of(const Tensor& value) {
    const SettingScope scope([](Settings& s) { s.tune = false; });
    return list_of(value);
  }

  // Calls `run` until the kernels of `make` have the schedules `list`, for a minute at most.
  static void run_until(const std::string& list, const std::function<Tensor()>& make,
                        const std::function<void()>& run) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (list_of(make()) != list && std::chrono::steady_clock::now() < end) {
      run();
      std::this_thread::sleep_for(2ms);
    }
    EXPECT_EQ(list_of(make()), list);
  }

 private:
  const TemporaryDirectory directory_;
  const SettingScope scope_;
};

}  // namespace

TEST_F(FrugalSchedules, GiveWayToFullOnesInEagerCode) {
  engine::set_promotion_price(0);
  const auto make = [] { return whole(61, 103).matmul(whole(103, 71)); };
  const std::string frugal = list_of(make()), full = full_list_of(make());
  EXPECT_NE(frugal, full);
  EXPECT_THAT(full, testing::HasSubstr("upcast"));
  EXPECT_THAT(frugal, testing::Not(testing::HasSubstr("upcast")));
  const std::vector<float> want = floats(make());
  run_until(full, make, [&] { EXPECT_EQ(floats(make()), want); });
  EXPECT_EQ(floats(make()), want);
}

// A tile of registers makes a long product several times as fast; short ones are not worth its code.
TEST_F(FrugalSchedules, HaveTilesWhereTheirCodePays) {
  const auto make = [](int64_t n) { return whole(n, n + 2).matmul(whole(n + 2, n + 8)); };
  EXPECT_THAT(list_of(make(46)), testing::Not(testing::HasSubstr("upcast")));
  const std::string frugal = list_of(make(424));
  EXPECT_THAT(frugal, testing::HasSubstr("upcast"));
  EXPECT_NE(frugal, full_list_of(make(424)));
}

TEST_F(FrugalSchedules, GiveWayToFullOnesInReplays) {
  engine::set_promotion_price(0);
  const Tensor x = whole(62, 103), y = whole(103, 73);
  const auto make = [] { return whole(62, 103).matmul(whole(103, 73)); };
  const std::string full = full_list_of(make());
  auto f = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b); });
  const std::vector<float> want = floats(f(x, y));
  run_until(full, make, [&] { EXPECT_EQ(floats(f(x, y)), want); });
  EXPECT_EQ(floats(f(x, y)), want);
}

// Each call changes what the next one reads, so one launch more or less would show.
TEST_F(FrugalSchedules, AreReplacedBetweenRunsOnly) {
  engine::set_promotion_price(0);
  Tensor x = Tensor::full({67, 79}, 0.0, DType::F32).contiguous().realize();
  const Tensor y = whole(67, 79);
  auto f = jit([&](const Tensor& a) {
    x.assign(x * 0.5 + a.matmul(a.transpose()).sum() * 0.0 + a);
    return x.sum();
  });
  std::vector<double> want(67 * 79);
  const std::vector<float> added = floats(y);
  for (int call = 0; call < 60; ++call) {
    f(y).realize();
    for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] * 0.5 + added[i];
    std::this_thread::sleep_for(1ms);
  }
  const std::vector<float> got = floats(x);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST_F(FrugalSchedules, StayUntilTheyHaveRunForLong) {
  engine::set_promotion_price(1e9);
  const auto make = [] { return whole(63, 103).matmul(whole(103, 71)); };
  const std::string frugal = list_of(make());
  for (int i = 0; i < 50; ++i) make().realize();
  EXPECT_EQ(list_of(make()), frugal);
}

TEST_F(FrugalSchedules, AreNotForSettingsThatFixSchedules) {
  const std::vector<std::function<void(Settings&)>> changes = {
      [](Settings& s) { s.tune = false; },
      [](Settings& s) { s.deterministic = true; },
  };
  int64_t rows = 64;
  for (const auto& change : changes) {
    const SettingScope scope(change);
    const Tensor x = whole(rows++, 104), y = whole(104, 72);
    EXPECT_THAT(list_of(x.matmul(y)), testing::HasSubstr("upcast"));
  }
}

// A kernel that takes its numbers at launch has the schedule of the one with constants.
TEST_F(FrugalSchedules, OfKernelsThatTakeNumbersGiveWayToo) {
  const SettingScope scope([](Settings& s) { s.lift = true; });
  engine::set_promotion_price(0);
  const Tensor x = whole(66, 107), y = whole(107, 75);
  const std::vector<float> product = floats(x.matmul(y));
  double k = 1;
  for (int i = 0; i < 40; ++i, k += 1) {
    const std::vector<float> got = floats(x.matmul(y) * k);
    for (size_t j = 0; j < got.size(); ++j)
      ASSERT_EQ(got[j], product[j] * static_cast<float>(k)) << "k = " << k;
    std::this_thread::sleep_for(5ms);
  }
}

TEST_F(FrugalSchedules, AreNotMadeWhereTheFullOneIsOnDisk) {
  const auto make = [] { return whole(65, 103).matmul(whole(103, 71)); };
  const std::string full = full_list_of(make());
  EXPECT_EQ(list_of(make()), full);
}
