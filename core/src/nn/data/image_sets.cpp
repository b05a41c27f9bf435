#include "nn/data/image_sets.h"

#include <fmt/format.h>

#include "base/settings.h"
#include "nn/data/cifar.h"
#include "plugrad/data.h"

namespace plugrad::nn {
namespace {

constexpr const char* kIdxNames[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                     "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

}  // namespace

IdxSet mnist_set() {
  return {"mnist",
          {{{60000, 28, 28}, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
           {{60000}, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
           {{10000, 28, 28}, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
           {{10000}, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
          {"https://ossci-datasets.s3.amazonaws.com/mnist/",
           "https://storage.googleapis.com/cvdf-datasets/mnist/"}};
}

IdxSet fashion_mnist_set() {
  return {
      "fashion-mnist",
      {{{60000, 28, 28}, "", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
       {{60000}, "", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
       {{10000, 28, 28}, "", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
       {{10000}, "", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}},
      {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
       "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"}};
}

std::vector<IdxArray> load_idx_set(const IdxSet& set, const DataPlaces& places, const Say& say) {
  std::vector<IdxArray> arrays(std::size(kIdxNames));
  DataFiles files{set.name, {}, set.mirrors};
  for (size_t i = 0; i < arrays.size(); ++i)
    files.files.push_back(
        {std::string(kIdxNames[i]) + ".gz", {kIdxNames[i]}, [&, i](const auto& path) {
           arrays[i] = read_idx(path, set.expected[i]);
         }});
  load_files(files, places, say);
  return arrays;
}

}  // namespace plugrad::nn

namespace plugrad::data {
namespace {

nn::Say say_to(const SourceOptions& options) {
  if (options.say) return options.say;
  return [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
}

nn::DataPlaces places_of(const SourceOptions& options, const std::string& set) {
  return {options.folder, settings().data_dir, nn::cache_folder(set)};
}

Split load(nn::IdxSet set, const SourceOptions& options) {
  if (!options.download) set.mirrors.clear();
  auto arrays = nn::load_idx_set(set, places_of(options, set.name), say_to(options));
  return {Dataset(std::move(arrays[0].values), std::move(arrays[1].values), 28, 28),
          Dataset(std::move(arrays[2].values), std::move(arrays[3].values), 28, 28)};
}

}  // namespace

Split mnist(const SourceOptions& options) {
  return load(nn::mnist_set(), options);
}

Split fashion_mnist(const SourceOptions& options) {
  return load(nn::fashion_mnist_set(), options);
}

Split cifar10(const SourceOptions& options) {
  const nn::CifarExpectation expected{
      .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"};
  nn::Cifar cifar;
  const auto read = [&](const std::filesystem::path& path) {
    cifar = nn::read_cifar(path, expected);
  };
  nn::DataFiles files{"cifar-10",
                      {{"cifar-10-binary.tar.gz", {"cifar-10-batches-bin"}, read}},
                      {"https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"}};
  if (!options.download) files.mirrors.clear();
  nn::load_files(files, places_of(options, files.set), say_to(options));
  const Shape sample = {3, 32, 32};
  return {Dataset(std::move(cifar.train.images), std::move(cifar.train.labels), sample),
          Dataset(std::move(cifar.test.images), std::move(cifar.test.labels), sample)};
}

std::string mnist_cache_folder() {
  return nn::cache_folder("mnist").string();
}

}  // namespace plugrad::data
