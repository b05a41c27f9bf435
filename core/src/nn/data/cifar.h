// Reads CIFAR-10's binary version: six files of records (a label and three planes of 32 x 32
// bytes), in a folder or a gzipped tar archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plugrad::nn {

struct CifarExpectation {
  size_t records_a_file = 10000;
  std::string sha256 = {};  ///< SHA-256 of the archive; empty: not compared
};
struct CifarImages {
  std::vector<uint8_t> images, labels;
};
struct Cifar {
  CifarImages train, test;
};

/// Reads the archive, or the folder that it unpacks to. Errors: User, with the file, the reason and
/// a remedy.
Cifar read_cifar(const std::filesystem::path& path, const CifarExpectation& expected);

}  // namespace plugrad::nn
