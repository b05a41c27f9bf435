#include "distributed/exchange.h"

#include <numeric>

#include "distributed/backend.h"

namespace plugrad::distributed {

std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> own,
                                             const std::string& purpose) {
  Backend* const all = backend();
  if (all == nullptr || all->size() == 1) return {{own.begin(), own.end()}};
  std::vector<std::uint32_t> ranks(all->size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto count = static_cast<std::int64_t>(own.size());
  std::vector<std::int64_t> counts(ranks.size());
  all->run({.kind = Kind::AllGather,
            .dtype = DType::I64,
            .send = std::as_bytes(std::span(&count, 1)).data(),
            .receive = std::as_writable_bytes(std::span(counts)).data(),
            .counts = std::vector<std::int64_t>(ranks.size(), 1),
            .group = ranks,
            .tensor = purpose});
  std::vector<std::byte> joined(std::reduce(counts.begin(), counts.end(), std::size_t{0}));
  all->run({.kind = Kind::AllGather,
            .dtype = DType::U8,
            .send = own.data(),
            .receive = joined.data(),
            .counts = counts,
            .group = ranks,
            .tensor = purpose});
  std::vector<std::vector<std::byte>> parts;
  auto at = joined.begin();
  for (const std::int64_t size : counts) {
    parts.emplace_back(at, at + size);
    at += size;
  }
  return parts;
}

}  // namespace plugrad::distributed
