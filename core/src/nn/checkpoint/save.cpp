// Saves a state in a folder, in steps that succeed in all ranks or fail in all:
//   begin    rank 0 creates the folder, locks it and numbers the save; ranks compare what they save
//   write    each rank writes its file, whose name has the number
//   commit   rank 0 replaces the index, atomically, and removes the files of other saves
// The index names the files of one complete save at any time. Files that it does not name are left
// of a save that did not end; the next save removes them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "io/safetensors.h"
#include "nn/become.h"
#include "nn/checkpoint/in_all_ranks.h"
#include "nn/checkpoint/parts.h"
#include "plugrad/host_view.h"
#include "plugrad/nn/checkpoint.h"
#include "plugrad/sharding.h"

namespace plugrad::nn {
namespace {

constexpr const char* kSaveFunction = "nn::save_sharded";
using Bytes = std::vector<std::byte>;

/// The computed tensors, sums in place of their terms.
StateDict settled(StateDict state) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state) tensors.push_back(tensor);
  Tensor::realize(tensors);
  std::vector<Tensor> sums;
  for (auto& [name, tensor] : state) {
    if (!tensor.is_sharded() || tensor.shard_spec().partial_sum().empty()) continue;
    tensor = tensor.detach().shard(tensor.mesh(), ShardSpec(tensor.shard_spec().dims()));
    sums.push_back(tensor);
  }
  if (!sums.empty()) Tensor::realize(sums);
  return state;
}

HostView bytes_of(const Tensor& tensor) {
  if (auto view = host_view(tensor)) return *std::move(view);
  const auto copy = std::make_shared<const Bytes>(tensor.to_bytes());
  return {*copy, copy};
}

std::string new_number() {
  std::random_device random;
  const auto high = uint64_t{random()}, low = uint64_t{random()};
  return fmt::format("{:016x}", high << 32 | low);
}

void create_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return;
  const int error = errno;
  struct stat info;
  require(stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode),
          "[{}] cannot create the folder {}: {}", kSaveFunction, path, file_error_text(error));
}

/// Holds the folder until it is destroyed, also when the process is killed.
FileDescriptor lock_folder(const std::string& folder) {
  FileDescriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  require(static_cast<bool>(fd), "[{}] cannot open the folder {}: {}", kSaveFunction, folder,
          file_error_text(errno));
  const bool is_locked = flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  require(!is_locked,
          "[{}] another save to the folder {} is going on; wait for it, or save to another folder",
          kSaveFunction, folder);
  return fd;
}

std::string index_path(const std::string& folder) {
  return fmt::format("{}/{}", folder, io::kIndexName);
}

/// Errors: User if the folder has an index of something else, which the save would replace.
void require_no_other_index(const std::string& folder) {
  if (access(index_path(folder).c_str(), F_OK) != 0) return;
  try {
    io::read_checkpoint_index(folder);
  } catch (const Error& error) {
    fail(ErrorKind::User,
         "[{}] {} is not the index of a checkpoint, and would be replaced: save to another folder, "
         "or remove it ({})",
         kSaveFunction, index_path(folder), error.what());
  }
}

/// Removes the parts that the index does not name, unless they are being written; all if there is no
/// index, and none if it cannot be read.
void remove_other_saves(const std::string& folder) {
  std::string save;
  try {
    if (access(index_path(folder).c_str(), F_OK) == 0)
      save = io::read_checkpoint_index(folder).save;
    else if (errno != ENOENT)
      return;
  } catch (const Error&) {
    return;
  }
  for (const std::string& name : names_in_folder(folder).value_or(std::vector<std::string>())) {
    const std::string_view other = io::save_of(name);
    const std::string path = folder + "/" + name;
    if (other.empty()) continue;
    if (!name.ends_with(".safetensors"))
      is_being_written(path);  // removes it if its writer is dead
    else if (other != save)
      unlink(path.c_str());
  }
}

class Save {
 public:
  Save(const StateDict& state, std::string folder)
      : folder_(std::move(folder)), plan_(plan_save(settled(state))) {}

  void run() {
    try {
      take_up(results_of_all_ranks(kSaveFunction, [this] { return begin(); }));
      in_all_ranks(kSaveFunction, [this] { collect(); });
      const auto sizes = results_of_slow_work(kSaveFunction, [this] { return write(); });
      in_all_ranks(kSaveFunction, [&] {
        if (rank_.number == 0) commit(sizes);
      });
    } catch (...) {
      if (lock_) remove_other_saves(folder_);
      throw;
    }
  }

