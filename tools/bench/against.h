// `plugrad bench --against BUILD`: measures the rows of this build and of another one alternately.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/suites.h"
#include "command.h"

namespace plugrad::tools {

/// The command of another build tree.
class OtherBuild {
 public:
  /// Errors: UsageError if `folder` has no executable bin/plugrad.
  explicit OtherBuild(const std::string& folder);
  const std::string& folder() const { return folder_; }

  /// Its rows for these arguments of `plugrad bench`. Errors: User, with its output.
  std::vector<std::string> row_names(const Arguments& arguments) const;

  /// Measures the rows of both builds alternately; `peer` of a result is the other build. Rows that
  /// the other build lacks are listed on stderr.
  void compare(const std::vector<std::string>& names, const Arguments& arguments,
               const bench::Report& report) const;

 private:
  std::string folder_, program_;
};

}  // namespace plugrad::tools
