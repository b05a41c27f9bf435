#include "conformance/driver/session.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance/result_text.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpenLimit = 20s;
// After so many failed starts, the remaining tests get no worker.
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

void Session::take_ending(const Test& test, std::chrono::nanoseconds limit, TestResult& result) {
  const Ending& ending = worker_->ending();
  const std::chrono::duration<double> seconds = stretched(limit);
  result.message = test.id + " " + ending.describe();
  if (ending.timed_out) {
    result.message = fmt::format("{} did not return within {:.3g} s", test.id, seconds.count());
    if (limit < std::chrono::seconds(test.limit_seconds))
      result.message += ", shortened because another test of its family hung";
  }
  take(ending, result);
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
      take_ending(test, limit, result);
    // State left by a failed test must not affect other tests.
    if (result.status != Status::Pass && result.status != Status::Unsupported) worker_.reset();
  }
  if (result.milliseconds == 0)
    result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  result.id = test.id;
  result.level = test.level;
  result.op = test.op;
  result.dtype = test.dtype;
  return result;
}

Trial try_device(const WorkerTarget& target, double factor) {
  const std::chrono::nanoseconds limit(
      static_cast<int64_t>(std::chrono::nanoseconds(kOpenLimit).count() * factor));
  Worker worker(target);
  Trial trial;
  const auto ended = [&](const char* what) {
    return fmt::format("{} {}\n{}", what, worker.ending().describe(), worker.ending().stack);
  };
  if (std::string refusal = worker.open(limit); !refusal.empty()) {
    trial.refusal =
        "the plugin cannot be opened: " + (worker.alive() ? refusal : ended("opening it"));
    return trial;
  }
  const auto reply = worker.ask(Request::TryDevice, "", {}, limit);
  const auto answer = reply ? nlohmann::json::parse(reply->text) : nlohmann::json::object();
  trial.device = answer.value("device", "");
  trial.driver = answer.value("driver", "");
  trial.refusal = reply ? answer.value("refusal", "") : ended("opening the device");
  if (!trial.refusal.empty())
    trial.refusal = fmt::format("device {} of the plugin cannot be opened: {}", target.device_index,
                                trial.refusal);
  return trial;
}

}  // namespace plugrad::conformance
