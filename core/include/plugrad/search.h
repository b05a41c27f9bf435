/// Which optimisations kernels get, for a part of a program: by a search, as BEAM does for all of
/// it, or lists that are given back, as PLUGRAD_OPTIMISATIONS does.
#pragma once

#include <memory>
#include <string>

#include "plugrad/export.h"

namespace plugrad {

/// While it lives, kernels that this thread makes are searched for: docs/search.md.
///   SearchScope search(4, 15);   // as BEAM=4 BEAM_SECONDS=15
class PLUGRAD_API SearchScope {
 public:
  /// `beam` is the width of the search, 0 for none; `seconds` is what the search for one kernel may
  /// take. Errors: User for a beam outside [0, 1024] or seconds that are not above 0.
  explicit SearchScope(int beam, double seconds = 10);
  ~SearchScope();
  SearchScope(const SearchScope&) = delete;
  SearchScope& operator=(const SearchScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While it lives, kernels that this thread makes get the lists that they are given, with neither
/// heuristic nor search: docs/optimisations.md.
///   OptimisationScope lists("r_512_512_512: " + kernel.optimisations());
class PLUGRAD_API OptimisationScope {
 public:
  /// "name: list; name: list", by the names of kernels as planned (Tensor::kernelize); a list
  /// without a name is for every other kernel. Errors: User where the text holds no lists. A list
  /// that is not legal for its kernel is an error, of kind User, where the kernel is made. Names of
  /// kernels that were never made are a warning at the end of the scope.
  explicit OptimisationScope(std::string lists);
  ~OptimisationScope();
  OptimisationScope(const OptimisationScope&) = delete;
  OptimisationScope& operator=(const OptimisationScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plugrad
