#include "schedule/fusion/kernel_order.h"

#include <algorithm>

namespace plugrad::schedule {

void KernelOrder::append(uint32_t kernel, std::span<const uint32_t> others) {
  rank_[kernel] = next_rank_++;
  add(kernel, others);
}

bool KernelOrder::reads_too(uint32_t kernel, std::span<const uint32_t> others, size_t most_edges) {
  most_edges_ = most_edges;
  uint32_t last_rank = 0;
  for (uint32_t other : others) last_rank = std::max(last_rank, rank_[other]);
  if (last_rank > rank_[kernel]) {
    edges_ = 0;
    const bool known = find_before(kernel, others) && find_after(kernel, last_rank);
    visits_ += edges_;
    if (!known) return false;
    move();
  }
  add(kernel, others);
  return true;
}

void KernelOrder::add(uint32_t kernel, std::span<const uint32_t> others) {
  for (uint32_t other : others) {
    reads_[kernel].push_back(other);
    read_by_[other].push_back(kernel);
  }
}

bool KernelOrder::look_at(std::span<const uint32_t> kernels) {
  edges_ += kernels.size();
  return edges_ <= most_edges_;
}

/// Sets before_ to the kernels among `others` and their transitive sources whose rank is not below
/// that of `kernel`. Returns false if `kernel` is one of them, or after too many edges.
bool KernelOrder::find_before(uint32_t kernel, std::span<const uint32_t> others) {
  ++epoch_;
  before_.clear();
  const auto reach = [&](uint32_t k) {
    if (rank_[k] < rank_[kernel] || seen_[k] == epoch_) return;
    seen_[k] = epoch_;
    before_.push_back(k);
  };
  for (uint32_t other : others) reach(other);
  for (size_t next = 0; next < before_.size(); ++next) {
    const uint32_t at = before_[next];
    if (at == kernel || !look_at(reads_[at])) return false;
    for (uint32_t below : reads_[at]) reach(below);
  }
  return true;
}

/// Sets after_ to `kernel` and its transitive readers of rank up to `last_rank`. Returns false
/// after too many edges.
bool KernelOrder::find_after(uint32_t kernel, uint32_t last_rank) {
  ++epoch_;
  after_.assign(1, kernel);
  for (size_t next = 0; next < after_.size(); ++next) {
    const uint32_t at = after_[next];
    if (!look_at(read_by_[at])) return false;
    for (uint32_t reader : read_by_[at]) {
      if (rank_[reader] > last_rank || seen_[reader] == epoch_) continue;
      seen_[reader] = epoch_;
      after_.push_back(reader);
    }
  }
  return true;
}

/// Reassigns the ranks of both sets in ascending order, first to before_, then to after_ (Pearce
/// and Kelly). Kernels within a set keep their relative order.
void KernelOrder::move() {
  const auto rank_of = [&](uint32_t k) { return rank_[k]; };
  std::ranges::sort(before_, {}, rank_of);
  std::ranges::sort(after_, {}, rank_of);
  std::vector<uint32_t> kernels = before_;
  kernels.insert(kernels.end(), after_.begin(), after_.end());
  std::vector<uint32_t> ranks;
  for (uint32_t k : kernels) ranks.push_back(rank_[k]);
  std::ranges::sort(ranks);
  for (size_t i = 0; i < kernels.size(); ++i) rank_[kernels[i]] = ranks[i];
}

}  // namespace plugrad::schedule
