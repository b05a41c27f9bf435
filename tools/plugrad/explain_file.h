// Compiles the kernels of a file of textual IR, or of a block of kernel IR.
#pragma once

#include <string>
#include <vector>

#include "engine/report.h"

namespace plugrad::tools {

/// Reads the file (format: ir/text/printer.h), plans its roots unless they are a single kernel (a
/// sink), and compiles for the default device. Errors: User, with file and line.
std::vector<engine::KernelReport> explain_file(const std::string& path);

}  // namespace plugrad::tools
