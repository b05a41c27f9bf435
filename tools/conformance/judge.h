// `plugrad conformance` as a separate program: plugrad-conformance.
#pragma once

#include "command.h"

namespace plugrad::tools {

/// Tests the plugin that the arguments of `plugrad conformance` name; returns the exit code.
int judge_plugin(const Arguments& arguments);

}  // namespace plugrad::tools
