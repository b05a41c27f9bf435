// Values in memory, and the table of the nodes that have one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "runtime/device/device.h"
#include "sharding/spec.h"

namespace plugrad::engine {

class PendingSizeChecks;
class SizeNumber;

struct Value;

/// An integer that a Variable is bound to, or that is computed from such ones alone.
struct BoundVariable {
  int64_t low, high;             // of any value
  std::optional<int64_t> value;  // this one, if the host knows it
};

/// The parts of a value on a mesh.
struct ShardedParts {
  sharding::Spec spec;
  std::vector<std::shared_ptr<Value>> parts;  // by position; null for those of other processes
};

/// The elements of a node, row-major: in device memory, or on the host until a kernel needs them.
struct Value {
  DType dtype = DType::Void;
  uint32_t device = 0;
  uint64_t size_bytes = 0;
  std::shared_ptr<runtime::Buffer> buffer;
  std::span<const std::byte> host;         // valid while there is no buffer
  std::shared_ptr<const void> host_owner;  // keeps `host` in place
  std::shared_ptr<const ShardedParts>
      sharded;  // set if `device` is a mesh: then all above is empty

  std::shared_ptr<Value> with_room;  // the memory that this one begins, if it is larger

  bool is_gone = false;      // its memory was donated to another value
  bool is_assigned = false;  // to a tensor, which stays on its device from then on

  std::optional<BoundVariable> variable;  // set if the value may be a size, of any in its bounds

  std::shared_ptr<SizeNumber> size;  // set if the value is the size of an axis
  std::shared_ptr<PendingSizeChecks>
      pending_checks;  // of sizes that it was computed with; null: none

  // Scratch of one walk: the canonical number of this value as an input (see canonical.h).
  uint32_t walk = 0;
  uint32_t walk_number = 0;
  uint32_t walk_shape = 0;
};
using ValuePtr = std::shared_ptr<Value>;

/// Node to value, by id.
class ValueTable {
 public:
  Value* find(Id id) const { return id < by_id_.size() ? by_id_[id].get() : nullptr; }
  const ValuePtr& share(Id id) const { return by_id_[id]; }
  /// Makes room for the node's value, so that set() needs no memory.
  void reserve(Id id) {
    if (by_id_.size() <= id) by_id_.resize(id + 1 + by_id_.size() / 2);
  }
  void set(Id id, ValuePtr value) {
    reserve(id);
    by_id_[id] = std::move(value);
  }
  /// Drops the values of ids for which keep(id) is false; returns how many.
  template <class Keep>
  size_t retain(Keep keep) {
    size_t dropped = 0;
    for (Id id = 0; id < by_id_.size(); ++id)
      if (by_id_[id] && !keep(id)) {
        by_id_[id].reset();
        ++dropped;
      }
    return dropped;
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const ValuePtr& value : by_id_)
      if (value) visit(*value);
  }

 private:
  std::vector<ValuePtr> by_id_;
};

}  // namespace plugrad::engine
