// CIFAR-10's binary version: records of a label and three planes of 32 x 32 bytes, six files of
// them, in a folder or a gzipped tar archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plugrad::nn {

struct CifarExpectation {
  size_t records_a_file = 10000;
  std::string sha256 = {};  ///< of the archive; empty: not compared
};
struct CifarImages {
  std::vector<uint8_t> images, labels;
};
struct Cifar {
  CifarImages train, test;
};

/// Reads the archive, or the folder that it unpacks to. Errors: User, naming the file, what is
/// wrong and what to do.
Cifar read_cifar(const std::filesystem::path& path, const CifarExpectation& expected);

}  // namespace plugrad::nn
