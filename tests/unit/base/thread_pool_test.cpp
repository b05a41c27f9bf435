#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

using namespace plugrad;

namespace {

struct Span {
  std::uint64_t begin, end;
  std::uint32_t worker;
};

std::vector<Span> spans_of(ThreadPool& pool, std::uint64_t count, std::uint64_t min_span,
                           std::uint32_t threads) {
  struct Seen {
    std::mutex mutex;
    std::vector<Span> spans;
  } seen;
  pool.parallel_for(
      count, min_span, threads,
      [](void* context, std::uint64_t begin, std::uint64_t end, std::uint32_t worker) {
        Seen& s = *static_cast<Seen*>(context);
        std::lock_guard lock(s.mutex);
        s.spans.push_back({begin, end, worker});
      },
      &seen);
  std::sort(seen.spans.begin(), seen.spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return seen.spans;
}

}  // namespace

TEST(ThreadPool, SpansCoverEachIndexOnceInPiecesOfTheLeastLength) {
  ThreadPool pool;
  for (std::uint32_t threads : {1u, 2u, 3u, 8u})
    for (std::uint64_t count : {0ull, 1ull, 2ull, 7ull, 64ull, 1000ull, 4097ull})
      for (std::uint64_t min_span : {0ull, 1ull, 5ull, 64ull, 5000ull}) {
        std::uint64_t at = 0;
        for (const Span& s : spans_of(pool, count, min_span, threads)) {
          EXPECT_EQ(s.begin, at);
          EXPECT_LT(s.worker, threads);
          if (s.end != count) {
            EXPECT_GE(s.end - s.begin, std::max<std::uint64_t>(min_span, 1));
          }
          at = s.end;
        }
        EXPECT_EQ(at, count) << threads << " threads, least span " << min_span;
      }
}

TEST(ThreadPool, ManyShortJobsLoseNoWork) {
  ThreadPool pool;
  std::vector<std::uint32_t> hits(257, 0);
  for (int round = 0; round < 3000; ++round)
    pool.parallel_for(
        hits.size(), 1, 4,
        [](void* context, std::uint64_t begin, std::uint64_t end, std::uint32_t) {
          for (std::uint64_t i = begin; i < end; ++i) ++static_cast<std::uint32_t*>(context)[i];
        },
        hits.data());
  for (std::uint32_t h : hits) ASSERT_EQ(h, 3000u);
}

TEST(ThreadPool, WorkIsSharedByThreads) {
  SettingScope scope([](Settings& s) { s.threads = 2; });
  std::atomic<int> inside{0};
  std::atomic<bool> both{false};
  // Each task waits for the other, which terminates only with two concurrent threads.
  run_tasks(2, [&](std::uint64_t) {
    ++inside;
    auto start = std::chrono::steady_clock::now();
    while (inside < 2 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20))
      std::this_thread::yield();
    if (inside == 2) both = true;
  });
  EXPECT_TRUE(both);
}

TEST(ThreadPool, NestedCallsRunOnTheirCallersThread) {
  SettingScope scope([](Settings& s) { s.threads = 4; });
  std::atomic<std::uint64_t> sum{0};
  std::atomic<bool> same_thread{true};
  parallel_for(8, 1, [&](std::uint64_t begin, std::uint64_t end, std::uint32_t outer) {
    auto me = std::this_thread::get_id();
    for (std::uint64_t i = begin; i < end; ++i)
      parallel_for(100, 1, [&](std::uint64_t b, std::uint64_t e, std::uint32_t inner) {
        if (std::this_thread::get_id() != me || inner != outer) same_thread = false;
        sum += e - b;
      });
  });
  EXPECT_EQ(sum, 800u);
  EXPECT_TRUE(same_thread);
}

TEST(ThreadPool, CallersOnSeveralThreadsAllFinish) {
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        parallel_for(64, 1, [&](std::uint64_t b, std::uint64_t e, std::uint32_t) { sum += e - b; });
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(sum, 4u * 200 * 64);
}

TEST(ThreadPool, TheFirstExceptionComesBackAfterAllTasksEnded) {
  std::atomic<int> ended{0};
  EXPECT_THROW(run_tasks(16,
                         [&](std::uint64_t i) {
                           ++ended;
                           if (i % 3 == 0) throw std::runtime_error("task");
                         }),
               std::runtime_error);
  EXPECT_EQ(ended, 16);
  EXPECT_THROW(parallel_for(4, 1,
                            [](std::uint64_t, std::uint64_t, std::uint32_t) {
                              throw std::logic_error("span");
                            }),
               std::logic_error);
}

TEST(ThreadPool, WorkersSeeTheCallersSettingScope) {
  SettingScope scope([](Settings& s) {
    s.threads = 4;
    s.beam = 123;
  });
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round)
    run_tasks(8, [&](std::uint64_t) {
      if (settings().beam != 123) ++wrong;
    });
  EXPECT_EQ(wrong, 0);
}

// Waits for the child, at most ten seconds, and returns its exit code.
int code_of(pid_t child) {
  int status = 0;
  for (int i = 0; i < 10'000; ++i, usleep(1000))
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -SIGKILL;
}

// A child that is forked inside of a job has one of its threads only.
TEST(ThreadPool, AChildForkedInAJobDoesNotWaitForItsWorkers) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot fork with other threads";
#endif
  for (const bool on_worker : {false, true}) {
    std::atomic<pid_t> child{-1};
    std::atomic<int> inside{0};
    const pid_t parent = getpid();
    thread_pool().run_tasks(2, 2, [&](std::uint64_t) {
      ++inside;
      for (int i = 0; i < 5000 && inside < 2; ++i) usleep(1000);
      if (is_pool_thread() == on_worker) child = fork();
      for (int i = 0; i < 5000 && child == -1; ++i) usleep(1000);
    });
    if (getpid() != parent) _exit(7);  // only the caller's thread comes here
    ASSERT_GT(child, 0);
    EXPECT_EQ(code_of(child), on_worker ? EXIT_FAILURE : 7);
  }
}

TEST(ThreadPool, AForkedChildHasAPoolOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot make threads in a forked child";
#endif
  SettingScope scope([](Settings& s) { s.threads = 2; });
  run_tasks(4, [](std::uint64_t) {});
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int> done{0};
    run_tasks(100, [&](std::uint64_t) { ++done; });
    _exit(done == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
