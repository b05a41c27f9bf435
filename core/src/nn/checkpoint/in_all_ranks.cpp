#include "nn/checkpoint/in_all_ranks.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <optional>

#include "base/bytes.h"
#include "base/check.h"
#include "base/settings.h"
#include "distributed/backend.h"
#include "distributed/exchange.h"

namespace plugrad::nn {
namespace {

struct Outcome {
  std::optional<ErrorKind> failure;
  std::string error;
  std::vector<std::byte> result;
};

Outcome outcome_of(const std::function<std::vector<std::byte>()>& work) {
  try {
    return {{}, {}, work()};
  } catch (const Error& error) {
    return {error.kind(), error.what(), {}};
  } catch (const std::exception& error) {  // out of memory
    return {ErrorKind::Device, error.what(), {}};
  }
}

std::vector<std::byte> encoded(const Outcome& outcome) {
  ByteWriter out;
  out.put(outcome.failure.has_value()).put(outcome.failure.value_or(ErrorKind::User));
  out.put_text(outcome.error).put_bytes(outcome.result);
  return {out.bytes().begin(), out.bytes().end()};
}

/// "cannot write …" of "[save] cannot write …".
std::string without_function(const std::string& message) {
  const size_t end = message.find("] ");
  return message.starts_with('[') && end != message.npos ? message.substr(end + 2) : message;
}

/// Of all ranks. Errors: that of the lowest rank that has failed.
std::vector<std::vector<std::byte>> results_of(const std::string& function, const Outcome& own) {
  const auto outcomes = distributed::exchange(encoded(own), function);
  std::vector<std::vector<std::byte>> results;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    ByteReader in(outcomes[rank]);
    const bool has_failed = in.get<bool>();
    const auto kind = in.get<ErrorKind>();
    const std::string error = in.get_text();
    if (has_failed) fail(kind, "[{}] rank {}: {}", function, rank, without_function(error));
    const auto result = in.get_bytes();
    results.emplace_back(result.begin(), result.end());
  }
  return results;
}

}  // namespace

Rank this_rank() {
  const distributed::Backend* const backend = distributed::backend();
  return backend == nullptr ? Rank{} : Rank{backend->rank(), backend->size()};
}

std::vector<std::vector<std::byte>> results_of_all_ranks(
    const std::string& function, const std::function<std::vector<std::byte>()>& work) {
  if (this_rank().count == 1) return {work()};
  return results_of(function, outcome_of(work));
}

std::vector<std::vector<std::byte>> results_of_slow_work(
    const std::string& function, const std::function<std::vector<std::byte>()>& work) {
  if (this_rank().count == 1) return {work()};
  // Deferred if there is no thread for it.
  const auto policy = std::launch::async | std::launch::deferred;
  std::future<Outcome> outcome = std::async(policy, [&] { return outcome_of(work); });
  const std::chrono::duration<double> turn(std::min(1.0, settings().collective_seconds / 4));
  bool is_at_work = true;
  while (is_at_work) {
    const std::byte done{outcome.wait_for(turn) != std::future_status::timeout};
    is_at_work = false;
    for (const std::vector<std::byte>& rank : distributed::exchange(std::span(&done, 1), function))
      is_at_work |= rank[0] == std::byte{0};
  }
  return results_of(function, outcome.get());
}

void in_all_ranks(const std::string& function, const std::function<void()>& work) {
  results_of_all_ranks(function, [&] {
    work();
    return std::vector<std::byte>();
  });
}

}  // namespace plugrad::nn
