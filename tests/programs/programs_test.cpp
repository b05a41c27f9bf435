// Random tensor programs against the evaluator. Settings of a run, from the environment:
//   PLUGRAD_TEST_PROGRAMS=n    how many (2,000 in all shards together when not set)
//   PLUGRAD_TEST_SHARD=i/n     this process runs every n-th, from number i
//   PLUGRAD_TEST_SEED=s        the first program's seed; a failure says what repeats it
//   PLUGRAD_TEST_DEVICE=d      runs every program there (each draws CPU or REFERENCE when not set)
//   PLUGRAD_TEST_PRINT=1       prints each program before it runs
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "engine/session.h"
#include "oracle/reference_options.h"
#include "plugrad/distributed.h"
#include "programs/environment.h"
#include "programs/run.h"

namespace plugrad::programs {
namespace {

constexpr uint64_t kPrograms = 1000, kMostFailures = 5;

struct Shard {
  uint64_t first = 0, step = 1;
};

Shard shard() {
  Shard result;
  if (const char* given = std::getenv("PLUGRAD_TEST_SHARD"))
    if (std::sscanf(given, "%lu/%lu", &result.first, &result.step) != 2 || result.step == 0)
      ADD_FAILURE() << "PLUGRAD_TEST_SHARD=" << given << ": write i/n";
  return result;
}

volatile uint64_t running_seed = 0;

// A crash names the program, too.
void on_crash(int signal) {
  char text[96];
  const int size = std::snprintf(text, sizeof text, "crashed in program PLUGRAD_TEST_SEED=%llu\n",
                                 static_cast<unsigned long long>(running_seed));
  if (size > 0) (void)!fwrite(text, 1, static_cast<size_t>(size), stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void report(const Program& program, const std::string& fault) {
  const Program small = shrink(program);
  const auto again = run(small);
  ADD_FAILURE() << fmt::format(
      "PLUGRAD_TEST_SEED={} PLUGRAD_TEST_PROGRAMS=1 repeats this: {}\nshrunk: {}\n{}", program.seed,
      fault, again ? *again : "(no longer fails)", to_text(small));
}

/// Runs programs that `change` made of the drawn ones.
void run_programs(const std::function<void(Program&)>& change) {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, on_crash);
  oracle::set_reference_options();
  const uint64_t seed = number_from("PLUGRAD_TEST_SEED", 1);
  const uint64_t count = number_from("PLUGRAD_TEST_PROGRAMS", kPrograms);
  const Shard part = shard();
  const char* device = std::getenv("PLUGRAD_TEST_DEVICE");
  Coverage coverage;
  uint64_t steps = 0, failures = 0, ran = 0;
  for (uint64_t i = part.first; i < count && failures < kMostFailures; i += part.step) {
    running_seed = seed + i;
    Program program = make_program(seed + i);
    if (device) program.device = device;
    change(program);
    steps += program.steps.size();
    if (std::getenv("PLUGRAD_TEST_PRINT")) {
      std::printf("seed %llu %s", static_cast<unsigned long long>(seed + i),
                  to_text(program).c_str());
      std::fflush(stdout);
    }
    if (++ran % 200 == 0) {  // as often as separate processes would
      engine::Session::current().clear_caches();
      engine::Session::current().collect();
    }
    if (const auto fault = run(program, &coverage)) {
      // with a message that says so
      if (device && fault->find("the device has no ") != fault->npos) continue;
      report(program, *fault);
      ++failures;
    }
  }
  std::printf(
      "%llu programs of %.1f steps; of %llu elements %.1f%% had to be equal, %.1f%% near, "
      "%.1f%% could not be known\n",
      static_cast<unsigned long long>(ran),
      static_cast<double>(steps) / static_cast<double>(ran ? ran : 1),
      static_cast<unsigned long long>(coverage.elements),
      100.0 * static_cast<double>(coverage.exact) / static_cast<double>(coverage.elements),
      100.0 * static_cast<double>(coverage.elements - coverage.exact - coverage.unknown) /
          static_cast<double>(coverage.elements),
      100.0 * static_cast<double>(coverage.unknown) / static_cast<double>(coverage.elements));
}

TEST(Programs, AgreeWithTheEvaluator) {
  run_programs([](Program&) {});
}

TEST(Sharded, AgreeWithTheEvaluator) {
  run_programs([](Program& program) {
    constexpr Spread kSpreads[] = {Spread::Two, Spread::Four, Spread::TwoByTwo};
    program.spread = kSpreads[program.seed % 3];
  });
}

TEST(Processes, AgreeWithTheEvaluator) {  // under an MPI's launcher
  distributed::init();
  if (distributed::size() == 1) GTEST_SKIP() << "one process";
  run_programs([](Program& program) {
    program.spread = program.seed % 2 == 0 ? Spread::Processes : Spread::TwoAProcess;
  });
}

}  // namespace
}  // namespace plugrad::programs
