#include "conformance/driver/test_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/driver/shrink.h"
#include "conformance/report/report.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;

constexpr auto kShrinkTime = 20s;
// Time limit of each candidate while shrinking a hang.
constexpr auto kShrunkHangLimit = 2s;
// Time limit of a test after one of its family hung.
constexpr std::chrono::nanoseconds kLimitAfterHang = 4s;

void show_kernel(TestResult& result, std::span<const std::byte> kernel) {
  if (kernel.empty()) return;
  try {
    result.ir = sdk::print_ir(sdk::decode_ir(kernel));
  } catch (const std::exception& error) {
    result.ir =
        fmt::format("a block of {} bytes that does not decode: {}", kernel.size(), error.what());
  }
}

}  // namespace

std::chrono::nanoseconds Hangs::limit_of(const Test& test, size_t place) const {
  const std::chrono::nanoseconds whole = std::chrono::seconds(test.limit_seconds);
  const std::lock_guard lock(mutex_);
  const auto first = first_.find(family_of(test.id));
  return first != first_.end() && first->second < place ? std::min(whole, kLimitAfterHang) : whole;
}

void Hangs::add(const Test& test, size_t place) {
  const std::lock_guard lock(mutex_);
  const auto [first, is_new] = first_.emplace(family_of(test.id), place);
  if (!is_new) first->second = std::min(first->second, place);
}

std::optional<TestResult> TestRunner::run(const Test& test, size_t place) {
  if (interrupted()) return std::nullopt;
  const uint64_t seed = seed_of_test(options_.seed, test.id);
  TestResult result = session_.run_within(hangs_.limit_of(test, place), test, seed, {});
  if (interrupted()) return std::nullopt;
  if (result.status == Status::Timeout) hangs_.add(test, place);
  Replay replay{test.id, seed, {}};
  if (is_failure(result.status)) {
    std::vector<std::byte> kernel = session_.kernel();
    if (test.shrinks && !kernel.empty())
      replay.payload = kernel = shrunk(test, seed, result, kernel);
    show_kernel(result, kernel);
  }
  result.replay = encode_replay(replay);
  return result;
}

std::optional<TestResult> TestRunner::replay(const Test& test, const Replay& replay) {
  TestResult result = session_.run_within(std::chrono::seconds(test.limit_seconds), test,
                                          replay.seed, replay.payload);
  if (interrupted()) return std::nullopt;
  if (is_failure(result.status)) show_kernel(result, session_.kernel());
  result.replay = options_.replay;
  return result;
}

// The smallest kernel that still fails in the same way.
std::vector<std::byte> TestRunner::shrunk(const Test& test, uint64_t seed, TestResult& result,
                                          const std::vector<std::byte>& kernel) {
  const std::chrono::nanoseconds limit = result.status == Status::Timeout
                                             ? std::chrono::nanoseconds(kShrunkHangLimit)
                                             : std::chrono::seconds(test.limit_seconds);
  const auto fails = [&](std::span<const std::byte> candidate) {
    if (interrupted()) return false;
    const TestResult again = session_.run_within(limit, test, seed, candidate);
    if (again.status != result.status) return false;
    result.message = again.message;  // describes the smaller kernel
    result.stack = again.stack;
    return true;
  };
  // A test that passes with its own kernel as payload cannot be shrunk.
  if (!fails(kernel)) return {};
  return shrink_kernel(kernel, fails, std::chrono::steady_clock::now() + kShrinkTime);
}

}  // namespace plugrad::conformance
