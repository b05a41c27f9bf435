// Kernels of a file of textual IR, or of one block of kernel IR.
#pragma once

#include <string>
#include <vector>

#include "engine/report.h"

namespace plugrad::tools {

/// Reads the file (form: ir/text/printer.h), plans its roots unless they are one kernel already (a
/// sink), and compiles for the default device. Errors: User, naming the file and the line.
std::vector<engine::KernelReport> explain_file(const std::string& path);

}  // namespace plugrad::tools
