// Why plans and recordings were made: what differs from earlier ones, in sentences for users.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/internal.h"

namespace plugrad::engine {

/// The kind of a difference. Where several things differ, the first ones here explain the others.
enum class Cause : uint8_t {
  DType,
  Device,
  Shape,
  Number,
  RequiresGrad,
  Gradient,   ///< a tensor has a gradient, or has none
  Captured,   ///< a tensor that a jitted function captures
  Structure,  ///< the function or its arguments do something else
  Settings,
  Dropped,  ///< nothing: the caches keep what was used recently
};

/// A property that a plan or a recording depends on.
struct Fact {
  Cause cause;
  std::string name, value;
  uint64_t hash = 0;  // of what `value` does not show
};

struct Difference {
  Cause cause;
  std::string name, was, is;
};

/// The facts that differ; that the structure does, if their names do.
PLUGRAD_INTERNAL std::vector<Difference> differences(std::span<const Fact> was,
                                                     std::span<const Fact> is);

/// A call that found no recording, or a computation that found no plan.
struct Miss {
  uint64_t number = 0;                    // of the call; 0 for a plan
  std::vector<Difference> differences{};  // none: nothing of the kind was there
  std::string of{};                       // what a plan computes
  uint32_t place = 0;                     // the line of the program (base/binding.h)
  uint64_t kernels = 0, compile_ns = 0;   // what a plan compiled
};

/// The last misses.
class Misses {
 public:
  void add(Miss miss);
  bool empty() const { return last_.empty(); }
  /// The last name of what differed for this cause; empty if there is none.
  std::string last_name(Cause cause) const;
  /// Of the last one: what differed and what to write instead.
  std::string last_text() const;
  /// A line for each, oldest first, and what to write instead for each cause.
  PLUGRAD_INTERNAL std::string text() const;

 private:
  static constexpr size_t kMost = 256;
  std::deque<Miss> last_;
  uint64_t dropped_ = 0;
};

/// Advice for a number that differs in each call.
std::string advice_on_numbers();

}  // namespace plugrad::engine
