// The index of a sharded checkpoint: which file of its folder has which part of a tensor.
//   {"format": "plugrad-sharded-checkpoint", "version": 1, "save": "91b3…",
//    "files": [{"name": "part-00000-of-00002-91b3….safetensors", "size": 4096}, …],
//    "tensors": {"weight": {"dtype": "F32", "shape": [8, 4], "parts": [
//      {"file": 0, "key": "weight[0:4, 0:4]", "offset": [0, 0], "shape": [4, 4]}, …]}}}
// The files are safetensors files, whose metadata has the number of the save, too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad::io {

/// A part of a tensor: the indices [offset, offset + shape) of each dimension.
struct Box {
  std::vector<int64_t> offset, shape;
  int64_t elements() const;
  auto operator<=>(const Box&) const = default;
};
/// The elements that both have; some size is 0 if there are none.
Box intersect(const Box& a, const Box& b);
bool overlap(const Box& a, const Box& b);

struct StoredPart {
  size_t file = 0;  ///< index into CheckpointIndex::files
  std::string key;  ///< its name in the file
  Box box;
};

struct StoredTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<StoredPart> parts;  ///< each element of the tensor is in one of them
};

struct StoredFile {
  std::string name;  ///< in the folder of the index
  uint64_t size_bytes = 0;
};

struct CheckpointIndex {
  std::string save;  ///< number of the save, different for each
  std::vector<StoredFile> files;
  std::vector<StoredTensor> tensors;
};

inline constexpr std::string_view kIndexName = "index.json";
/// Key of the metadata of a file that has the number of its save.
inline constexpr std::string_view kSaveKey = "plugrad-save";

/// Reads the index of a folder and checks it: names, shapes, and that the parts of each tensor cover
/// it once. Errors: User, with the file and the reason.
CheckpointIndex read_checkpoint_index(const std::string& folder);

/// The text of the index. Errors: User for names that are not UTF-8.
std::string to_text(const CheckpointIndex& index);

/// "part-00001-of-00004-91b3….safetensors": the file of a rank.
std::string part_name(size_t rank, size_t ranks, std::string_view save);
/// The number of the save that a file belongs to, by its name; empty for other files. Temporary
/// files of the writer count, too.
std::string_view save_of(std::string_view file_name);

}  // namespace plugrad::io
