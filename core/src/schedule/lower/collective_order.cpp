#include "schedule/lower/collective_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "base/check.h"

namespace plugrad::schedule {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// A link for which the order is chosen: 100 us until all processes have met, then 1.25 bytes a ns,
// as of 10 Gb/s Ethernet. A faster link only ends earlier than expected.
constexpr double kLatencyNs = 100'000, kBytesANs = 1.25;
// Limit on values that are computed or received before their turn, to fill the time of a transfer.
constexpr int64_t kMostAheadBytes = 64 << 20;
// Kernels that read what has arrived go before those that give the link more to do if more than this
// waits to be read, and more than this part of what all collectives hold: what is left can run
// beside the last transfers.
constexpr int64_t kLeastHeldBytes = 16 << 20;
constexpr int64_t kHeldPart = 4;

/// A kernel, a copy or a bucket of collectives.
struct Unit {
  std::vector<Id> outputs;
  std::vector<uint32_t> reads = {};  // other units
  double ns = 0;                     // of a collective: from its start to its end
  int64_t bytes = 0;                 // temporaries that it writes
  int64_t held_bytes = 0;            // of a collective: source and result, until they are read
  bool is_collective = false;
  uint32_t bucket = kNone;  // of a collective: its number; of a kernel: the first that needs it
  // A kernel that reads a collective, or that only such kernels need.
  bool is_receiver = false;
};

/// The buckets, then the kernels.
std::vector<Unit> units_of(const SchedulerState& state) {
  std::vector<Unit> units;
  for (uint32_t b = 0; b < state.buckets.size(); ++b)
    units.push_back({.outputs = state.buckets[b], .is_collective = true, .bucket = b});
  for (const std::vector<Id>& kernel : state.kernels)
    if (state.graph[kernel[0]].op != Op::Collective) units.push_back({.outputs = kernel});
  return units;
}

/// Finds what units read and how long they take, walking from their outputs down to stored values.
class UnitReader {
 public:
  UnitReader(const SchedulerState& state, std::span<const Unit> units)
      : state_(state),
        unit_of_(state.graph.size(), kNone),
        epoch_(state.graph.size()),
        is_root_(state.graph.size()) {
    for (uint32_t u = 0; u < units.size(); ++u)
      for (const Id output : units[u].outputs) unit_of_[output] = u;
    for (const Id root : state.roots) is_root_[root] = true;
  }

  void read(Unit& unit) {
    const uint32_t own = unit_of_[unit.outputs[0]];
    int64_t moved = 0, operations = 0;
    ++current_;
    std::vector<Id> stack = unit.outputs;
    while (!stack.empty()) {
      const Id id = stack.back();
      stack.pop_back();
      if (epoch_[id] == current_) continue;
      epoch_[id] = current_;
      const uint32_t from = unit_of_[id];
      if (from != kNone || state_.graph[id].op == Op::Buffer) moved += bytes_of(id);
      if (from == own && !is_root_[id]) unit.bytes += bytes_of(id);
      if (from != kNone && from != own) {
        unit.reads.push_back(from);
        continue;
      }
      for (const Id source : state_.graph.sources(id)) {
        operations += state_.counts[source];
        stack.push_back(source);
      }
      if (const auto limits = state_.limits.find(id); limits != state_.limits.end())
        for (const Limit& limit : limits->second) stack.push_back(limit.count);
    }
    std::ranges::sort(unit.reads);
    unit.reads.erase(std::ranges::unique(unit.reads).begin(), unit.reads.end());
    if (unit.is_collective) unit.held_bytes = moved;
    unit.ns = unit.is_collective ? kLatencyNs + static_cast<double>(moved) / kBytesANs
                                 : kernel_ns(moved, operations);
  }

 private:
  int64_t bytes_of(Id id) const {
    return state_.counts[id] * static_cast<int64_t>(size_of(state_.graph[id].dtype));
  }

  double kernel_ns(int64_t moved, int64_t operations) const {
    const cost::Machine& m = state_.options.machine;
    const double cycles =
        std::max(static_cast<double>(moved) / m.memory().all,
                 static_cast<double>(operations) / (m.threads * m.lanes * m.multiply_adds));
    return cycles / m.cycles_a_second * 1e9;
  }

