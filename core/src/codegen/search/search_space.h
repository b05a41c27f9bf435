// What search chooses from: the lists of optimisations near a list, those that are legal for the
// kernel, each with what it is predicted to cost.
#pragma once

#include <optional>

#include "codegen/kernel.h"
#include "codegen/tiling/prediction.h"
#include "plugrad/error.h"

namespace plugrad::codegen {

/// Raised when a list comes to mean another kernel than before, or kernels another speed.
inline constexpr uint32_t kSearchVersion = 5;

/// A list could not be applied or generated: to be left out. DEBUG tells where that is a bug.
void log_refusal(const Error& error);

/// A legal list that nothing has run of yet.
struct Candidate {
  KernelSchedule list;
  Prediction prediction;
  double cost() const { return prediction.cost(); }
};

/// One kernel as the stage "apply schedule" finds it. Its functions may be called from any thread.
class SearchSpace {
 public:
  /// `caps` lives as long.
  SearchSpace(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options);
  explicit SearchSpace(const Kernel& start);

  /// The schedule of a kernel without measurements: the heuristic's, improved by climb().
  Candidate chosen() const;
  /// Also of a list that spills or is too much code. Errors: User where the list is not legal for
  /// the kernel, naming the change.
  Candidate predicted(const KernelSchedule& list) const;
  /// Errors: as predicted(), and User where the list asks for more registers than there are, or for
  /// more code than a compiler should be given.
  Candidate require_legal(const KernelSchedule& list) const;
  /// The same, and nothing where that is an error.
  std::optional<Candidate> look(const KernelSchedule& list) const;
  /// Those one change away: another amount, a change less or more, another order, more or fewer
  /// threads; and two amounts at once, since one register tile becomes another only so.
  std::vector<Candidate> near(const KernelSchedule& list) const;
  /// Of near(), the `most` changes that reach furthest for what they cost to look at: a step less,
  /// an output loop or a sum expanded, two loops in the other order, an operand copied; none with
  /// an amount of its own to find.
  struct Near {
    std::vector<Candidate> candidates;
    size_t looks = 0;  // with those that were not legal
  };
  Near first_of_near(const KernelSchedule& list, size_t most) const;
  /// Those near chosen() that are predicted to cost at most `slack` times as much, the
  /// cheapest first.
  std::vector<Candidate> alternatives(double slack) const;

  const Kernel& start() const { return start_; }

 private:
  Kernel start_;
  int64_t bytes_;
};

}  // namespace plugrad::codegen
