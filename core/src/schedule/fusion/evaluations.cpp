#include "schedule/fusion/evaluations.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>

namespace plugrad::schedule {
namespace {

constexpr size_t kMostWays = 32;   // of one node; the walk is linear
constexpr size_t kLoopBits = 63;   // later ones count as one iteration
constexpr size_t kMostPieces = 8;  // of an output's loop, as codegen cuts it at paddings

}  // namespace

Evaluations::Evaluations(SchedulerState& state)
    : state_(state), g_(state.graph), times_(g_.size(), 0), of_(g_.size()), phase_(g_.size(), 0) {}

void Evaluations::walk(Id output) {
  output_ = output;
  find_nodes();
  cuts_ = state_.options.subgroup == 1;  // work-items in lockstep would run all pieces
  walk_ways();
  const auto is_long = [](const auto& loop) { return loop.second.size() >= kMostPieces; };
  if (std::ranges::none_of(cut_at_, is_long)) return;
  cuts_ = false;
  walk_ways();
}

void Evaluations::walk_ways() {
  bytes_ = 0;
  crowded_.clear();
  way_ids_.clear();
  ways_.clear();
  numbers_.clear();
  loops_.clear();
  sizes_.clear();
  pieces_.clear();
  cut_at_.clear();
  of_[output_] = {first_way()};
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Id id = nodes_[i];
    const std::vector<WayId> ways = std::move(of_[id]);
    of_[id].clear();
    state_.visits += ways.size();
    const double times = times_of(ways);
    const auto count = static_cast<double>(state_.counts[id]);
    if (id == output_ || is_read(id))
      bytes_ += std::min(times, count) * static_cast<double>(size_of(strong(g_[id].dtype)));
    if (is_read(id) || is_number(g_, id)) continue;
    times_[id] = times;
    if (ways.size() > kMostWays) crowded_.push_back(id);
    pass_on(id, ways);
  }
}

/// Parts of a loop that run together compute a value of both once.
double Evaluations::times_of(const std::vector<WayId>& ways) {
  if (ways.size() == 1) return evaluations(ways[0]);
  double times = 0;
  std::set<Way> known;
  for (const WayId id : ways) {
    Way way(*ways_[id]);
    way[kIsSummed] = 0;
    if (way[kGateLoops] == 0) way[kGate] = 0;
    if (known.insert(std::move(way)).second) times += evaluations(id);
  }
  return times;
}

void Evaluations::find_nodes() {
  nodes_ = state_.reachable.from(g_, std::span(&output_, 1), [&](Id id) { return is_read(id); });
  state_.visits += nodes_.size();
  keeps_rows_ = false;
  for (const Id id : nodes_) {
    times_[id] = 0;
    phase_[id] = 0;
    if (is_read(id)) continue;
    keeps_rows_ = keeps_rows_ || (state_.of_rows[id] | state_.in_blocks[id]) != 0;
    for (const Id s : g_.sources(id)) phase_[id] = std::max(phase_[id], phase_[s]);
    phase_[id] += g_[id].op == Op::Reduce ? 1 : 0;
  }
}

Evaluations::WayId Evaluations::first_way() {
  Way way(kAxes, 0);
  for (const int64_t size : state_.shapes[output_]) {
    way.push_back(size == 1 ? 0 : new_loop(size));
    way.push_back(0);
  }
  output_loops_ = sizes_.empty() ? 0 : (int64_t{1} << sizes_.size()) - 1;
  return intern(std::move(way));
}

/// Of a node that is read in too many ways, no more than these are followed: it will be stored.
void Evaluations::pass_on(Id id, const std::vector<WayId>& ways) {
  for (const Id s : g_.sources(id))
    for (size_t i = 0; i < std::min(ways.size(), kMostWays); ++i)
      add_way(s, through(id, s, ways[i]));
}

void Evaluations::add_way(Id id, WayId way) {
  std::vector<WayId>& ways = of_[id];
  if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
}

/// How `source` is read by a node that is read in the given way.
Evaluations::WayId Evaluations::through(Id id, Id source, WayId at) {
  const Op op = g_[id].op;
  if (is_number(g_, source)) return at;
  if (state_.shapes[source].empty()) {
    Way way(*ways_[at]);
    way.resize(kAxes);
    way[kPath] = way[kIsSummed] = 0;
    return intern(std::move(way));
  }
  if (!is_movement(op) && op != Op::Reduce && (*ways_[at])[kIsSummed] == 0) return at;
  Way way(*ways_[at]);
  if (op == Op::Reduce)
    enter_reduce(id, way);
  else if (is_movement(op))
    move(id, way);
  else
    way[kIsSummed] = 0;
  int64_t runs = 0;
  for (size_t i = kAxes; i < way.size(); i += 2) runs |= way[i];
  if (runs == 0) way[kGate] = way[kGateLoops] = 0;  // an element of its own, computed in any case
  return intern(std::move(way));
}

