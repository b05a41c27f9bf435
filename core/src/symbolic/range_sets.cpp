// Interns sets of ranges as sorted lists: most nodes of a kernel share one of a few sets.
#include <algorithm>
#include <map>

#include "symbolic/symbolic.h"

namespace plugrad {

struct RangeSets::Sets {
  std::vector<const std::vector<Id>*> by_number;
  std::map<std::vector<Id>, uint32_t> numbers;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> unions;
  std::vector<Id> scratch;

  Sets() { intern({}); }
  uint32_t intern(std::vector<Id> set) {
    const auto [at, is_new] =
        numbers.try_emplace(std::move(set), static_cast<uint32_t>(by_number.size()));
    if (is_new) by_number.push_back(&at->first);
    return at->second;
  }
  uint32_t join(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto [at, is_new] = unions.try_emplace(std::minmax(a, b), 0);
    if (is_new) {
      std::vector<Id> both;
      std::ranges::set_union(*by_number[a], *by_number[b], std::back_inserter(both));
      at->second = intern(std::move(both));
    }
    return at->second;
  }
  uint32_t without(uint32_t set, std::span<const Id> closed) {
    std::vector<Id> rest = *by_number[set];
    std::erase_if(rest, [&](Id range) { return std::ranges::find(closed, range) != closed.end(); });
    return intern(std::move(rest));
  }
};

RangeSets::RangeSets(const Graph& graph) : graph_(graph), sets_(std::make_unique<Sets>()) {}
RangeSets::~RangeSets() = default;

void RangeSets::fill(Id id) {
  while (by_id_.size() <= id) {
    const Id next = static_cast<Id>(by_id_.size());
    const Node& n = graph_[next];
    uint32_t set = 0;
    if (n.op == Op::Range) {
      for (Id s : graph_.sources(n)) set = sets_->join(set, by_id_[s]);
      set = sets_->join(set, sets_->intern({next}));
    } else {
      for (Id s : graph_.sources(n)) set = sets_->join(set, by_id_[s]);
      if (n.op == Op::Reduce && n.src_count > 1)
        set = sets_->without(set, graph_.sources(n).subspan(1));
    }
    by_id_.push_back(set);
  }
}

uint32_t RangeSets::set_of(Id id) {
  if (id >= by_id_.size()) fill(id);
  return by_id_[id];
}

std::span<const Id> RangeSets::operator[](Id id) {
  return *sets_->by_number[set_of(id)];
}

bool RangeSets::depends(Id id, Id range) {
  return std::ranges::binary_search((*this)[id], range);
}

}  // namespace plugrad
