// Counts how often one kernel evaluates each node that it computes: once for each iteration of the
// loops that an index of it depends on, of each way in which the kernel reads it.
//   out[i] = sum over k < 5 of exp(x)[i + k]        exp: 5 evaluations for each element of out
//   out[i, j] = y[i, j] * exp(v)[j]                  exp: one for each element of out
#pragma once

#include <map>
#include <vector>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

class Evaluations {
 public:
  explicit Evaluations(SchedulerState& state);

  /// Walks the kernel that computes the stored value `output` alone. The facts below are of the last
  /// walk.
  void walk(Id output);

  /// Ascending: what the kernel computes or reads. Reads have no evaluations.
  const std::vector<Id>& nodes() const { return nodes_; }
  double of(Id id) const { return times_[id]; }
  /// Values that are read in more ways than are told apart.
  const std::vector<Id>& crowded() const { return crowded_; }
  /// Of memory, each element that is read or written once.
  double bytes() const { return bytes_; }

 private:
  using WayId = uint32_t;
  /// kPath, kGate, kGateLoops, kIsSummed, then for each axis the loops that its index depends on, as
  /// bits, and an offset. Ways with equal numbers have equal indices.
  using Way = std::vector<int64_t>;
  enum : size_t { kPath, kGate, kGateLoops, kIsSummed, kAxes };

  struct Piece {  // of a loop of the output, or of a piece of one
    int64_t of, begin;
  };

  void walk_ways();
  double times_of(const std::vector<WayId>& ways);
  void find_nodes();
  WayId first_way();
  void pass_on(Id id, const std::vector<WayId>& ways);
  void add_way(Id id, WayId way);
  WayId through(Id id, Id source, WayId way);
  void move(Id id, Way& way);
  void reshape(Id id, Way& way);
  void pad(Id id, Way& way);
  void enter_reduce(Id id, Way& way);
  int64_t loop_of_reduce(Id id, size_t axis, const Way& way, int64_t inside);
  int64_t piece_of(int64_t loops, int64_t begin, int64_t size);
  bool may_cut(int64_t loops, int64_t begin, int64_t size) const;
  int64_t number(std::vector<int64_t> key);
  int64_t new_loop(int64_t size);
  int64_t loop(std::vector<int64_t> key, int64_t size);
  WayId intern(Way way);
  double iterations(int64_t loops) const;
  double evaluations(WayId way) const;
  bool is_read(Id id) const { return id != output_ && state_.stored[id] != 0; }

  SchedulerState& state_;
  const Graph& g_;
  Id output_ = kNoId;
  bool keeps_rows_ = false;  // the kernel computes values of rows once, outside its inner loops
  bool cuts_ = true;         // codegen cuts the loops of the output at paddings
  int64_t output_loops_ = 0;
  std::map<int64_t, Piece> pieces_;                 // by loop
  std::map<int64_t, std::vector<int64_t>> cut_at_;  // by loop: where its pieces begin and end
  double bytes_ = 0;
  std::vector<Id> nodes_, crowded_;
  std::vector<double> times_;           // by id
  std::vector<std::vector<WayId>> of_;  // by id, until it is passed on
  std::vector<int64_t> phase_;          // by id: nested Reduces on the longest path down
  std::vector<int64_t> sizes_;          // by loop
  std::vector<const Way*> ways_;        // by number
  std::map<Way, WayId> way_ids_;
  std::map<std::vector<int64_t>, int64_t> numbers_, loops_;
};

}  // namespace plugrad::schedule