  const SchedulerState& state_;
  std::vector<uint32_t> unit_of_;  // by node that a unit stores
  std::vector<uint32_t> epoch_;
  std::vector<bool> is_root_;  // its memory is taken for the whole plan
  uint32_t current_ = 0;
};

/// Numbers each kernel by the first bucket that needs it.
void find_needs(std::vector<Unit>& units, uint32_t buckets) {
  for (uint32_t b = 0; b < buckets; ++b) {
    std::vector<uint32_t> stack = units[b].reads;
    while (!stack.empty()) {
      Unit& unit = units[stack.back()];
      stack.pop_back();
      if (unit.is_collective || unit.bucket != kNone) continue;
      unit.bucket = b;
      stack.insert(stack.end(), unit.reads.begin(), unit.reads.end());
    }
  }
}

/// Marks the kernels that read a collective, and those that are needed for them alone.
void find_receivers(std::vector<Unit>& units) {
  std::vector<uint32_t> stack;
  const auto mark = [&](uint32_t u) {
    if (!units[u].is_receiver) stack.push_back(u);
    units[u].is_receiver = true;
  };
  for (uint32_t u = 0; u < units.size(); ++u)
    if (std::ranges::any_of(units[u].reads, [&](uint32_t r) { return units[r].is_collective; }))
      mark(u);
  while (!stack.empty()) {
    const Unit& unit = units[stack.back()];
    stack.pop_back();
    for (const uint32_t read : unit.reads)
      if (!units[read].is_collective && units[read].bucket == unit.bucket) mark(read);
  }
}

/// Puts first what the first bucket needs, then this bucket, what the second one needs and so on,
/// and at the end what no bucket needs, such as the updates of parameters. Buckets of stored values
/// come before their first reader.
std::vector<uint32_t> order_of_need(std::span<const Unit> units) {
  std::vector<uint32_t> sorted(units.size()), order;
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(
      sorted, {}, [&](uint32_t u) { return std::pair(units[u].bucket, units[u].is_collective); });
  std::vector<bool> is_placed(units.size());
  const auto place = [&](uint32_t u) {
    if (!is_placed[u]) order.push_back(u);
    is_placed[u] = true;
  };
  const auto is_stored = [&](uint32_t u) {
    return units[u].is_collective && units[u].reads.empty();
  };
  for (const uint32_t u : sorted) {
    for (const uint32_t read : units[u].reads)
      if (is_stored(read)) place(read);
    if (!is_stored(u)) place(u);
  }
  for (const uint32_t u : sorted) place(u);
  return order;
}

std::vector<Unit> in_order(std::vector<Unit> units, std::span<const uint32_t> order) {
  std::vector<uint32_t> place(units.size());
  for (uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  std::vector<Unit> sorted;
  for (const uint32_t u : order) {
    for (uint32_t& read : units[u].reads) read = place[read];
    sorted.push_back(std::move(units[u]));
  }
  return sorted;
}

/// List scheduling (Graham 1969) with one processor and one link: runs the first unit that need not
/// wait, and starts collectives as soon as their sources are there. A receiver goes first if the link
/// has enough to do meanwhile, or if much memory waits to be read.
class ListScheduling {
 public:
  explicit ListScheduling(std::span<const Unit> units)
      : units_(units),
        readers_(units.size()),
        unread_(units.size()),
        missing_(units.size()),
        free_ns_(units.size()),
        is_placed_(units.size()),
        is_ahead_(units.size()) {
    for (uint32_t u = 0; u < units.size(); ++u) {
      missing_[u] = units[u].reads.size();
      for (const uint32_t read : units[u].reads) readers_[read].push_back(u);
      if (units[u].is_collective) collectives_.push_back(u);
    }
    std::ranges::sort(collectives_, {}, [&](uint32_t u) { return units[u].bucket; });
    for (uint32_t u = 0; u < units.size(); ++u) unread_[u] = readers_[u].size();
    int64_t all_bytes = 0;
    for (const uint32_t u : collectives_) all_bytes += units[u].held_bytes;
    most_held_bytes_ = std::max(kLeastHeldBytes, all_bytes / kHeldPart);
  }

  std::vector<uint32_t> run() {
    for (uint32_t u = 0; u < units_.size(); ++u)
      if (missing_[u] == 0) make_ready(u);
    while (order_.size() < units_.size()) place(next());
    return std::move(order_);
  }

 private:
  using Ready = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;

  bool may_start_collective() const {
    if (next_collective_ == collectives_.size()) return false;
    const uint32_t u = collectives_[next_collective_];
    return missing_[u] == 0 && (!units_[u].reads.empty() || may_run_ahead(u));
  }

  bool may_run_ahead(uint32_t u) const {
    return u == first_ || ahead_bytes_ + units_[u].bytes <= kMostAheadBytes;
  }

  void make_ready(uint32_t u) {
    if (!units_[u].is_collective) waiting_.emplace(free_ns_[u], u);
  }

  Ready& ready_of(uint32_t u) { return units_[u].is_receiver ? receivers_ : others_; }

  /// The units to choose from first; if it is empty, both are.
  Ready& better() {
    if (others_.empty()) return receivers_;
    if (receivers_.empty()) return others_;
    const uint32_t u = receivers_.top();
    const bool has_link_work = link_ns_ >= now_ns_ + units_[u].ns;
    const bool is_first = u < others_.top() || has_link_work || held_bytes_ > most_held_bytes_;
    return is_first ? receivers_ : others_;
  }

  static uint32_t popped(Ready& ready) {
    const uint32_t u = ready.top();
    ready.pop();
    return u;
  }

  uint32_t next() {
    while (true) {
      for (; !waiting_.empty() && waiting_.top().first <= now_ns_; waiting_.pop())
        ready_of(waiting_.top().second).push(waiting_.top().second);
      if (may_start_collective()) return collectives_[next_collective_];
      Ready& first = better();
      Ready& second = &first == &others_ ? receivers_ : others_;
      for (Ready* ready : {&first, &second})
        if (!ready->empty() && may_run_ahead(ready->top())) return popped(*ready);
      if (waiting_.empty()) return first.empty() ? next_collective() : popped(first);
      now_ns_ = waiting_.top().first;
    }
  }

  /// No kernel can run before the next collective has.
  uint32_t next_collective() const {
    ensure(next_collective_ < collectives_.size() && missing_[collectives_[next_collective_]] == 0,
           "the kernels of a plan and its collectives wait for each other");
    return collectives_[next_collective_];
  }

  void place(uint32_t u) {
    const Unit& unit = units_[u];
    order_.push_back(u);
    is_placed_[u] = true;
    double end_ns = 0;  // of a kernel: readers come after it anyway
    if (unit.is_collective) {
      end_ns = link_ns_ = std::max(now_ns_, link_ns_) + unit.ns;
      if (unread_[u] != 0) held_bytes_ += unit.held_bytes;
      ++next_collective_;
    } else {
      now_ns_ += unit.ns;
    }
    if (u != first_) {
      is_ahead_[u] = true;
      ahead_bytes_ += unit.bytes;
    }
    for (const uint32_t read : unit.reads)
      if (--unread_[read] == 0) held_bytes_ -= units_[read].held_bytes;
    for (; first_ < units_.size() && is_placed_[first_]; ++first_)
      if (is_ahead_[first_]) ahead_bytes_ -= units_[first_].bytes;
    for (const uint32_t reader : readers_[u]) {
      free_ns_[reader] = std::max(free_ns_[reader], end_ns);
      if (--missing_[reader] == 0) make_ready(reader);
    }
  }

  std::span<const Unit> units_;
  std::vector<std::vector<uint32_t>> readers_;
  std::vector<size_t> unread_;   // readers that are not placed yet
  std::vector<size_t> missing_;  // units that are read and not placed yet
  std::vector<double> free_ns_;  // when what is read has arrived
  std::vector<bool> is_placed_, is_ahead_;
  std::vector<uint32_t> collectives_, order_;
  size_t next_collective_ = 0;
  uint32_t first_ = 0;       // that is not placed
  int64_t ahead_bytes_ = 0;  // written by units behind it
  int64_t held_bytes_ = 0;   // of collectives that are not read yet
  int64_t most_held_bytes_ = 0;
  double now_ns_ = 0, link_ns_ = 0;
  Ready receivers_, others_;
  using Waiting = std::pair<double, uint32_t>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

/// The kernels in this order, each collective a second time before the first unit that reads it.
std::vector<std::vector<Id>> with_waits(std::span<const Unit> units,
                                        std::span<const uint32_t> order) {
  std::vector<std::vector<Id>> kernels;
  std::vector<bool> in_flight(units.size());
  const auto end = [&](uint32_t u) {
    if (in_flight[u]) kernels.push_back(units[u].outputs);
    in_flight[u] = false;
  };
  for (const uint32_t u : order) {
    for (const uint32_t read : units[u].reads) end(read);
    kernels.push_back(units[u].outputs);
    in_flight[u] = units[u].is_collective;
  }
  for (const uint32_t u : order) end(u);
  return kernels;
}

}  // namespace

void order_collectives(SchedulerState& state) {
  if (state.buckets.empty()) return;
  std::vector<Unit> units = units_of(state);
  UnitReader reader(state, units);
  for (Unit& unit : units) reader.read(unit);
  find_needs(units, static_cast<uint32_t>(state.buckets.size()));
  find_receivers(units);
  const std::vector<uint32_t> order = order_of_need(units);
  units = in_order(std::move(units), order);
  state.kernels = with_waits(units, ListScheduling(units).run());
}

}  // namespace plugrad::schedule
