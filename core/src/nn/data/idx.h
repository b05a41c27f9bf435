// Reads files in the idx format of MNIST, plain or gzipped: magic, extents, bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace plugrad::nn {

struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;  ///< row-major
  std::string sha256;           ///< of the unpacked file, in hexadecimal digits
};

/// Expected contents of a file; empty checksums are not compared.
struct IdxExpectation {
  std::vector<int64_t> shape;
  std::string sha256;              ///< of the unpacked file
  std::string packed_sha256 = {};  ///< of the gzipped file, if it is gzipped
};

/// SHA-256 in hexadecimal digits.
std::string sha256_hex(std::span<const uint8_t> bytes);

/// Reads a file of bytes (idx type 0x08), gzipped or not, and checks it. Errors: User, with the
/// file, the reason (truncated, magic, size, checksum) and a remedy.
IdxArray read_idx(const std::filesystem::path& path, const IdxExpectation& expected);

}  // namespace plugrad::nn
