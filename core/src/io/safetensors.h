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
#include <string_view>
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
/// The format's name of a dtype, "F32"; empty if it has none.
std::string_view safetensors_name(DType dtype);
/// The dtype of that name; Void if there is none.
DType dtype_from_safetensors(std::string_view name);

using Metadata = std::map<std::string, std::string>;

/// A checked file: each array is within the file, has the bytes that its shape needs, and overlaps
/// no other.
struct SafetensorsFile {
  std::vector<NamedArray> arrays;  ///< sorted by name; the bytes point into `mapping`
  Metadata metadata;
  std::shared_ptr<const MappedFile> mapping;
};

/// Maps the file and checks the whole header. Errors: User, with the file, the tensor and the
/// reason.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// Writes arrays in descending order of element size, so that all are aligned. The file is replaced
/// atomically. Errors: User (unknown dtype, equal names, disk).
void write_safetensors(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                       const Metadata& metadata = {});

}  // namespace plugrad::io
