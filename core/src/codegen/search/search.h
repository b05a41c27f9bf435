// Schedule search: the space of a kernel's legal schedules with their predicted costs, hill climbing
// by these costs, and beam search by times that the callback `measure` takes.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "codegen/kernel.h"
#include "codegen/tiling/cost_model.h"
#include "plugrad/error.h"

namespace plugrad::codegen {

/// Raised when a schedule changes its meaning or kernels change their speed; part of the database
/// key.
inline constexpr uint32_t kSearchVersion = 5;

/// Logs a schedule that could not be applied or generated, at debug levels only unless it is a bug.
void log_refusal(const Error& error);

/// A legal schedule and its prediction.
struct Candidate {
  KernelSchedule list;
  Prediction prediction;
  double cost() const { return prediction.cost(); }
};

/// Whether a search goes on; may be called by several threads at once.
using GoesOn = std::function<bool()>;

/// The schedules of one kernel as it enters the stage "apply schedule". Thread-safe.
class SearchSpace {
 public:
  /// Keeps a reference to `caps`.
  SearchSpace(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options);
  explicit SearchSpace(const Kernel& start);

  /// The schedule without measurements: the heuristic's, improved by climb().
  Candidate chosen() const;
  /// Also predicts a schedule that spills or makes too much code. Errors: User if the schedule is
  /// not legal for the kernel, naming the step.
  Candidate predicted(const KernelSchedule& list) const;
  /// Errors: as predicted(), and User if the schedule needs more registers than the device has or
  /// too much code.
  Candidate require_legal(const KernelSchedule& list) const;
  /// As require_legal(); nothing on an error.
  std::optional<Candidate> look(const KernelSchedule& list) const;
  /// Schedules one change away: another amount, a step less or more, another order, more or fewer
  /// threads, or two amounts at once, because most changes of a register tile need two.
  /// Those that are left when `goes_on`, if given, says no are left out: it is asked before each
  /// prediction, of which those of a large kernel take long.
  std::vector<Candidate> near(const KernelSchedule& list, const GoesOn& goes_on = {}) const;
  /// The `most` changes of near() with the largest effect per prediction: a step less, an expanded
  /// output loop or sum, two loops swapped, an operand copied. No changes of amounts.
  struct Near {
    std::vector<Candidate> candidates;
    size_t looks = 0;  // predictions, with those of illegal schedules
  };
  Near first_of_near(const KernelSchedule& list, size_t most) const;
  /// Schedules near chosen() with a predicted cost of at most `slack` times its cost, cheapest
  /// first; of those before `goes_on` says no.
  std::vector<Candidate> alternatives(double slack, const GoesOn& goes_on = {}) const;

  const Kernel& start() const { return start_; }

 private:
  Kernel start_;
  int64_t bytes_;
};

/// Limits of one climb: predicted schedules, and nodes of their kernels together. A prediction
/// takes 5 us, a climb at most 10 ms, on Zen 4 at 3 GHz (docs/search.md).
inline constexpr size_t kMostLooks = 24, kMostNodes = 2'000;
/// Share of the predicted time that a better schedule may take. Chosen; rows measured with it are
/// in docs/decisions/schedules-are-climbed-to.md.
inline constexpr double kClearly = 0.9;

struct Climb {
  Candidate first, best;
  size_t looks = 0;
};

/// Hill climbing: moves from `first` to the cheapest near schedule while one is cheaper by kClearly
/// and at most `most` were predicted. Depends on the kernel and the device only.
Climb climb(const SearchSpace& space, Candidate first, size_t most = kMostLooks);

/// Applies the schedule that climb() finds.
void apply_search(Kernel& kernel);

/// A schedule that was timed.
struct Timed {
  KernelSchedule list;
  KernelCode code;
  double cost = 0;     // predicted
  double seconds = 0;  // of one launch
};

struct BeamProgress {
  uint32_t tried = 0;
  double first_seconds = 0, best_seconds = 0;  // of the heuristic's kernel and of the best so far
  double seconds_left = 0;
};

struct BeamOptions {
  uint32_t width = 1;                 // schedules whose neighbours are expanded
  double seconds = 10;                // time limit for measurements
  std::vector<KernelSchedule> seeds;  // tried first, if legal
  uint32_t batch = 8;                 // schedules measured together
  std::function<double()> now;        // a clock, in seconds
  /// Seconds of one launch of each kernel, timed side by side; infinity for one that does not
  /// compile, crashes, or is clearly slower than the first.
  std::function<std::vector<double>(std::span<const KernelCode* const>)> measure;
  /// Whether a kernel that is faster than all before computes the right values; otherwise it is
  /// dropped.
  std::function<bool(const Timed&)> accept;
  std::function<void(const BeamProgress&)> report = [](const BeamProgress&) {};
};

struct BeamResult {
  KernelSchedule list;  // the heuristic's unless an accepted one is faster
  double first_seconds = 0, seconds = 0;
  uint32_t tried = 0;
  bool is_better = false;  // than the heuristic's
};

/// Errors: what `measure` and `accept` throw.
BeamResult beam_search(const Graph& ast, Id sink, const pgr_device_caps& caps,
                       const Options& options, const BeamOptions& beam);

}  // namespace plugrad::codegen