 private:
  Bytes begin() {
    ByteWriter out;
    if (rank_.number == 0) {
      create_folder(folder_);
      lock_ = lock_folder(folder_);
      require_no_other_index(folder_);
      remove_other_saves(folder_);
      out.put_text(new_number());
    } else {
      out.put_text("");
    }
    out.put(hash64(as_bytes(io::to_text(index())))).put(uint64_t{plan_.size()});
    if (rank_.count > 1)
      for (const PlannedTensor& planned : plan_)
        if (!planned.tensor.is_sharded()) out.put(hash64(bytes_of(planned.tensor).bytes));
    return {out.bytes().begin(), out.bytes().end()};
  }

  /// Compares the ranks by what begin() returned in each.
  void take_up(const std::vector<Bytes>& begun) {
    std::vector<ByteReader> ranks(begun.begin(), begun.end());
    for (ByteReader& rank : ranks) {
      const std::string number = rank.get_text();
      if (!number.empty()) number_ = number;
    }
    const auto hash = ranks[0].get<uint64_t>(), count = ranks[0].get<uint64_t>();
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      const auto other_hash = ranks[rank].get<uint64_t>(), other = ranks[rank].get<uint64_t>();
      require(other_hash == hash && other == count,
              "[{}] rank {} saves {} tensors, and rank 0 {}, which differ in names, dtypes, shapes "
              "or specs; all ranks must save the same",
              kSaveFunction, rank, other, count);
    }
    for (const PlannedTensor& planned : plan_)
      if (!planned.tensor.is_sharded()) compare_values(planned.name, ranks);
  }

  static void compare_values(const std::string& name, std::vector<ByteReader>& ranks) {
    const auto hash = ranks[0].get<uint64_t>();
    for (size_t rank = 1; rank < ranks.size(); ++rank)
      require(ranks[rank].get<uint64_t>() == hash,
              "[{}] {} is on no mesh, and ranks 0 and {} have different values of it; save equal "
              "values, or move it to the mesh",
              kSaveFunction, name, rank);
  }

  std::string path_of(size_t rank) const {
    return fmt::format("{}/{}", folder_, io::part_name(rank, rank_.count, number_));
  }

  /// Brings the parts of this rank to the host.
  void collect() {
    for (const PlannedTensor& planned : plan_) {
      std::vector<Tensor> shards;
      for (const auto& [placed, key] : planned.parts) {
        if (placed.rank != rank_.number) continue;
        if (shards.empty())
          shards =
              planned.tensor.is_sharded() ? planned.tensor.shards() : std::vector{planned.tensor};
        values_.push_back(bytes_of(shards[placed.shard]));
        arrays_.push_back({key, planned.tensor.dtype(), placed.box.shape, values_.back().bytes});
      }
    }
  }

  /// The size of the file of this rank.
  Bytes write() const {
    const std::string path = path_of(rank_.number);
    io::write_safetensors(path, arrays_, {{std::string(io::kSaveKey), number_}});
    ByteWriter out;
    out.put(uint64_t{std::filesystem::file_size(path)});
    return {out.bytes().begin(), out.bytes().end()};
  }

  void commit(const std::vector<Bytes>& sizes) {
    io::CheckpointIndex made = index();
    made.save = number_;
    for (size_t rank = 0; rank < sizes.size(); ++rank) {
      const auto size = ByteReader(sizes[rank]).get<uint64_t>();
      std::error_code error;
      require(std::filesystem::file_size(path_of(rank), error) == size && !error,
              "[{}] rank 0 does not see the file {}, which rank {} has written; all ranks must see "
              "one folder, such as that of a network file system",
              kSaveFunction, path_of(rank), rank);
      made.files.push_back({io::part_name(rank, rank_.count, number_), size});
    }
    const std::string path = index_path(folder_);
    const std::string text = io::to_text(made);
    const std::span<const std::byte> bytes = as_bytes(text);
    const int error = replace_file(path, std::span(&bytes, 1));
    require(error == 0, "[{}] cannot write {}: {}", kSaveFunction, path, file_error_text(error));
    remove_other_saves(folder_);
  }

  /// Without the number of the save and the files, which are known at the end.
  io::CheckpointIndex index() const {
    io::CheckpointIndex made;
    for (const PlannedTensor& planned : plan_) {
      io::StoredTensor& stored = made.tensors.emplace_back(
          io::StoredTensor{planned.name, planned.tensor.dtype(), planned.shape, {}});
      for (const auto& [placed, key] : planned.parts)
        stored.parts.push_back({placed.rank, key, placed.box});
    }
    return made;
  }

  std::string folder_;
  Rank rank_ = this_rank();
  std::vector<PlannedTensor> plan_;
  std::vector<io::NamedArray> arrays_;  // of this rank's file
  std::vector<HostView> values_;        // which hold the arrays' bytes
  std::string number_;                  // of the save
  FileDescriptor lock_;                 // of rank 0
};

}  // namespace

void save_sharded(const StateDict& state, const std::string& folder) {
  require_outside_jit(kSaveFunction);
  Save(state, folder).run();
}

}  // namespace plugrad::nn
