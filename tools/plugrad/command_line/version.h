// plugrad --version.
#pragma once

#include "command.h"

namespace plugrad::tools {

const char* version();

/// Version, ABI of plugins and build; `arguments` may hold --json. Errors: UsageError.
int print_version(const Arguments& arguments);

}  // namespace plugrad::tools
