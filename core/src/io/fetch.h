// Downloads a file over HTTP.
#pragma once

#include <filesystem>
#include <string>

namespace plugrad::io {

struct FetchLimits {
  long connect_seconds = 3;
  long size_bytes = 1 << 28;
  long idle_seconds = 15;  ///< gives up after this time below 1024 bytes a second
};

/// Downloads `url` to `path`, which is replaced atomically. Returns an empty text, or the reason of
/// the failure.
std::string fetch(const std::string& url, const std::filesystem::path& path,
                  const FetchLimits& limits = {});

}  // namespace plugrad::io
