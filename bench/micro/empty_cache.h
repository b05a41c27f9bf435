// An empty cache folder, removed by the destructor.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/settings.h"

namespace plugrad::bench {

// During its lifetime no compiled program is on disk, so that code generation runs.
class EmptyCache {
 public:
  ~EmptyCache() {
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

 private:
  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / fmt::format("plugrad-bench-{}", getpid());
  SettingScope scope_{[this](Settings& s) { s.cache_dir = directory_.string(); }};
};

}  // namespace plugrad::bench
