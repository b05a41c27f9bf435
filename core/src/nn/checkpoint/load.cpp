// Loads a sharded checkpoint. Everything is checked before the first tensor is assigned.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "io/safetensors.h"
#include "nn/become.h"
#include "nn/checkpoint/in_all_ranks.h"
#include "nn/checkpoint/parts.h"
#include "nn/state_differences.h"
#include "plugrad/host_view.h"
#include "plugrad/nn/checkpoint.h"
#include "plugrad/sharding.h"

namespace plugrad::nn {
namespace {

constexpr const char* kLoadFunction = "nn::load_sharded";

/// A part in a mapped file.
struct MappedPart {
  io::Box box;
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> mapping;
};

/// Maps the files of a checkpoint that are asked for.
class CheckpointFiles {
 public:
  CheckpointFiles(std::string folder, const io::CheckpointIndex& index)
      : folder_(std::move(folder)), index_(index) {}

  /// Errors: User if the file is not that of the index.
  MappedPart part(const io::StoredTensor& tensor, const io::StoredPart& part) {
    const io::SafetensorsFile& file = open(part.file);
    const auto array = std::ranges::lower_bound(file.arrays, part.key, {}, &io::NamedArray::name);
    require(array != file.arrays.end() && array->name == part.key && array->dtype == tensor.dtype &&
                array->shape == part.box.shape,
            "[load] {}: \"{}\" is missing, or of another dtype or shape than the index says; the "
            "checkpoint is damaged",
            file.mapping->path(), part.key);
    return {part.box, array->bytes, file.mapping};
  }

 private:
  const io::SafetensorsFile& open(size_t number) {
    const auto known = open_.find(number);
    if (known != open_.end()) return known->second;
    const io::StoredFile& stored = index_.files[number];
    io::SafetensorsFile file = io::read_safetensors(folder_ + "/" + stored.name);
    const auto save = file.metadata.find(std::string(io::kSaveKey));
    require(file.mapping->bytes().size() == stored.size_bytes && save != file.metadata.end() &&
                save->second == index_.save,
            "[load] {}: it has {} bytes of save {}, the index asks for {} bytes of save {}; the "
            "checkpoint is damaged",
            file.mapping->path(), file.mapping->bytes().size(),
            save == file.metadata.end() ? "?" : save->second, stored.size_bytes, index_.save);
    return open_.emplace(number, std::move(file)).first->second;
  }

  std::string folder_;
  const io::CheckpointIndex& index_;
  std::map<size_t, io::SafetensorsFile> open_;
};

/// The elements of a box as runs of consecutive ones in another box that contains it.
struct Runs {
  size_t dims = 0;     // outer dimensions, over which runs are counted
  int64_t length = 1;  // elements of a run
};

Runs runs_of(const io::Box& both, const io::Box& a, const io::Box& b) {
  Runs runs{both.shape.size(), 1};
  bool is_whole = true;
  while (runs.dims > 0 && is_whole) {
    --runs.dims;
    runs.length *= both.shape[runs.dims];
    is_whole =
        both.shape[runs.dims] == a.shape[runs.dims] && both.shape[runs.dims] == b.shape[runs.dims];
  }
  return runs;
}

/// The index of an element of the tensor in the row-major elements of a box.
size_t index_in(const io::Box& box, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * box.shape[d] + at[d] - box.offset[d];
  return static_cast<size_t>(index);
}

/// Copies the elements that both boxes have.
void copy_common(const MappedPart& from, const io::Box& to, std::byte* bytes, size_t element) {
  const io::Box both = io::intersect(from.box, to);
  const Runs runs = runs_of(both, from.box, to);
  std::vector<int64_t> at = both.offset;
  for (size_t d = 0;;) {
    std::memcpy(bytes + index_in(to, at) * element,
                from.bytes.data() + index_in(from.box, at) * element,
                static_cast<size_t>(runs.length) * element);
    for (d = runs.dims; d > 0; --d) {
      if (++at[d - 1] < both.offset[d - 1] + both.shape[d - 1]) break;
      at[d - 1] = both.offset[d - 1];
    }
    if (d == 0) return;
  }
}

/// The bytes of a box: in the file if they are consecutive there, else copied together.
HostView bytes_of_box(const io::Box& box, const std::vector<MappedPart>& parts, size_t element) {
  for (const MappedPart& part : parts) {
    if (io::intersect(part.box, box) != box) continue;
    if (runs_of(box, part.box, box).length != box.elements()) continue;
    const size_t begin = index_in(part.box, box.offset) * element;
    return {part.bytes.subspan(begin, static_cast<size_t>(box.elements()) * element), part.mapping};
  }
  auto made =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(box.elements()) * element);
  for (const MappedPart& part : parts) copy_common(part, box, made->data(), element);
  return {*made, made};
}

/// A tensor to be loaded, its boxes in this process, and the stored parts that they overlap.
struct Target {
  Tensor tensor;
  DType stored_dtype = DType::F32;
  std::vector<PlacedBox> boxes;
  std::vector<std::vector<MappedPart>> parts;  // by box

