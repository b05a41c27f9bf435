// Interns nodes by open addressing over ids, and lists in the same way.
#include "ir/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/round.h"

namespace plugrad {
namespace {

uint32_t mix(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9e3779b97f4a7c15ull;
  return static_cast<uint32_t>(h >> 32);
}

uint32_t hash_of(Op op, DType dtype, std::span<const Id> sources, uint64_t arg) {
  uint64_t h =
      (static_cast<uint64_t>(op) << 8 | static_cast<uint64_t>(dtype)) + arg * 0xff51afd7ed558ccdull;
  for (Id s : sources) h = (h ^ s) * 0xc4ceb9fe1a85ec53ull + (h >> 29);
  return mix(h);
}

// The sequence of slots to probe: first near the slot of the newest source, since nodes built
// together are looked up together; if those are taken (a source with many users), anywhere.
class Probe {
 public:
  Probe(std::vector<uint32_t>& table, uint32_t hash, std::span<const Id> sources)
      : table_(table.data()),
        mask_(static_cast<uint32_t>(table.size()) - 1),
        anywhere_(hash),
        at_(hash) {
    if (!sources.empty()) at_ = 2 * std::max(sources.front(), sources.back()) + (hash & 15);
  }
  uint32_t* slot() const { return table_ + (at_ & mask_); }
  void next() { at_ = ++step_ < kNear ? at_ + 1 : anywhere_ + step_ - kNear; }

 private:
  static constexpr uint32_t kNear = 8;
  uint32_t* table_;
  uint32_t mask_, anywhere_, at_, step_ = 0;
};

}  // namespace

struct Graph::Lists {
  SpanArena<int64_t> values;
  std::vector<std::pair<uint32_t, uint32_t>> spans;  // offset, size
  std::vector<uint32_t> table = std::vector<uint32_t>(64);

