// The data sets of `train` and `data`, by name.
#pragma once

#include <span>
#include <string>

#include "command.h"
#include "plugrad/data.h"

namespace plugrad::tools {

struct DataSet {
  const char* name;
  const char* folder;  ///< its folder in PLUGRAD_DATA and in the cache
  const char* files;   ///< description of its files, for messages
  data::Split (*load)(const data::SourceOptions&);
};

Arguments data_set_names();
/// The data set that `words` name. Errors: UsageError unless it is exactly one known name.
const DataSet& find_data_set(const Arguments& words, const std::string& usage);

}  // namespace plugrad::tools
