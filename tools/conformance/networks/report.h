// The report of `plugrad conformance --models`.
#pragma once

#include <string>

#include "command.h"
#include "plugrad/sdk/conformance.h"

namespace plugrad::tools {

/// Whether the command line asks for networks: --models, or --replay with a recorded launch.
bool is_of_networks(const Parsed& parsed);

/// Judges them. `folder`: of the reports, which gets the launches that differ; empty: they go to the
/// cache directory. Errors: UsageError; User if there is no model.
conformance::Report report_on_networks(const conformance::Options& options, const Parsed& parsed,
                                       const std::string& folder);

}  // namespace plugrad::tools