  static uint32_t hash(std::span<const int64_t> list) {
    uint64_t h = list.size();
    for (int64_t v : list) h = (h ^ static_cast<uint64_t>(v)) * 0xc4ceb9fe1a85ec53ull + (h >> 29);
    return mix(h);
  }
  uint64_t size_bytes() const {
    return values.size_bytes() + spans.capacity() * sizeof spans[0] +
           table.size() * sizeof table[0];
  }
  std::span<const int64_t> get(uint32_t id) const {
    return {values.at(spans[id].first), spans[id].second};
  }
  uint32_t* slot(std::span<const int64_t> list) {
    const uint32_t mask = static_cast<uint32_t>(table.size()) - 1;
    uint32_t at = hash(list) & mask;
    while (table[at] != 0 && !std::ranges::equal(get(table[at] - 1), list)) at = (at + 1) & mask;
    return &table[at];
  }
  uint32_t intern(std::span<const int64_t> list) {
    if (uint32_t found = *slot(list)) return found - 1;
    if (spans.size() * 2 >= table.size()) {
      table.assign(table.size() * 2, 0);
      for (uint32_t i = 0; i < spans.size(); ++i) *slot(get(i)) = i + 1;
    }
    spans.emplace_back(values.add(list), static_cast<uint32_t>(list.size()));
    const auto id = static_cast<uint32_t>(spans.size()) - 1;
    *slot(list) = id + 1;  // last: the above may run out of memory
    return id;
  }
};

Graph::Graph() : table_(1024), lists_(std::make_unique<Lists>()) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

uint32_t* Graph::find_slot(uint32_t hash, Op op, DType dtype, std::span<const Id> sources,
                           uint64_t arg) {
  for (Probe probe(table_, hash, sources);; probe.next()) {
    uint32_t* slot = probe.slot();
    if (*slot == 0) return slot;
    if (hashes_[*slot - 1] != hash) continue;
    const Node& n = operator[](*slot - 1);
    if (n.op == op && n.dtype == dtype && n.arg == arg && n.src_count == sources.size() &&
        std::ranges::equal(this->sources(n), sources))
      return slot;
  }
}

uint32_t* Graph::free_slot(uint32_t hash, std::span<const Id> sources) {
  Probe probe(table_, hash, sources);
  while (*probe.slot() != 0) probe.next();
  return probe.slot();
}

void Graph::grow_table() {
  table_.assign(table_.size() * 2, 0);
  for (Id id = 0; id < size_; ++id) *free_slot(hashes_[id], this->sources(id)) = id + 1;
}

// The block of node `size_`, which may be a new one, gets that room.
void Graph::resize_last_block(uint32_t room) {
  auto block = std::make_unique_for_overwrite<Node[]>(room);
  const uint32_t last = size_ >> kBlockBits;
  if (last == blocks_.size()) {
    blocks_.push_back(std::move(block));
  } else {
    std::copy_n(blocks_[last].get(), size_ & kBlockMask, block.get());
    blocks_[last] = std::move(block);
  }
  room_ = (size_ & ~kBlockMask) + room;
}

void Graph::trim() {
  if (size_ < room_) resize_last_block(size_ & kBlockMask);
  hashes_.shrink_to_fit();
  long_src_.trim();
  lists_->values.trim();
}

uint64_t Graph::size_bytes() const {
  return room_ * sizeof(Node) + (hashes_.capacity() + table_.size()) * sizeof(uint32_t) +
         long_src_.size_bytes() + lists_->size_bytes();
}

bool Graph::in_order(Id left, Id right) const {
  const auto rank = [&](Id id) {
    const Op op = operator[](id).op;
    return op == Op::Const ? 2 : op == Op::Scalar ? 1 : 0;
  };
  if (rank(left) != rank(right)) return rank(left) < rank(right);
  return left <= right;
}

// Allocates before it changes anything but the room: a caller may go on after a std::bad_alloc.
Id Graph::add(Op op, DType dtype, std::span<const Id> sources, uint64_t arg) {
  Id ordered[2];
  if (sources.size() == 2 && is_commutative(op) && !in_order(sources[0], sources[1])) {
    ordered[0] = sources[1];
    ordered[1] = sources[0];
    sources = ordered;
  }
  const uint32_t hash = hash_of(op, dtype, sources, arg);
  uint32_t* slot = find_slot(hash, op, dtype, sources, arg);
  if (*slot != 0) return *slot - 1;
  if (size_ * 2 >= table_.size()) {
    grow_table();
    slot = free_slot(hash, sources);
  }
  if (size_ == room_) resize_last_block(kBlockMask + 1);
  Node n = {op, dtype, static_cast<uint16_t>(sources.size()), {}, 0, arg};
  for (Id s : sources) n.src_ops |= op_bit(operator[](s).op);
  if (sources.size() <= 3) {
    std::ranges::copy(sources, n.src);
  } else {
    n.src[0] = long_src_.add(sources);
  }
  hashes_.push_back(hash);
  blocks_[size_ >> kBlockBits][size_ & kBlockMask] = n;
  *slot = size_ + 1;
  return size_++;
}

ListId Graph::list(std::span<const int64_t> values) {
  return lists_->intern(values);
}
std::span<const int64_t> Graph::list(ListId id) const {
  return lists_->get(id);
}

Id Graph::constant(DType dtype, int64_t value) {
  return add(Op::Const, dtype, {}, bits_of(value, dtype));
}
Id Graph::constant(DType dtype, double value) {
  return add(Op::Const, dtype, {}, bits_of(value, dtype));
}

Id Graph::binary(Op op, Id a, Id b) {
  return add(op, is_compare(op) ? DType::Bool : operator[](a).dtype, {a, b});
}

uint64_t bits_of(int64_t value, DType dtype) {
  if (is_float(dtype)) return bits_of(static_cast<double>(value), dtype);
  return static_cast<uint64_t>(round_int(value, dtype));
}

uint64_t bits_of(double value, DType dtype) {
  if (is_float(dtype)) return std::bit_cast<uint64_t>(round_float(value, dtype));
  if (dtype == DType::Bool) return value != 0;
  return static_cast<uint64_t>(float_to_int(value, dtype));
}

uint64_t storage_bits(uint64_t constant, DType dtype) {
  if (!is_float(dtype) || dtype == DType::F64) return constant;
  const double value = std::bit_cast<double>(constant);
  if (dtype == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode_small_float(value, dtype);
}

uint64_t constant_bits(uint64_t stored, DType dtype) {
  if (!is_float(dtype))
    return static_cast<uint64_t>(round_int(static_cast<int64_t>(stored), dtype));
  if (dtype == DType::F64) return stored;
  if (dtype == DType::F32)
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(stored))));
  return std::bit_cast<uint64_t>(decode_small_float(static_cast<uint16_t>(stored), dtype));
}

double const_float(const Graph& g, Id id) {
  const Node& n = g[id];
  if (is_float(n.dtype)) return std::bit_cast<double>(n.arg);
  if (n.dtype == DType::U64) return static_cast<double>(n.arg);
  return static_cast<double>(static_cast<int64_t>(n.arg));
}

}  // namespace plugrad
