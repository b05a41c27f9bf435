// The safetensors format: a length, a JSON header, the bytes of named tensors.
//   u64 header size | {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …} |
//   bytes
// Files are interchangeable with those of the `safetensors` package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "plugrad/dtype.h"

namespace plugrad::io {

struct NamedArray {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  ///< row-major, little-endian
};
using Metadata = std::map<std::string, std::string>;

/// A checked file: each array lies within the file, has the bytes its shape needs, overlaps no
/// other.
struct SafetensorsFile {
  std::vector<NamedArray> arrays;  ///< by name; their bytes point into `mapping`
  Metadata metadata;
  std::shared_ptr<const MappedFile> mapping;
};

/// Maps the file and checks all of its header before anything is returned.
/// Errors: User, naming the file, the tensor and what is wrong.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// Writes arrays one after another, those of wide elements first, so that every one is aligned; the
/// file appears whole or not at all. Errors: User (unknown dtype, same name twice, disk).
void write_safetensors(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                       const Metadata& metadata = {});

}  // namespace plugrad::io