void Evaluations::move(Id id, Way& way) {
  const auto list = g_.arg_list(id);
  const auto from = state_.shapes[g_[id].src[0]];
  const auto loops = [&](size_t axis) -> int64_t& { return way[kAxes + 2 * axis]; };
  const auto offset = [&](size_t axis) -> int64_t& { return way[kAxes + 2 * axis + 1]; };
  switch (g_[id].op) {
    case Op::Reshape:
      return reshape(id, way);
    case Op::Pad:
      return pad(id, way);
    case Op::Permute: {
      const Way before = way;
      for (size_t i = 0; i < list.size(); ++i) {
        loops(static_cast<size_t>(list[i])) = before[kAxes + 2 * i];
        offset(static_cast<size_t>(list[i])) = before[kAxes + 2 * i + 1];
      }
      return;
    }
    case Op::Expand:
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] == 1) loops(i) = offset(i) = 0;
      return;
    case Op::Shrink:
      for (size_t i = 0; i < from.size(); ++i) offset(i) += list[2 * i];
      return;
    case Op::Flip:
      for (size_t i = 0; i < from.size(); ++i)
        if (list[i] != 0) {
          way[kPath] = number({way[kPath], static_cast<int64_t>(i), offset(i), from[i]});
          offset(i) = 0;
        }
      return;
    default:  // a window: its begin is a number
      way[kPath] = number({way[kPath], list[0], static_cast<int64_t>(g_[id].src[1])});
  }
}

/// Axes that a reshape splits or merges depend on all loops of their group.
void Evaluations::reshape(Id id, Way& way) {
  const auto to = state_.shapes[id], from = state_.shapes[g_[id].src[0]];
  Way out(way.begin(), way.begin() + kAxes);
  out.resize(kAxes + 2 * from.size(), 0);
  each_reshape_group(to, from, [&](size_t i, size_t i_end, size_t j, size_t j_end) {
    std::vector<int64_t> key = {out[kPath], static_cast<int64_t>(j)};
    int64_t loops = 0, offset = 0;
    size_t axes = 0;
    for (; i < i_end; ++i) {
      if (to[i] == 1) continue;
      loops |= way[kAxes + 2 * i];
      offset = way[kAxes + 2 * i + 1];
      key.insert(key.end(), {to[i], way[kAxes + 2 * i], offset});
      ++axes;
    }
    const auto wide = [&](size_t axis) { return from[axis] != 1; };
    size_t sources = 0;
    for (size_t axis = j; axis < j_end; ++axis) sources += wide(axis) ? 1 : 0;
    const bool is_same = axes == 1 && sources == 1;
    if (!is_same && loops != 0) out[kPath] = number(std::move(key));
    for (size_t axis = j; axis < j_end; ++axis)
      if (wide(axis)) {
        out[kAxes + 2 * axis] = loops;
        out[kAxes + 2 * axis + 1] = is_same ? offset : 0;
      }
  });
  way = std::move(out);
}

/// Sums skip padding, and codegen cuts a loop of the output at a few paddings. Elsewhere the value is
/// computed for the padding, too.
void Evaluations::pad(Id id, Way& way) {
  const auto list = g_.arg_list(id);
  const auto to = state_.shapes[id], from = state_.shapes[g_[id].src[0]];
  std::vector<int64_t> gate = {way[kGate]};
  for (size_t i = from.size(); i-- > 0;) {
    int64_t& loops = way[kAxes + 2 * i];
    int64_t& offset = way[kAxes + 2 * i + 1];
    const int64_t begin = list[2 * i];
    if (from[i] == to[i]) continue;
    int64_t first = begin - offset, size = from[i];  // where the index is in bounds
    if (std::has_single_bit(static_cast<uint64_t>(loops))) {
      const auto all = static_cast<int64_t>(iterations(loops));
      const int64_t end = std::min(all, first + size);
      offset = std::max<int64_t>(0, -first);
      first = std::max<int64_t>(0, first);
      size = std::max<int64_t>(1, end - first);
      if (size == all) continue;
    } else {
      offset = 0;
    }
    int64_t others = 0;  // a loop that indices of other axes depend on, too, runs as a whole
    for (size_t axis = 0; axis < from.size(); ++axis)
      others |= axis == i ? 0 : way[kAxes + 2 * axis];
    const int64_t piece = (loops & others) != 0 ? 0
                          : way[kIsSummed] != 0 ? loop({1, loops, first, size}, size)
                                                : piece_of(loops, first, size);
    gate.insert(gate.end(), {loops, first, size});
    if (piece != 0) {
      loops = piece;
    } else {
      way[kGateLoops] |= loops;
      offset -= first;
    }
    if (from[i] == 1) loops = offset = 0;
  }
  if (gate.size() > 1) way[kGate] = number(std::move(gate));
}

