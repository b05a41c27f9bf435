/// Data sets in host memory and their batches as tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::data {

/// Samples and their labels. x: (n, channels, height, width) f32 in [0, 1]; y: (n) i32.
struct Batch {
  Tensor x, y;
};

struct BatchOptions {
  bool shuffle = false;  ///< draw a new order for each pass over the data
  uint64_t seed = 0;     ///< seed of the orders; equal seeds give equal batches on every device
  int64_t steps = 0;     ///< number of batches, over as many passes as needed; 0: one pass
  bool keep_partial =
      false;  ///< yield the smaller last batch of a pass; false: leave its samples out
  /// Rank `rank` of `ranks` gets its part of each batch, the one that a mesh of so many positions
  /// has of x.shard(mesh, {"data"}): the parts of all ranks, in order, are the batch of one process.
  /// batch_size is that of the whole batch.
  ///   set.batches(512, {.rank = distributed::rank(), .ranks = distributed::size()})
  int64_t rank = 0, ranks = 1;
};

class Batches;

/// Images with one label each. A copy shares the storage.
class PLUGRAD_API Dataset {
 public:
  /// Images with one channel. Errors: User unless there are height * width values for each label.
  Dataset(std::vector<uint8_t> images, std::vector<uint8_t> labels, int64_t height, int64_t width);
  /// `sample` is (channels, height, width), the width innermost. Errors: User unless the number of
  /// values is the number of labels times the size of `sample`.
  Dataset(std::vector<uint8_t> images, std::vector<uint8_t> labels, const Shape& sample);
  const Shape& sample_shape() const;  ///< (channels, height, width)
  int64_t size() const;
  const std::vector<uint8_t>& images() const;
  const std::vector<uint8_t>& labels() const;
  /// The samples with these indices as a batch on the default device.
  Batch gather(const std::vector<int64_t>& samples) const;
  /// For `for (auto [x, y] : set.batches(512, {.shuffle = true}))`. Errors: User unless 1 <=
  /// batch_size <= size(), ranks <= batch_size and 0 <= rank < ranks.
  Batches batches(int64_t batch_size, const BatchOptions& options = {}) const;

 private:
  struct Storage;
  std::shared_ptr<const Storage> storage_;
};

/// A range over the batches of a data set; the iterator makes a batch when it is dereferenced.
class PLUGRAD_API Batches {
 public:
  class PLUGRAD_API Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Batch;
    explicit Iterator(const Batches& batches);
    Batch operator*() const;
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return step_ == batches_->size(); }

   private:
    void start_pass();
    const Batches* batches_;
    int64_t step_ = 0, pass_ = 0, within_pass_ = 0;
    std::vector<int64_t> order_;
  };

  Batches(Dataset set, int64_t batch_size, const BatchOptions& options);
  int64_t size() const;  ///< number of batches
  int64_t batch_size() const { return batch_size_; }
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  int64_t batches_per_pass() const;
  Dataset set_;
  int64_t batch_size_;
  BatchOptions options_;
};

/// Sources of a data set's files, and the log function.
struct SourceOptions {
  std::string folder = {};  ///< when not empty, the only folder that is searched
  bool download = true;     ///< download from public mirrors when no folder has the files
  std::function<void(std::string_view line)> say =
      {};  ///< receives the log, one line a call; when empty, the log goes to stderr
};

/// Training samples and test samples.
struct Split {
  Dataset train, test;
};
using Mnist = Split;

// Each function searches `folder` if given, else PLUGRAD_DATA, the cache and public mirrors, in
// this order, and verifies checksums. A folder holds the files directly or in a subfolder with the
// name of the set. Errors: User, with the sources that were tried or the damaged file, and a
// remedy.

/// 60,000 and 10,000 images of handwritten digits, 28 x 28; "mnist". LeCun et al. 1998.
PLUGRAD_API Split mnist(const SourceOptions& options = {});
/// 60,000 and 10,000 images of clothes, with the form and file names of MNIST; "fashion-mnist".
/// Xiao et al. 2017.
PLUGRAD_API Split fashion_mnist(const SourceOptions& options = {});
/// 50,000 and 10,000 colour images of ten classes, 32 x 32; "cifar-10": the binary version,
/// cifar-10-binary.tar.gz or its folder cifar-10-batches-bin. Krizhevsky 2009.
PLUGRAD_API Split cifar10(const SourceOptions& options = {});
/// The cache folder that mnist() reads and downloads to.
PLUGRAD_API std::string mnist_cache_folder();

}  // namespace plugrad::data
