#include "nn/data/data_files.h"

#include "base/check.h"
#include "base/storage/disk_cache.h"
#include "io/fetch.h"

namespace plugrad::nn {
namespace {

namespace fs = std::filesystem;

// The path of the file under one of its names in `folder`; empty if there is none.
fs::path path_in(const fs::path& folder, const DataFile& file) {
  std::vector<std::string> names = {file.name};
  names.insert(names.end(), file.also.begin(), file.also.end());
  for (const std::string& name : names) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  return {};
}

// The subfolder of the set or the folder itself, whichever has the first file; empty if neither
// has.
fs::path folder_with_files(const fs::path& folder, const DataFiles& set) {
  for (const fs::path& candidate : {folder / set.set, folder})
    if (!path_in(candidate, set.files.front()).empty()) return candidate;
  return {};
}

void read_folder(const DataFiles& set, const fs::path& folder, const Say& say) {
  for (const DataFile& file : set.files) {
    const fs::path path = path_in(folder, file);
    require(!path.empty(), "[{}] {} lacks {} (or the same unpacked); put all {} files there",
            set.set, folder.string(), file.name, set.files.size());
    file.read(path);
  }
  say(fmt::format("{}: read from {}", set.set, folder.string()));
}

// Reads the file. Deletes a damaged one, so that it is fetched again, and says what is wrong with it.
std::string failure_of(const DataFile& file, const fs::path& path) {
  try {
    file.read(path);
    return "";
  } catch (const Error& error) {
    fs::remove_all(path);
    return error.what();
  }
}

// Reads the file from the cache and returns whether it succeeded.
bool read_cached(const DataFile& file, const fs::path& cache, const Say& say) {
  const fs::path path = path_in(cache, file);
  const std::string failure = path.empty() ? "" : failure_of(file, path);
  if (!failure.empty()) say(failure);
  return !path.empty() && failure.empty();
}

// Reads the file from the first mirror that serves a sound one; `problems` collects the failures.
bool read_fetched(const DataFile& file, const DataFiles& set, const fs::path& cache, const Say& say,
                  std::string& problems) {
  for (const std::string& mirror : set.mirrors) {
    const std::string url = mirror + file.name;
    const fs::path path = cache / file.name;
    say(fmt::format("{}: fetching {}", set.set, url));
    std::string failure = io::fetch(url, path);
    if (failure.empty()) failure = failure_of(file, path);
    if (failure.empty()) return true;
    problems += fmt::format("\n  {}: {}", url, failure);
  }
  return false;
}

}  // namespace

fs::path cache_folder(const std::string& set) {
  const std::string folder = cache_directory();
  require(!folder.empty(),
          "[{}] there is no folder for downloads; set PLUGRAD_CACHE_DIR, or PLUGRAD_DATA to a "
          "folder that holds {}/",
          set, set);
  return fs::path(folder) / set;
}

void load_files(const DataFiles& set, const DataPlaces& places, const Say& say) {
  const std::string& first = set.files.front().name;
  if (!places.given.empty()) {
    const fs::path found = folder_with_files(places.given, set);
    require(!found.empty(),
            "[{}] neither {} nor its {}/ holds {}; name a folder with the files of the data set",
            set.set, places.given.string(), set.set, first);
    return read_folder(set, found, say);
  }
  if (!places.data_dir.empty()) {
    const fs::path found = folder_with_files(places.data_dir, set);
    if (!found.empty()) return read_folder(set, found, say);
    say(fmt::format("{}: PLUGRAD_DATA is {}, which holds no {}/{}", set.set,
                    places.data_dir.string(), set.set, first));
  }
  std::string problems;
  for (const DataFile& file : set.files)
    require(read_cached(file, places.cache, say) ||
                read_fetched(file, set, places.cache, say, problems),
            "[{}] the data set is neither in {} nor could it be fetched; put its files into a "
            "folder {}/ and name the folder around it by --data or PLUGRAD_DATA{}",
            set.set, places.cache.string(), set.set, problems);
}

}  // namespace plugrad::nn
