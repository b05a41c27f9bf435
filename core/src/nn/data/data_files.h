// Where the files of a data set come from: a given folder, PLUGRAD_DATA, the cache, public mirrors.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::nn {

using Say = std::function<void(std::string_view line)>;

struct DataFile {
  std::string name;               ///< as mirrors serve it: "train-images-idx3-ubyte.gz"
  std::vector<std::string> also;  ///< other names of it on disk: the same unpacked
  /// Keeps what the file (or folder) holds. Errors: User, when it is damaged.
  std::function<void(const std::filesystem::path&)> read;
};

struct DataFiles {
  std::string set;  ///< "mnist": its folder in other folders, and its name in messages
  std::vector<DataFile> files;
  std::vector<std::string> mirrors;  ///< URLs of folders; empty: nothing is fetched
};

struct DataPlaces {
  std::filesystem::path given = {};     ///< only this folder is looked at, or its folder of the set
  std::filesystem::path data_dir = {};  ///< PLUGRAD_DATA: the same, if it has the files
  std::filesystem::path cache = {};     ///< fetched files
};

/// The cache's folder of a set, where fetched files go. Errors: User when there is no cache.
std::filesystem::path cache_folder(const std::string& set);

/// Reads every file from the first place that has it. Damaged files of the cache are fetched anew;
/// those of a folder that the user named are errors. Errors: User, naming each place that was
/// tried, and what to do.
void load_files(const DataFiles& set, const DataPlaces& places, const Say& say);

}  // namespace plugrad::nn
