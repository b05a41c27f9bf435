// Tries specs for the inputs of a step, and orders them by the time of the step.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scale/estimate.h"

namespace plugrad::tools::scale {

struct Tried {
  Layout layout;
  Estimate estimate;
  bool fits = true;  ///< into the memory of a device
};

struct SearchOptions {
  std::optional<sharding::AxisSet> batch = {}, state = {};    ///< given; none: searched
  std::map<size_t, std::vector<sharding::AxisSet>> groups{};  ///< given, by group
  bool only_given = false;                                    ///< one layout: nothing is searched
  size_t most_tries = 400;
};

struct SearchResult {
  std::vector<Tried> tried;  ///< those that fit first, then by the time of a step
  size_t refused = 0;        ///< layouts that the rules of propagation do not allow
  std::string reason;        ///< of the first refused one
};

/// For each way to cut the batch: all parameters whole; then those of one shape after the other, and
/// then one group after the other, by the cut that makes the step fastest; each with the optimiser's
/// state whole and cut. Errors: User, if no layout is allowed.
SearchResult search(const Program& program, const Machine& machine, const sharding::Mesh& mesh,
                    Estimator& estimator, const SearchOptions& options);

}  // namespace plugrad::tools::scale
