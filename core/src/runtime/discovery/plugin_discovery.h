// Turns files that may be plugins into load records, in search order. Opens none of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/discovery/load_record.h"
#include "runtime/registry.h"

namespace plugrad::runtime {

/// A record for each candidate in `places`, with permissions, manifest and probes checked. For each
/// device name, only the first usable candidate is Available.
std::vector<LoadRecord> discover_plugins(const std::vector<SearchPlace>& places);

/// One candidate.
LoadRecord examine_plugin(const std::string& library_path, const std::string& origin);

/// The places given by settings and system, in order.
std::vector<SearchPlace> search_places();

/// Describes the records for messages: names of working plugins, and a line with the reason for
/// each other. `plugrad devices --why` also lists the files.
std::string describe_records(const std::vector<LoadRecord>& records);

}  // namespace plugrad::runtime
