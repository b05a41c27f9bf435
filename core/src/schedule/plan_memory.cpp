// Temporaries share storage: each gets a place in its device's arena that no other uses while it
// lives.
#include <algorithm>
#include <functional>
#include <vector>

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

/// What has a place in one arena, by offset.
class Places {
 public:
  /// The smallest gap between values that live at the same time, else behind all of those.
  uint64_t offset_for(const Life& life) const {
    uint64_t free_from = 0, best = kNone, smallest = UINT64_MAX;
    for (const Place& place : places_) {
      if (place.last < life.first || life.last < place.first) continue;
      const uint64_t gap = place.begin > free_from ? place.begin - free_from : 0;
      if (gap >= life.size_bytes && gap < smallest) {
        best = free_from;
        smallest = gap;
      }
      free_from = std::max(free_from, place.end);
    }
    return best == kNone ? free_from : best;
  }

  void put(const Life& life, uint64_t offset) {
    const Place place{offset, offset + life.size_bytes, life.first, life.last};
    places_.insert(std::ranges::upper_bound(places_, offset, {}, &Place::begin), place);
    end_ = std::max(end_, place.end);
  }

  uint64_t end() const { return end_; }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Place {
    uint64_t begin, end;
    uint32_t first, last;
  };
  std::vector<Place> places_;
  uint64_t end_ = 0;
};

/// Puts the value into the first arena of its device that has room, or into a new one.
void place(Plan& plan, std::vector<Places>& places, const Life& life, uint64_t most) {
  PlannedBuffer& buffer = plan.buffers[life.buffer];
  for (uint32_t i = 0;; ++i) {
    if (i == plan.arenas.size()) {
      plan.arenas.push_back({buffer.device, 0});
      places.emplace_back();
    }
    if (plan.arenas[i].device != buffer.device) continue;
    const uint64_t offset = places[i].offset_for(life), end = offset + life.size_bytes;
    if (offset != 0 && end > most) continue;
    places[i].put(life, offset);
    plan.arenas[i].size_bytes = places[i].end();
    buffer.arena = i;
    buffer.offset_bytes = offset;
    return;
  }
}

}  // namespace

// Large values first: what is placed early fits best, and the small ones fill the gaps. On training
// steps this stays within a tenth of the most that lives at once.
void plan_memory(Draft& draft) {
  Plan& plan = draft.plan;
  std::vector<Life> lives = lives_of(plan);
  if (!draft.options.plan_memory)
    for (Life& life : lives) life.first = 0, life.last = UINT32_MAX;
  std::ranges::stable_sort(lives, std::greater(), &Life::size_bytes);
  std::vector<Places> places;
  for (const Life& life : lives) place(plan, places, life, draft.options.max_buffer_bytes);
}

}  // namespace plugrad::schedule
