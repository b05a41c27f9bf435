// Why plans and recordings were made: what differs from earlier ones, in sentences for users.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
std::vector<Difference> differences(std::span<const Fact> was, std::span<const Fact> is);

/// "k is 0.5, was 0.25"; for none that it is the first of its kind.
std::string text_of(std::span<const Difference> differences);
/// "number": the cause of those that explain the others.
std::string_view name_of_cause(std::span<const Difference> differences);

/// The facts of the last calls that were recorded.
class Kinds {
 public:
  /// The differences from the most similar one, none if it is the first; null if one is equal.
  PLUGRAD_INTERNAL std::optional<std::vector<Difference>> add(std::vector<Fact> facts);

 private:
  static constexpr size_t kMost = 32;
  std::deque<std::vector<Fact>> last_;
};

/// A call that found no recording, or a computation that found no plan.
struct Miss {
  uint64_t number = 0;                    // of the call; 0 for a plan
  std::vector<Difference> differences{};  // none: nothing of the kind was there
  std::string of{};                       // what a plan computes
  std::string remark{};                   // why no plan for many lengths serves it
  uint32_t place = 0;                     // the line of the program (base/binding.h)
  uint64_t kernels = 0, compile_ns = 0;   // what a plan compiled
  uint32_t operation = 0;                 // of the trace
  uint64_t reads = 0;                     // that the program has done
};

/// The last misses.
class Misses {
 public:
  PLUGRAD_INTERNAL void add(Miss miss);
  bool empty() const { return last_.empty(); }
  /// The last name of what differed for this cause; empty if there is none.
  PLUGRAD_INTERNAL std::string last_name(Cause cause) const;
  /// Of the last one: what differed and what to write instead.
  std::string last_text() const;
  /// A line for each, oldest first.
  PLUGRAD_INTERNAL std::string lines() const;
  /// The same, and what to write instead for each cause.
  PLUGRAD_INTERNAL std::string text() const;

 private:
  static constexpr size_t kMost = 256;
  std::deque<Miss> last_;
  uint64_t dropped_ = 0;
};

}  // namespace plugrad::engine
