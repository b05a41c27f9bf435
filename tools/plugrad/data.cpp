// plugrad data mnist: finds the data set, or fetches it to the cache.
#include "plugrad/data.h"

#include <fmt/format.h>

#include "command.h"

namespace plugrad::tools {

int run_data(const Arguments& arguments) {
  namespace po = boost::program_options;
  const std::string usage = "plugrad data mnist [--data DIR] [--where]";
  po::options_description options("Options");
  options.add_options()("data", po::value<std::string>()->default_value(""),
                        "folder that holds the files");
  options.add_options()("where", "only print the folder that downloads go to");
  Parsed parsed = parse(arguments, usage, options, "set");
  if (parsed.help) return kSuccess;
  if (parsed.get<std::vector<std::string>>("set") != std::vector<std::string>{"mnist"})
    throw UsageError("the data set is mnist\nusage: " + usage);
  if (parsed.has("where")) {
    fmt::print("{}\n", data::mnist_cache_folder());
    return kSuccess;
  }
  data::SourceOptions source;
  source.folder = parsed.get<std::string>("data");
  data::Mnist mnist = data::mnist(source);
  fmt::print("mnist: {} training and {} test images\n", mnist.train.size(), mnist.test.size());
  return kSuccess;
}

}  // namespace plugrad::tools