  Tensor value_of(size_t i) const {
    const io::Box& box = boxes[i].box;
    const HostView from = bytes_of_box(box, parts[i], size_of(stored_dtype));
    return Tensor::from_bytes(from.bytes, box.shape, stored_dtype, boxes[i].device, from.owner)
        .cast(tensor.dtype());
  }

  void assign() {
    Tensor value;
    if (tensor.is_sharded()) {
      std::vector<Tensor> shards;
      for (size_t i = 0; i < boxes.size(); ++i) shards.push_back(value_of(i));
      const ShardSpec spec(tensor.shard_spec().dims());
      value = shards.empty()  // the mesh is in other processes: nothing is computed
                  ? Tensor::zeros(tensor.shape(), tensor.dtype()).shard(tensor.mesh(), spec)
                  : from_shards(tensor.mesh(), spec, tensor.shape(), shards);
    } else {
      value = value_of(0);
    }
    tensor.assign(value.detach());
    tensor.realize();
  }
};

class Load {
 public:
  Load(const StateDict& state, const std::string& folder, Loading loading)
      : state_(state), folder_(folder), loading_(loading) {}

  /// Errors: User if the checkpoint is damaged or does not fit. Then it is read again if a save has
  /// replaced it.
  void check() {
    for (bool is_done = false; !is_done;) {
      index_ = io::read_checkpoint_index(folder_);
      try {
        check_index();
        is_done = true;
      } catch (const Error&) {
        if (io::read_checkpoint_index(folder_).save == index_.save) throw;
      }
    }
  }

  const std::string& save() const { return index_.save; }

  /// One tensor at a time, so that only one is there before and after.
  std::vector<StateDifference> assign() {
    for (Target& target : targets_) {
      target.assign();
      target = Target{};
    }
    return std::move(differences_);
  }

 private:
  void check_index() {
    std::map<std::string, TensorFacts> facts;
    std::map<std::string, const io::StoredTensor*> stored;
    for (const io::StoredTensor& tensor : index_.tensors) {
      facts[tensor.name] = {tensor.shape, tensor.dtype};
      stored[tensor.name] = &tensor;
    }
    differences_ = compare_states(kLoadFunction, state_, facts, loading_);
    std::set<std::string> skipped;
    for (const StateDifference& row : differences_) skipped.insert(row.name);
    CheckpointFiles files(folder_, index_);
    targets_.clear();
    for (const auto& [name, tensor] : state_)
      if (!skipped.contains(name)) targets_.push_back(target_of(tensor, *stored.at(name), files));
  }

  static Target target_of(const Tensor& tensor, const io::StoredTensor& stored,
                          CheckpointFiles& files) {
    Target target{tensor, stored.dtype, {}, {}};
    for (PlacedBox& placed : placed_boxes(tensor)) {
      if (placed.rank != this_rank().number) continue;
      std::vector<MappedPart>& parts = target.parts.emplace_back();
      for (const io::StoredPart& part : stored.parts)
        if (io::overlap(part.box, placed.box)) parts.push_back(files.part(stored, part));
      target.boxes.push_back(std::move(placed));
    }
    return target;
  }

  const StateDict& state_;
  std::string folder_;
  Loading loading_;
  io::CheckpointIndex index_;
  std::vector<StateDifference> differences_;
  std::vector<Target> targets_;
};

void check_in_all_ranks(Load& load) {
  const auto saves = results_of_all_ranks(kLoadFunction, [&] {
    load.check();
    const auto save = as_bytes(load.save());
    return std::vector(save.begin(), save.end());
  });
  for (size_t rank = 1; rank < saves.size(); ++rank)
    require(saves[rank] == saves[0],
            "[{}] rank {} has read another save than rank 0: the ranks see different folders, or a "
            "save has ended meanwhile; load again",
            kLoadFunction, rank);
}

}  // namespace

std::vector<StateDifference> load_sharded(const StateDict& state, const std::string& folder,
                                          Loading loading) {
  require_outside_jit(kLoadFunction);
  Load load(state, folder, loading);
  const auto is_sharded = [](const auto& entry) { return entry.second.is_sharded(); };
  if (std::ranges::any_of(state, is_sharded))
    check_in_all_ranks(load);
  else
    load.check();
  return load.assign();
}

}  // namespace plugrad::nn
