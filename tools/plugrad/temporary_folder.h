// A folder for files of a command's run.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.h"
#include "base/file.h"

namespace plugrad::tools {

/// A folder of its own, removed with its contents.
class TemporaryFolder {
 public:
  /// `command` is named in the error. Errors: User if it cannot be made.
  explicit TemporaryFolder(std::string_view command)
      : path_((std::filesystem::temp_directory_path() / "plugrad-XXXXXX").string()) {
    require(mkdtemp(path_.data()) != nullptr, "[{}] no folder can be made in {}: {}", command,
            std::filesystem::temp_directory_path().string(), file_error_text(errno));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace plugrad::tools
