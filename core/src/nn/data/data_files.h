// Finds the files of a data set: in a given folder, PLUGRAD_DATA, the cache or public mirrors.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::nn {

using Say = std::function<void(std::string_view line)>;

struct DataFile {
  std::string name;               ///< name on the mirrors: "train-images-idx3-ubyte.gz"
  std::vector<std::string> also;  ///< other names on disk: the unpacked file
  /// Reads the file (or folder). Errors: User if it is damaged.
  std::function<void(const std::filesystem::path&)> read;
};

struct DataFiles {
  std::string set;  ///< "mnist": name of the subfolder, and prefix of messages
  std::vector<DataFile> files;
  std::vector<std::string> mirrors;  ///< base URLs; empty: fetch nothing
};

struct DataPlaces {
  /// if set, search only this folder and its subfolder of the set
  std::filesystem::path given = {};
  std::filesystem::path data_dir = {};  ///< PLUGRAD_DATA: searched before the cache
  std::filesystem::path cache = {};     ///< folder of fetched files
};

/// The cache folder of a set, for fetched files. Errors: User when there is no cache.
std::filesystem::path cache_folder(const std::string& set);

/// Reads each file from the first source that has it. Fetches damaged files of the cache again; a
/// damaged file in the user's folder is an error. Errors: User, with the sources that were tried
/// and a remedy.
void load_files(const DataFiles& set, const DataPlaces& places, const Say& say);

}  // namespace plugrad::nn
