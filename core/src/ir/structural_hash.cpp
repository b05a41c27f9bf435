// Hashes with two lanes of multiply-and-fold with different constants; a node absorbs the hashes of
// its sources.
#include "ir/structural_hash.h"

#include <fmt/format.h>

#include <algorithm>

namespace plugrad {
namespace {

__extension__ using Uint128 = unsigned __int128;

// Folds the high and low half of the 128-bit product. The callers' constants keep operands from
// being 0.
uint64_t fold_product(uint64_t a, uint64_t b) {
  const auto product = static_cast<Uint128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

struct Mixer {
  NodeHash state{{0x243f6a8885a308d3ull, 0x13198a2e03707344ull}};  // digits of pi
  void absorb(uint64_t value) {
    state.word[0] =
        fold_product(state.word[0] ^ value ^ 0xa4093822299f31d0ull, 0x9e3779b97f4a7c15ull | 1) +
        value;
    state.word[1] =
        fold_product(state.word[1] + value, 0xc2b2ae3d27d4eb4full) ^ (value << 32 | value >> 32);
  }
  void absorb(const NodeHash& h) {
    absorb(h.word[0]);
    absorb(h.word[1]);
  }
};

constexpr uint64_t kNamed = 0xffff;  // replaces op and dtype for named nodes

}  // namespace

std::string to_string(const NodeHash& hash) {
  return fmt::format("{:016x}{:016x}", hash.word[0], hash.word[1]);
}

void StructuralHash::name(Id node, uint64_t number) {
  if (known_.size() < graph_.size()) known_.resize(graph_.size());
  if (by_id_.size() < graph_.size()) by_id_.resize(graph_.size());
  Mixer mixer;
  mixer.absorb(kNamed << 8 | static_cast<uint64_t>(graph_[node].dtype));
  mixer.absorb(number);
  by_id_[node] = mixer.state;
  known_[node] = true;
}

NodeHash StructuralHash::compute(Id id) const {
  const Node& n = graph_[id];
  Mixer mixer;
  mixer.absorb(static_cast<uint64_t>(n.op) << 8 | static_cast<uint64_t>(n.dtype) |
               uint64_t{n.src_count} << 32);
  if (op_info(n.op).arg == ArgKind::List) {
    const auto list = graph_.arg_list(id);
    mixer.absorb(list.size());
    for (int64_t value : list) mixer.absorb(static_cast<uint64_t>(value));
  } else {
    mixer.absorb(n.arg);
  }
  const auto sources = graph_.sources(n);
  if (is_commutative(n.op) && sources.size() == 2) {
    const auto [low, high] = std::minmax(by_id_[sources[0]], by_id_[sources[1]]);
    mixer.absorb(low);
    mixer.absorb(high);
  } else {
    for (Id s : sources) mixer.absorb(by_id_[s]);
  }
  return mixer.state;
}

NodeHash StructuralHash::operator()(std::span<const Id> roots) {
  if (known_.size() < graph_.size()) known_.resize(graph_.size());
  if (by_id_.size() < graph_.size()) by_id_.resize(graph_.size());
  const auto stop = [this](Id id) { return known_[id]; };
  for (Id id : reachable_.from(graph_, roots, stop)) {
    if (known_[id]) continue;
    by_id_[id] = compute(id);
    known_[id] = true;
  }
  Mixer mixer;
  mixer.absorb(roots.size());
  for (Id root : roots) mixer.absorb(by_id_[root]);
  return mixer.state;
}

}  // namespace plugrad
