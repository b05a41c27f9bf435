// Files that may be plugins -> load records, in search order. Nothing is opened here.
#pragma once

#include <string>
#include <vector>

#include "runtime/discovery/load_record.h"
#include "runtime/registry.h"

namespace plugrad::runtime {

/// A record for each candidate of `places`: permissions, manifest and probes looked at; of those
/// that could be opened under one device name only the first is Available.
std::vector<LoadRecord> discover_plugins(const std::vector<SearchPlace>& places);

/// One candidate.
LoadRecord examine_plugin(const std::string& library_path, const std::string& origin);

/// The places that settings and system name, in order.
std::vector<SearchPlace> search_places();

/// What was found, for messages: the names of those that work, and a line with the reason for each
/// other; `plugrad devices --why` has the files too.
std::string describe_records(const std::vector<LoadRecord>& records);

}  // namespace plugrad::runtime
