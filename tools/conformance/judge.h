// What `plugrad conformance` does, as a program of its own: plugrad-conformance.
#pragma once

#include "command.h"

namespace plugrad::tools {

/// Judges the plugin that the arguments of `plugrad conformance` name; gives the exit code.
int judge_plugin(const Arguments& arguments);

}  // namespace plugrad::tools
