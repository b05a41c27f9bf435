#include "data_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plugrad::tools {
namespace {

constexpr char kIdxFiles[] =
    "{train,t10k}-images-idx3-ubyte.gz and {train,t10k}-labels-idx1-ubyte.gz, packed or not";

constexpr DataSet kDataSets[] = {
    {"mnist", "mnist", kIdxFiles, data::mnist},
    {"fashion_mnist", "fashion-mnist", kIdxFiles, data::fashion_mnist},
    {"cifar10", "cifar-10", "cifar-10-binary.tar.gz or cifar-10-batches-bin/", data::cifar10},
};

}  // namespace

Arguments data_set_names() {
  Arguments names;
  for (const DataSet& set : kDataSets) names.emplace_back(set.name);
  return names;
}

const DataSet& find_data_set(const Arguments& words, const std::string& usage) {
  if (words.size() != 1)
    throw UsageError(fmt::format("name one data set of {}\nusage: {}",
                                 fmt::join(data_set_names(), ", "), usage));
  require_choice("data set", words[0], data_set_names(), usage);
  for (const DataSet& set : kDataSets)
    if (words[0] == set.name) return set;
  throw UsageError(usage);
}

}  // namespace plugrad::tools
