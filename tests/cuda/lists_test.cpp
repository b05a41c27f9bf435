// Through core, on the double of libcuda: every legal schedule of a kernel gives the same numbers,
// exact because all values are small integers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <plugrad/plugrad.h>
#include <plugrad/search.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace plugrad {
namespace {

// Fresh inputs each time, since known values are not recomputed.
struct Program {
  std::function<Tensor()> make;
  std::vector<float> want;
};

class Lists {
 public:
  explicit Lists(uint64_t seed) : random_(seed), seed_(seed) {}

  void run() {
    const Program program = pick(3) == 0 ? sums() : product();
    const std::string name = program.make().kernelize().back().name();
    std::string list;
    uint32_t staged = 0;
    for (int attempt = 0, length = 0; attempt < 40 && length < 6; ++attempt) {
      const auto [kind, change] = next(staged, attempt);
      const std::string longer = fmt::format("{}{}{}", list, list.empty() ? "" : " ", change);
      const OptimisationScope lists(fmt::format("{}: {}", name, longer));
      std::vector<float> got;
      try {
        const Tensor made = program.make();
        const auto kernels = made.schedule();
        ASSERT_FALSE(kernels.empty()) << describe(name, longer);
        ASSERT_EQ(kernels.back().optimisations(), longer);
        got = made.to_vector<float>();
      } catch (const Error& e) {
        ASSERT_EQ(e.kind(), ErrorKind::User) << e.what() << describe(name, longer);
        continue;
      }
      ASSERT_EQ(got, program.want) << describe(name, longer);
      list = longer;
      ++length;
      ++legal[kind];
      if (kind == "stage") staged = static_cast<uint32_t>(change[6] - '0');
    }
  }

  std::map<std::string, int> legal;

 private:
  uint64_t pick(uint64_t below) { return random_() % below; }
  int64_t size(uint64_t below) { return 1 + static_cast<int64_t>(pick(below)); }
  std::string describe(const std::string& name, const std::string& list) const {
    return fmt::format("\nPLUGRAD_TEST_SEED={} repeats this: {}: {}\n", seed_, name, list);
  }

  std::vector<float> small_integers(int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& value : out) value = static_cast<float>(static_cast<int>(pick(8)) - 4);
    return out;
  }

  Program product() {
    const int64_t m = size(40), n = size(40),
                  k = size(4) * (1 + 15 * static_cast<int64_t>(pick(2)));
    const DType dtypes[] = {DType::F32, DType::F16, DType::BF16};
    const DType dtype = dtypes[pick(3)];
    const std::vector<float> a = small_integers(m * k), b = small_integers(k * n);
    std::vector<float> want(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l)
          want[static_cast<size_t>(i * n + j)] +=
              a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
    const auto input = [dtype](const std::vector<float>& values, const Shape& shape) {
      return Tensor::from(values, shape).cast(dtype).contiguous().realize();
    };
    return {[=] { return input(a, {m, k}).matmul(input(b, {k, n})).cast(DType::F32); }, want};
  }

  Program sums() {
    const int64_t rows = size(20), columns = size(150);
    const std::vector<float> x = small_integers(rows * columns), y = small_integers(columns);
    std::vector<float> want(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        want[static_cast<size_t>(i)] +=
            std::max(x[static_cast<size_t>(i * columns + j)] + y[static_cast<size_t>(j)], 0.0f);
    return {
        [=] {
          return (Tensor::from(x, {rows, columns}) + Tensor::from(y, {columns})).relu().sum({1});
        },
        want};
  }

  // A schedule step and its parameters; tensor cores (which must come first) for half types, and
  // software pipelining of cached operands, are tried often.
  std::pair<std::string, std::string> next(uint32_t staged, int attempt) {
    if (attempt < 2) return {"tensor_core", fmt::format("tensor_core(2, {})", attempt)};
    if (staged != 0 && pick(3) == 0)
      return {"ahead", fmt::format("ahead({}, {})", staged, 1 + pick(3))};
    const char* kinds[] = {"upcast", "unroll", "vectorize", "local", "local", "group",      "swap",
                           "thread", "block",  "block",     "stage", "stage", "tensor_core"};
    const std::string kind = kinds[pick(std::size(kinds))];
    if (kind == "stage") return {kind, fmt::format("stage({}, {})", 1 + pick(2), pick(7))};
    if (kind == "tensor_core") return {kind, fmt::format("tensor_core({}, {})", pick(3), pick(3))};
    if (kind == "swap" || kind == "thread")
      return {kind, fmt::format("{}({}, {})", kind, pick(5), kind == "swap" ? pick(5) : 0)};
    return {kind, fmt::format("{}({}, {})", kind, pick(6), 2 + pick(7))};
  }

  std::mt19937_64 random_;
  uint64_t seed_;
};

TEST(CudaLists, give_the_same_numbers) {
  std::map<std::string, int> legal;
  for (uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
    Lists lists(seed);
    lists.run();
    for (const auto& [kind, times] : lists.legal) legal[kind] += times;
  }
  for (const char* kind : {"upcast", "local", "thread", "block", "stage", "ahead", "tensor_core"})
    EXPECT_GT(legal[kind], 0) << kind << " was never legal";
}

TEST(CudaLists, give_the_same_numbers_for_a_given_seed) {
  const char* given = std::getenv("PLUGRAD_TEST_SEED");
  if (given == nullptr)
    GTEST_SKIP() << "PLUGRAD_TEST_SEED names one, PLUGRAD_TEST_COUNT how many from it on";
  const char* count = std::getenv("PLUGRAD_TEST_COUNT");
  const uint64_t first = std::strtoull(given, nullptr, 10),
                 end = first + (count ? std::strtoull(count, nullptr, 10) : 1);
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) Lists(seed).run();
}

}  // namespace
}  // namespace plugrad
