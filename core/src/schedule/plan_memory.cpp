// Temporaries share storage: each gets a place in its device's arena that no other uses while it
// lives.
#include <algorithm>
#include <map>

#include "schedule/draft.h"

namespace plugrad::schedule {
namespace {

constexpr uint64_t kAlignment = 256;

struct Life {
  uint32_t buffer, first, last;  // steps that write it first and read it last
  uint64_t size_bytes;
};

uint64_t rounded_size(const PlannedBuffer& buffer) {
  const uint64_t bytes = static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype);
  return std::max<uint64_t>((bytes + kAlignment - 1) / kAlignment, 1) * kAlignment;
}

std::vector<Life> lives_of(const Plan& plan) {
  std::vector<Life> lives;
  std::vector<uint32_t> place(plan.buffers.size(), UINT32_MAX);
  for (uint32_t step = 0; step < plan.steps.size(); ++step)
    for (uint32_t b : plan.steps[step].buffers) {
      if (plan.buffers[b].kind != PlannedBuffer::Kind::Temporary) continue;
      if (place[b] == UINT32_MAX) {
        place[b] = static_cast<uint32_t>(lives.size());
        lives.push_back({b, step, step, rounded_size(plan.buffers[b])});
      }
      lives[place[b]].last = step;
    }
  return lives;
}

/// The free parts of one arena, by offset. Takes the smallest gap that fits, and grows at the end.
class FreeList {
 public:
  uint64_t take(uint64_t size) {
    auto best = gaps_.end();
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap)
      if (gap->second >= size && (best == gaps_.end() || gap->second < best->second)) best = gap;
    uint64_t offset = end_;
    if (best == gaps_.end()) {
      if (!gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == end_) {
        offset = gaps_.rbegin()->first;  // a gap at the end grows
        gaps_.erase(offset);
      }
      end_ = offset + size;
      return offset;
    }
    offset = best->first;
    const uint64_t rest = best->second - size;
    gaps_.erase(best);
    if (rest != 0) gaps_[offset + size] = rest;
    return offset;
  }

  void give_back(uint64_t offset, uint64_t size) {
    auto at = gaps_.emplace(offset, size).first;
    const auto next = std::next(at);
    if (next != gaps_.end() && at->first + at->second == next->first) {
      at->second += next->second;
      gaps_.erase(next);
    }
    if (at == gaps_.begin()) return;
    const auto before = std::prev(at);
    if (before->first + before->second != at->first) return;
    before->second += at->second;
    gaps_.erase(at);
  }

  bool fits(uint64_t size, uint64_t most) const {
    if (size <= most && end_ <= most - size) return true;
    return std::ranges::any_of(gaps_, [&](const auto& gap) { return gap.second >= size; });
  }
  uint64_t end() const { return end_; }

 private:
  std::map<uint64_t, uint64_t> gaps_;
  uint64_t end_ = 0;
};

/// The first arena of the device that has room, or a new one.
uint32_t arena_for(Plan& plan, std::map<uint32_t, FreeList>& free, uint32_t device, uint64_t size,
                   uint64_t most) {
  for (uint32_t i = 0; i < plan.arenas.size(); ++i)
    if (plan.arenas[i].device == device && free[i].fits(size, most)) return i;
  plan.arenas.push_back({device, 0});
  return static_cast<uint32_t>(plan.arenas.size() - 1);
}

}  // namespace

void plan_memory(Draft& draft) {
  Plan& plan = draft.plan;
  const std::vector<Life> lives = lives_of(plan);  // ascending by first step
  std::vector<std::vector<const Life*>> ending(plan.steps.size());
  std::map<uint32_t, FreeList> free;
  uint32_t step = 0;
  for (const Life& life : lives) {
    for (; step < life.first; ++step)
      for (const Life* old : ending[step])
        free[plan.buffers[old->buffer].arena].give_back(plan.buffers[old->buffer].offset_bytes,
                                                        old->size_bytes);
    PlannedBuffer& buffer = plan.buffers[life.buffer];
    buffer.arena =
        arena_for(plan, free, buffer.device, life.size_bytes, draft.options.max_buffer_bytes);
    buffer.offset_bytes = free[buffer.arena].take(life.size_bytes);
    if (draft.options.plan_memory) ending[life.last].push_back(&life);
  }
  for (uint32_t i = 0; i < plan.arenas.size(); ++i) plan.arenas[i].size_bytes = free[i].end();
}

}  // namespace plugrad::schedule
