#include "nn/checkpoint/in_all_ranks.h"

#include <exception>
#include <optional>

#include "base/bytes.h"
#include "base/check.h"
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

}  // namespace

Rank this_rank() {
  const distributed::Backend* const backend = distributed::backend();
  return backend == nullptr ? Rank{} : Rank{backend->rank(), backend->size()};
}

std::vector<std::vector<std::byte>> results_of_all_ranks(
    const std::string& function, const std::function<std::vector<std::byte>()>& work) {
  if (this_rank().count == 1) return {work()};
  const auto outcomes = distributed::exchange(encoded(outcome_of(work)), function);
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

void in_all_ranks(const std::string& function, const std::function<void()>& work) {
  results_of_all_ranks(function, [&] {
    work();
    return std::vector<std::byte>();
  });
}

}  // namespace plugrad::nn