/// The loop over the part of an output's loops in which an index is in bounds; 0 if codegen would not
/// make one. A second part of the same size runs together with the first (join_halves).
int64_t Evaluations::piece_of(int64_t loops, int64_t begin, int64_t size) {
  if (!may_cut(loops, begin, size)) return 0;
  Piece own{loops, begin};
  for (auto at = pieces_.find(own.of); at != pieces_.end(); at = pieces_.find(own.of))
    own = {at->second.of, own.begin + at->second.begin};
  if (!cut_at_.empty() && !cut_at_.contains(own.of)) return 0;  // one loop is cut
  std::vector<int64_t>& points = cut_at_[own.of];
  for (const int64_t point : {own.begin, own.begin + size})
    if (std::ranges::find(points, point) == points.end()) points.push_back(point);
  int64_t& first = numbers_.try_emplace({2, own.of, size}, own.begin).first->second;
  const bool is_apart = std::abs(first - own.begin) >= size;
  int64_t& second =
      numbers_.try_emplace({3, own.of, size}, is_apart ? own.begin : first).first->second;
  if (is_apart && second == first) second = own.begin;
  const bool is_joined = is_apart && second == own.begin;
  const int64_t piece = loop({2, own.of, size, is_joined ? first : own.begin}, size);
  pieces_.try_emplace(piece, is_joined ? Piece{own.of, first} : own);
  output_loops_ |= piece;
  return piece;
}

/// Of several loops that are one in memory, the outermost.
bool Evaluations::may_cut(int64_t loops, int64_t begin, int64_t size) const {
  if (!cuts_ || loops == 0 || (loops & ~output_loops_) != 0) return false;
  const int64_t outermost = loops & -loops;
  const auto inner = static_cast<int64_t>(iterations(loops ^ outermost));
  return begin % inner == 0 && size % inner == 0;
}

void Evaluations::enter_reduce(Id id, Way& way) {
  const auto from = state_.shapes[g_[id].src[0]];
  int64_t inside = 0;
  for (size_t i = kAxes; i < way.size(); i += 2) inside |= way[i];
  if (state_.indexed[id] != 0)  // one loop over the terms: each is added at its index
    way[kAxes + 2 * (state_.indexed[id] - 1u)] = 0;
  for (const int64_t axis : g_.arg_list(id).subspan(1)) {
    const auto i = static_cast<size_t>(axis);
    int64_t& loops = way[kAxes + 2 * i];
    way[kAxes + 2 * i + 1] = 0;
    const bool is_picked = i < 64 && (state_.picked[id] >> i & 1) != 0;
    if (is_picked) way[kPath] = number({way[kPath], static_cast<int64_t>(id), axis});
    loops = from[i] == 1 ? 0 : is_picked ? inside : loop_of_reduce(id, i, way, inside);
  }
  way[kIsSummed] = 1;
}

/// Reduces over the same sizes inside the same loops share theirs, unless one needs the other. In a
/// kernel that keeps rows, what one of them computes is there for the others and for the output.
int64_t Evaluations::loop_of_reduce(Id id, size_t axis, const Way& way, int64_t inside) {
  const int64_t size = state_.shapes[g_[id].src[0]][axis];
  if (keeps_rows_) {
    int64_t used = 0;
    for (size_t i = kAxes; i < way.size(); i += 2) used |= way[i];
    for (size_t i = sizes_.size(); i-- > 0;)
      if ((used >> i & 1) == 0 && sizes_[i] == size) return int64_t{1} << i;
    return new_loop(size);
  }
  std::vector<int64_t> key = {0, inside & ~output_loops_, phase_[id], static_cast<int64_t>(axis)};
  for (const int64_t other : g_.arg_list(id).subspan(1))
    key.push_back(state_.shapes[g_[id].src[0]][static_cast<size_t>(other)]);
  return loop(std::move(key), size);
}

int64_t Evaluations::number(std::vector<int64_t> key) {
  key.push_back(-1);  // differs from the keys of pieces
  return numbers_.try_emplace(std::move(key), static_cast<int64_t>(numbers_.size() + 1))
      .first->second;
}

int64_t Evaluations::new_loop(int64_t size) {
  if (sizes_.size() == kLoopBits) return 0;
  sizes_.push_back(size);
  return int64_t{1} << (sizes_.size() - 1);
}

int64_t Evaluations::loop(std::vector<int64_t> key, int64_t size) {
  const auto [at, is_new] = loops_.try_emplace(std::move(key), 0);
  if (is_new) at->second = new_loop(size);
  return at->second;
}

Evaluations::WayId Evaluations::intern(Way way) {
  const auto [at, is_new] = way_ids_.try_emplace(std::move(way), static_cast<WayId>(ways_.size()));
  if (is_new) ways_.push_back(&at->first);
  return at->second;
}

double Evaluations::iterations(int64_t loops) const {
  double count = 1;
  for (auto rest = static_cast<uint64_t>(loops); rest != 0; rest &= rest - 1)
    count *= static_cast<double>(sizes_[static_cast<size_t>(std::countr_zero(rest))]);
  return count;
}

double Evaluations::evaluations(WayId id) const {
  const Way& way = *ways_[id];
  int64_t loops = way[kGateLoops];
  for (size_t i = kAxes; i < way.size(); i += 2) loops |= way[i];
  return iterations(loops);
}

}  // namespace plugrad::schedule
