// plugrad data SET: finds the data set, or downloads it to the cache.
#include "plugrad/data.h"

#include <fmt/format.h>

#include "command.h"
#include "data_sets.h"
#include "nn/data/data_files.h"

namespace plugrad::tools {

Syntax data_syntax() {
  namespace po = boost::program_options;
  Syntax syntax{
      .usage = "plugrad data (mnist|fashion_mnist|cifar10) [--data DIR] [--where] [--json]",
      .words = "set",
      .choices = {{"set", data_set_names()}},
      .paths = {"data"}};
  syntax.options.add_options()("data", po::value<std::string>()->default_value(""),
                               "folder that holds the files");
  syntax.options.add_options()("where", "only print the folder that downloads go to");
  syntax.options.add_options()("json", "one JSON document");
  return syntax;
}

int run_data(const Arguments& arguments) {
  const Syntax syntax = data_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const DataSet& set = find_data_set(parsed.get<Arguments>("set"), syntax.usage);
  const std::string cache = nn::cache_folder(set.folder).string();
  const bool json = parsed.has("json");
  if (parsed.has("where")) {
    if (json)
      print_json({{"name", set.name}, {"directory", cache}, {"files", set.files}});
    else
      fmt::print("{}\n", cache);
    return kSuccess;
  }
  data::SourceOptions source;
  source.folder = parsed.get<std::string>("data");
  const data::Split split = set.load(source);
  if (json)
    print_json({{"name", set.name},
                {"train", split.train.size()},
                {"test", split.test.size()},
                {"sample_shape", split.train.sample_shape()}});
  else
    fmt::print("{}: {} training and {} test images\n", set.name, split.train.size(),
               split.test.size());
  return kSuccess;
}

}  // namespace plugrad::tools
