/// Sets the schedules of the kernels that a scope makes: by a search, as BEAM does for the whole
/// program, or from given schedules, as PLUGRAD_OPTIMISATIONS does.
#pragma once

#include <memory>
#include <string>

#include "plugrad/export.h"

namespace plugrad {

/// During its lifetime, kernels that this thread makes get their schedules by a search:
/// docs/search.md.
///   SearchScope search(4, 15);   // as BEAM=4 BEAM_SECONDS=15
class PLUGRAD_API SearchScope {
 public:
  /// `beam` is the width of the search, 0 for none; `seconds` bounds the search for one kernel.
  /// Errors: User for a beam outside [0, 1024] or seconds that are not above 0.
  explicit SearchScope(int beam, double seconds = 10);
  ~SearchScope();
  SearchScope(const SearchScope&) = delete;
  SearchScope& operator=(const SearchScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// During its lifetime, kernels that this thread makes get the given schedules, without heuristic
/// or search: docs/optimisations.md.
///   OptimisationScope lists("r_512_512_512: " + kernel.optimisations());
class PLUGRAD_API OptimisationScope {
 public:
  /// "name: schedule; name: schedule", by the names of planned kernels (Tensor::kernelize); a
  /// schedule without a name applies to every other kernel. Errors: User where the text holds no
  /// schedules. A schedule that is illegal for its kernel is an error, of kind User, when the
  /// kernel is made. Names of kernels that were never made cause a warning at the end of the scope.
  explicit OptimisationScope(std::string lists);
  ~OptimisationScope();
  OptimisationScope(const OptimisationScope&) = delete;
  OptimisationScope& operator=(const OptimisationScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plugrad
