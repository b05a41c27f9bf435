// Fetches a file over HTTP.
#pragma once

#include <filesystem>
#include <string>

namespace plugrad::io {

struct FetchLimits {
  long connect_seconds = 3;
  long size_bytes = 1 << 28;
  long idle_seconds = 15;  ///< gives up when less than a kilobyte a second arrives for so long
};

/// Stores what `url` serves as `path`, whole or not at all. Returns an empty text, or why it
/// failed.
std::string fetch(const std::string& url, const std::filesystem::path& path,
                  const FetchLimits& limits = {});

}  // namespace plugrad::io
