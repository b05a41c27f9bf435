// An empty cache folder for fresh processes of this program, removed by the destructor.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.h"

namespace plugrad::bench {

class CacheFolder {
 public:
  CacheFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "plugrad-bench-XXXXXX").string();
    if (!mkdtemp(path.data())) throw std::runtime_error("no temporary directory");
    path_ = path;
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  /// Runs `bench-steps ARGUMENTS` in a process with this folder as its cache, and returns the
  /// document that it prints.
  nlohmann::json steps(std::vector<std::string> arguments,
                       std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.begin(), "bench-steps");
    environment.push_back("PLUGRAD_CACHE_DIR=" + path_.string());
    return nlohmann::json::parse(output_of({.program = "/proc/self/exe",
                                            .arguments = std::move(arguments),
                                            .environment = environment_with(environment)}));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace plugrad::bench
