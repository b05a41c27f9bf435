// One test of the suite and its context. Tests run in the worker process; a crash there fails one
// test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/plugin/device.h"
#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

// Thrown to end a test.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Services of the worker for a running test.
struct Surroundings {
  std::function<std::string()> printed;
  std::function<void(std::span<const std::byte> kernel_ir)> about;
};

class Context {
 public:
  Context(Plugin& plugin, uint64_t seed, std::span<const std::byte> payload,
          Surroundings surroundings = {})
      : plugin_(plugin), seed_(seed), payload_(payload), surroundings_(std::move(surroundings)) {}

  // The plugin as opened by the worker: entry called, no device open.
  Plugin& plugin() { return plugin_; }
  // The run's device, opened on first use and kept open by the worker across tests. A test that
  // needs a separate device calls plugin().open_device().
  Device& device() { return plugin_.shared_device(); }

  // seed of this test, derived from the run's seed and the test's id
  uint64_t seed() const { return seed_; }
  // Input of --replay or the shrinker: a kernel IR block that replaces a generated one.
  std::span<const std::byte> payload() const { return payload_; }

  // Keeps the largest `value` and its input.
  void measure(std::string_view metric, double value, std::string_view input);
  // The test's kernel: reported with a failure, and shrunk if `shrinks` is set.
  void about(std::span<const std::byte> kernel_ir);

  // Output of this process on stdout and stderr since the plugin was opened, during this test.
  std::string printed() const { return surroundings_.printed ? surroundings_.printed() : ""; }

  TestResult& result() { return result_; }
  const std::vector<std::byte>& kernel() const { return kernel_; }

 private:
  Plugin& plugin_;
  uint64_t seed_;
  std::span<const std::byte> payload_;
  Surroundings surroundings_;
  TestResult result_;
  std::vector<std::byte> kernel_;
};

// Ends the test as failed unless the condition holds.
void expect(bool condition, std::string_view message);

struct Test {
  std::string id;  // "l1.memory.alignment": level, family, property; unique, never renamed
  Level level = Level::L1;
  bool quick = true;        // part of --quick
  bool on_demand = false;   // runs only if a filter names it: "l2.exhaustive.*"
  std::string op, dtype;    // cell of the matrix
  std::string claim;        // "pgr.queue": unsupported if the plugin lacks it; empty: none
  std::string unlocked_by;  // required optional function: "pgr.allocator map"; empty: none
  uint32_t limit_seconds = 20;
  bool shrinks = false;  // accepts a payload; failures are shrunk
  // Measures time or memory, or fills the device: no other test runs concurrently. Set for all
  // tests of L0, L3 and perf.
  bool alone = false;
  std::function<void(Context&)> run;
};

// Each family adds its tests, all of them regardless of the device's claims, so that ids are the
// same for every plugin. tests.cpp lists the families.
using Tests = std::vector<Test>;
const Tests& all_tests();

// Adds a test to the list; the caller sets further fields of the result.
inline Test& add_test(Tests& tests, Level level, std::string id,
                      std::function<void(Context&)> run) {
  Test& test = tests.emplace_back();
  test.id = std::move(id);
  test.level = level;
  test.run = std::move(run);
  return test;
}

// ASCII letters in lower case: ids name ops so.
std::string lower(std::string_view text);

// Families.
void add_l0_tests(Tests& tests);           // levels/
void add_memory_tests(Tests& tests);       // levels/
void add_error_tests(Tests& tests);        // levels/: launch limits and each documented error
void add_core_kernel_tests(Tests& tests);  // kernels/: L1
void add_alu_tests(Tests& tests);          // kernels/: every op x dtype
void add_cast_tests(Tests& tests);         // kernels/
void add_known_tests(Tests& tests);        // kernels/: constants as operands
void add_lane_tests(Tests& tests);   // kernels/: vectors, gated and atomic access, local memory
void add_shape_tests(Tests& tests);  // kernels/: reductions, matmul, convolution, views, odd shapes
void add_random_tests(Tests& tests);   // kernels/: random kernels against the interpreter
void add_compile_tests(Tests& tests);  // levels/: renderer, compiler, cache identity
void add_async_tests(Tests& tests);    // levels/: L3
void add_perf_tests(Tests& tests);     // report/: perf
void add_worker_tests(Tests& tests);   // worker/: cost of isolation

}  // namespace plugrad::conformance
