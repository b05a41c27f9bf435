#include "conformance/driver/session.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance/result_text.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpenLimit = 20s;
// From then on no worker is started for the tests that are left.
constexpr uint32_t kMostRefusals = 2;
constexpr size_t kMostPrinted = 2000;

std::string tail(const std::string& text) {
  return text.size() <= kMostPrinted ? text : "… " + text.substr(text.size() - kMostPrinted);
}

void take(const Ending& ending, TestResult& result) {
  result.status = ending.timed_out ? Status::Timeout : Status::Crash;
  result.stack = ending.stack;
  if (!ending.printed.empty()) result.message += "; it printed: " + tail(ending.printed);
}

}  // namespace

std::chrono::nanoseconds Session::stretched(std::chrono::nanoseconds limit) const {
  return std::chrono::nanoseconds(
      static_cast<int64_t>(static_cast<double>(limit.count()) * factor_));
}

std::string Session::prepare(TestResult& result) {
  if (worker_) return "";
  if (refused_in_a_row_ >= kMostRefusals) return "not run: " + refusal_;
  auto worker = std::make_unique<Worker>(target_);
  const std::string refusal = worker->open(stretched(kOpenLimit));
  if (refusal.empty()) {
    worker_ = std::move(worker);
    refused_in_a_row_ = 0;
    return "";
  }
  ++refused_in_a_row_;
  refusal_ = "the plugin cannot be opened: " + refusal;
  result.message = refusal_;
  if (!worker->alive()) take(worker->ending(), result);
  return result.message;
}

void Session::take_ending(const Test& test, TestResult& result) {
  const Ending& ending = worker_->ending();
  result.message = ending.timed_out ? fmt::format("{} did not return within {} s", test.id,
                                                  test.limit_seconds * factor_)
                                    : test.id + " " + ending.describe();
  take(ending, result);
}

TestResult Session::run(const Test& test, uint64_t seed, std::span<const std::byte> payload) {
  return run_within(std::chrono::seconds(test.limit_seconds), test, seed, payload);
}

TestResult Session::run_within(std::chrono::nanoseconds limit, const Test& test, uint64_t seed,
                               std::span<const std::byte> payload) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  TestResult result;
  result.status = Status::Fail;
  kernel_.clear();
  if (std::string refusal = prepare(result); !refusal.empty()) {
    result.message = refusal;
  } else {
    const nlohmann::json request = {{"id", test.id}, {"seed", seed}};
    const auto reply = worker_->ask(Request::RunTest, request.dump(), payload, stretched(limit));
    kernel_ = worker_->channel().kernel();
    if (reply)
      result = decode_result(reply->text);
    else
      take_ending(test, result);
    // What a failure leaves behind is no other test's business.
    if (result.status != Status::Pass && result.status != Status::Unsupported) end_worker();
  }
  if (result.milliseconds == 0)
    result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  result.id = test.id;
  result.level = test.level;
  result.op = test.op;
  result.dtype = test.dtype;
  return result;
}

std::string Session::describe_device() {
  Worker worker(target_);
  if (!worker.open(stretched(kOpenLimit)).empty()) return "";
  const auto reply = worker.ask(Request::Describe, "", {}, stretched(kOpenLimit));
  return reply ? reply->text : "";
}

}  // namespace plugrad::conformance
