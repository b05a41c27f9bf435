// Calls a function for the nodes that it records, and leaves the program as it was before.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/internal.h"
#include "engine/session.h"

namespace plugrad::engine {

/// While one lives, values are recorded as usual. Its end gives the tensors that existed before their
/// nodes, and the random generator its state, unless undo() did so.
class PLUGRAD_INTERNAL Rehearsal {
 public:
  explicit Rehearsal(Session& session);
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  /// Returns the number of tensors that were assigned.
  std::size_t undo();
  /// Whether random numbers were drawn before undo().
  bool drew_random() const { return drew_random_; }
  /// States of the nodes that tensors had before.
  std::span<const StatePtr> existing() const { return existing_; }

 private:
  Session& session_;
  RandomState random_;
  std::vector<StatePtr> states_, existing_;
  std::vector<bool> was_pending_;
  bool drew_random_ = false;
  bool is_undone_ = false;
};

}  // namespace plugrad::engine
