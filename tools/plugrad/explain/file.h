// Compiles the kernels of a file of textual IR, or of a block of kernel IR.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/report.h"
#include "ir/kernel_ast.h"

namespace plugrad::tools {

/// Reads the file (format: ir/text/printer.h), plans its roots unless they are a single kernel (a
/// sink), and compiles for the default device. Errors: User, with file and line.
std::vector<engine::KernelReport> explain_file(const std::string& path);

/// The AST of a kernel of which `path` has the text. Errors: User, with file and line.
std::shared_ptr<const KernelAst> kernel_of_text(const std::string& path, const std::string& text);

}  // namespace plugrad::tools
