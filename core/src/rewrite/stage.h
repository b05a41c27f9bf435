// The one loop body of both pipelines: a stage is timed, recorded, verified and dumped here.
#pragma once

#include <functional>
#include <string>

namespace plugrad {

/// How a stage of a pipeline is run and looked at.
struct StageRun {
  const char* category;  ///< "schedule" or "codegen"
  const char* name;      ///< of the stage
  std::function<void()> run;
  std::function<void()> verify;       ///< after it, with PLUGRAD_VERIFY
  std::function<std::string()> text;  ///< the IR after it, for DEBUG=4 and PLUGRAD_DUMP
};

/// Runs the stage. With PLUGRAD_TRACE its time and every rewrite (rule, file, line, from, to) are
/// recorded; with PLUGRAD_VERIFY its result is verified; with DEBUG=4, or PLUGRAD_DUMP naming it,
/// the IR is printed.
void run_stage(const StageRun& stage);

}  // namespace plugrad
