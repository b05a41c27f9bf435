/// The search for faster kernels, switched on for a part of a program: what BEAM does for all of
/// it.
#pragma once

#include <memory>

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

}  // namespace plugrad
