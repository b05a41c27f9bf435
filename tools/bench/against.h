// `plugrad bench --against BUILD`: the rows of this build and of another one, in turns.
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
  /// Errors: UsageError where `folder` has no bin/plugrad that can be run.
  explicit OtherBuild(const std::string& folder);
  const std::string& folder() const { return folder_; }

  /// Its rows for these arguments of `plugrad bench`. Errors: User, with what it said.
  std::vector<std::string> row_names(const Arguments& arguments) const;

  /// Measures the rows that both builds have, each by both in turns; `peer` of a result is the
  /// other build. Rows that it lacks are named on stderr.
  void compare(const std::vector<std::string>& names, const Arguments& arguments,
               const bench::Report& report) const;

 private:
  std::string folder_, program_;
};

}  // namespace plugrad::tools
