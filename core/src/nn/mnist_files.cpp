#include "nn/mnist_files.h"

#include "base/check.h"
#include "base/disk_cache.h"
#include "nn/fetch.h"

namespace plugrad::nn {
namespace {

namespace fs = std::filesystem;

// The folder itself, or its mnist/: whichever holds the first file.
fs::path folder_with_files(const fs::path& folder, const MnistFile& first) {
  for (const fs::path& candidate : {folder, folder / "mnist"})
    if (!mnist_path(candidate, first).empty()) return candidate;
  return {};
}

std::vector<IdxArray> read_folder(const std::vector<MnistFile>& files, const fs::path& folder, const Say& say) {
  std::vector<IdxArray> arrays;
  for (const MnistFile& file : files) {
    fs::path path = mnist_path(folder, file);
    require(!path.empty(), "[mnist] {} lacks {}.gz (or the same unpacked); put all four files there",
            folder.string(), file.name);
    arrays.push_back(read_idx(path, file.expected));
  }
  say(fmt::format("mnist: read from {}", folder.string()));
  return arrays;
}

// A sound file of the cache, else what the first mirror serves; `problems` collects why not.
bool from_cache_or_mirrors(const MnistFile& file, const MnistSources& sources, const Say& say, IdxArray& out,
                           std::string& problems) {
  if (fs::path path = mnist_path(sources.cache, file); !path.empty()) {
    try {
      out = read_idx(path, file.expected);
      return true;
    } catch (const Error& error) {
      say(error.what());
      fs::remove(path);  // never trusted, so it would only be met again
    }
  }
  for (const std::string& mirror : sources.mirrors) {
    std::string url = mirror + file.name + ".gz";
    fs::path path = sources.cache / (std::string(file.name) + ".gz");
    say(fmt::format("mnist: fetching {}", url));
    std::string failure = fetch(url, path);
    if (failure.empty()) {
      try {
        out = read_idx(path, file.expected);
        return true;
      } catch (const Error& error) {
        failure = error.what();
        fs::remove(path);
      }
    }
    problems += fmt::format("\n  {}: {}", url, failure);
  }
  return false;
}

}  // namespace

std::vector<MnistFile> mnist_files() {
  return {
      {"train-images-idx3-ubyte",
       {{60000, 28, 28}, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"}},
      {"train-labels-idx1-ubyte", {{60000}, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"}},
      {"t10k-images-idx3-ubyte",
       {{10000, 28, 28}, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"}},
      {"t10k-labels-idx1-ubyte", {{10000}, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
  };
}

std::vector<std::string> mnist_mirrors() {
  return {"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"};
}

fs::path mnist_cache_folder() {
  std::string folder = cache_directory();
  require(!folder.empty(), "[mnist] there is no folder for downloads; set PLUGRAD_CACHE_DIR, or PLUGRAD_DATA to a "
          "folder that holds mnist/");
  return fs::path(folder) / "mnist";
}

fs::path mnist_path(const fs::path& folder, const MnistFile& file) {
  for (const char* ending : {".gz", ""}) {
    fs::path path = folder / (std::string(file.name) + ending);
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return {};
}

std::vector<IdxArray> load_mnist(const std::vector<MnistFile>& files, const MnistSources& sources, const Say& say) {
  if (!sources.given.empty()) {
    fs::path found = folder_with_files(sources.given, files.front());
    require(!found.empty(), "[mnist] neither {} nor its mnist/ holds {}.gz; name a folder with the four MNIST files",
            sources.given.string(), files.front().name);
    return read_folder(files, found, say);
  }
  if (!sources.data_dir.empty()) {
    fs::path found = folder_with_files(sources.data_dir, files.front());
    if (!found.empty()) return read_folder(files, found, say);
    say(fmt::format("mnist: PLUGRAD_DATA is {}, which holds no mnist/{}.gz", sources.data_dir.string(),
                    files.front().name));
  }
  std::vector<IdxArray> arrays;
  std::string problems;
  for (const MnistFile& file : files) {
    IdxArray array;
    if (!from_cache_or_mirrors(file, sources, say, array, problems))
      fail(ErrorKind::User,
           "[mnist] the data set is neither in {} nor could it be fetched; put the four files into a folder and "
           "name it by --data or PLUGRAD_DATA{}",
           sources.cache.string(), problems);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace plugrad::nn
