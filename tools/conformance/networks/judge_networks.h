// `plugrad conformance --models`: judges a device on the kernels of whole networks.
#pragma once

#include "networks/stages.h"
#include "plugrad/sdk/conformance.h"

namespace plugrad::tools {

/// The options of the command line for networks.
struct NetworkOptions {
  NetworkTarget target;  ///< without model and folder
  std::string models;    ///< of --models, or empty: `replay` is a recorded launch
  std::string filter;    ///< globs over the ids
  std::string replay;    ///< path of a recorded launch
};

/// One result for each model, before it one for each of its kernels. `take` is called with each.
/// Errors: User if there is no model.
void judge_networks(const NetworkOptions& options,
                    const std::function<void(conformance::TestResult)>& take);

}  // namespace plugrad::tools
