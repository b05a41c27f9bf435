// Where the four files of MNIST come from: a given folder, PLUGRAD_DATA, the cache, public mirrors.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/idx.h"

namespace plugrad::nn {

struct MnistFile {
  const char* name;  ///< "train-images-idx3-ubyte"; ".gz" may follow on disk
  IdxExpectation expected;
};

/// train images, train labels, test images, test labels.
std::vector<MnistFile> mnist_files();

/// URLs of folders that serve the gzipped files.
std::vector<std::string> mnist_mirrors();

using Say = std::function<void(std::string_view line)>;

/// The cache's folder: where fetched files go.
std::filesystem::path mnist_cache_folder();

/// The file of that name in `folder`, gzipped or plain; empty when there is none.
std::filesystem::path mnist_path(const std::filesystem::path& folder, const MnistFile& file);

struct MnistSources {
  std::filesystem::path given = {};        ///< --data: only this folder is looked at, or its mnist/
  std::filesystem::path data_dir = {};     ///< PLUGRAD_DATA: the same, if it has the files
  std::filesystem::path cache = {};        ///< fetched files
  std::vector<std::string> mirrors = {};   ///< empty: nothing is fetched
};

/// The four arrays in the order of `files`. Damaged files of the cache are fetched anew; those of a folder
/// that the user named are errors. Errors: User, naming each place that was tried, and what to do.
std::vector<IdxArray> load_mnist(const std::vector<MnistFile>& files, const MnistSources& sources, const Say& say);

}  // namespace plugrad::nn
