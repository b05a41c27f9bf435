// A temporary folder for one test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "plugrad/error.h"

struct ScratchFolder {
  std::filesystem::path path;

  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "plugrad-test-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The message of the User error that `call` throws.
template <class Call>
std::string user_error(Call call) {
  try {
    call();
  } catch (const plugrad::Error& error) {
    EXPECT_EQ(error.kind(), plugrad::ErrorKind::User) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}
