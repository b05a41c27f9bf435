// A program interrupted while compiling leaves a cache that the next process can use.
#include <gtest/gtest.h>
#include <signal.h>

#include <random>

#include "base/storage/disk_cache.h"
#include "errors/fresh_process.h"
#include "plugrad/device.h"
#include "plugrad/tensor.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;

namespace {

constexpr int kKernels = 12, kStops = 20;

// Kernels that have nothing in common, so that each is compiled.
void compute() {
  std::vector<Tensor> results;
  for (int i = 0; i < kKernels; ++i)
    results.push_back((Tensor::arange(0, 8 + i, 1, DType::F32) * (0.5 + i)).sum());
  Tensor::realize(results);
  for (int i = 0; i < kKernels; ++i) {
    const double expected = (0.5 + i) * (7 + i) * (8 + i) / 2;
    if (results[static_cast<size_t>(i)].item<double>() != expected)
      throw std::runtime_error("wrong numbers");
  }
}

// Alternately by the signal of Ctrl-C and by one that cannot be caught.
void compute_until_stopped(const std::string& cache, int stop, useconds_t delay) {
  const pid_t child = fork();
  if (child == 0) {
    change_settings([&](Settings& s) { s.cache_dir = cache; });
    compute();
    _exit(0);
  }
  usleep(delay);
  kill(child, stop % 2 ? SIGINT : SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

TEST(InterruptedCompile, LeavesACacheThatTheNextProgramCanUse) {
  TemporaryDirectory cache;
  std::minstd_rand random(1);
  for (int stop = 0; stop < kStops; ++stop) {
    // Each round starts with the cache of earlier rounds, every fifth with an empty one.
    if (stop % 5 == 0) std::filesystem::remove_all(cache.path());
    compute_until_stopped(cache.path(), stop, static_cast<useconds_t>(20'000 + random() % 200'000));
    const Outcome next = run_in_fresh_process([&](Settings& s) { s.cache_dir = cache.path(); },
                                              [] {
                                                compute();
                                                if (disk_cache().stats().damaged != 0)
                                                  throw std::runtime_error("a damaged entry");
                                              });
    ASSERT_TRUE(next.survived) << "after stop " << stop;
    ASSERT_EQ(next.error, "") << "after stop " << stop;
  }
}
